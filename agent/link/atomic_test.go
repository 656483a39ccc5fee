package link_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/corpus-agent/corpus-agent/agent/link"
)

// TestLinksNeverVanish reads links all the time while they are moved, as a unit does that starts from current.
func TestLinksNeverVanish(t *testing.T) {
	p, _ := project(t)
	l := link.Of(p)
	must(t, l.SetNext("a"))
	must(t, l.Promote("a", link.Set{}))
	end, vanished := make(chan struct{}), make(chan error)
	go func() {
		var first error
		for {
			select {
			case <-end:
				vanished <- first
				return
			default:
			}
			for _, name := range []string{"next", "current"} {
				if _, err := os.ReadDir(filepath.Join(p.Dir, name)); err != nil && first == nil {
					first = err
				}
			}
		}
	}()
	for range 100 {
		must(t, l.SetNext("b"))
		must(t, l.Promote("b", link.Set{Current: "a"}))
		must(t, l.Restore(link.Set{Next: "a", Current: "a"}))
	}
	close(end)
	if err := <-vanished; err != nil {
		t.Errorf("a link was read while it was moved: %v", err)
	}
}
