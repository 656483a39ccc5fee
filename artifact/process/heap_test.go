package process_test

import (
	"runtime/debug"
	"testing"

	"github.com/corpus-agent/corpus-agent/artifact/process"
)

// percent returns the growth of the heap after which the garbage collector runs.
func percent() int {
	now := debug.SetGCPercent(100)
	debug.SetGCPercent(now)
	return now
}

func TestCollectOftenEndsWithItsLastCaller(t *testing.T) {
	t.Setenv("GOGC", "")
	defer debug.SetGCPercent(debug.SetGCPercent(600))
	first := process.CollectOften()
	second := process.CollectOften()
	if got := percent(); got != 30 {
		t.Errorf("%d percent, want 30", got)
	}
	first()
	if got := percent(); got != 30 {
		t.Errorf("%d percent after the first of two callers ended, want 30", got)
	}
	second()
	if got := percent(); got != 100 {
		t.Errorf("%d percent after the last caller ended, want 100", got)
	}
}

func TestCollectOftenKeepsGOGC(t *testing.T) {
	t.Setenv("GOGC", "400")
	defer debug.SetGCPercent(debug.SetGCPercent(400))
	end := process.CollectOften()
	if got := percent(); got != 400 {
		t.Errorf("%d percent, want 400 of the environment", got)
	}
	end()
	if got := percent(); got != 400 {
		t.Errorf("%d percent after the end, want 400 of the environment", got)
	}
}
