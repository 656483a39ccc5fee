package exec

import (
	"bytes"
	"runtime"
	"testing"
)

// goroutine returns the number of the goroutine that calls it.
func goroutine() string {
	stack := make([]byte, 64)
	return string(bytes.Fields(stack[:runtime.Stack(stack, false)])[1])
}

// TestStepsShareAGoroutine runs works one after another, two at once, and after the crew has ended.
func TestStepsShareAGoroutine(t *testing.T) {
	c := &crew{}
	begin := func(wait <-chan bool) <-chan string {
		done := make(chan string, 1)
		c.start(func() func() {
			if wait != nil {
				<-wait
			}
			id := goroutine()
			return func() { done <- id }
		})
		return done
	}
	first := <-begin(nil)
	for range 9 {
		if next := <-begin(nil); next != first {
			t.Fatalf("a work after another one runs in goroutine %s, want %s", next, first)
		}
	}
	wait := make(chan bool)
	slow := begin(wait)
	if beside := <-begin(nil); beside == first {
		t.Error("two works at once run in one goroutine")
	}
	close(wait)
	if got := <-slow; got != first {
		t.Errorf("the slow work runs in goroutine %s, want %s", got, first)
	}
	c.end()
	if c.waiting() != nil {
		t.Error("goroutines wait after the end")
	}
	<-begin(nil)
	c.end()
}
