package agent_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/corpus-agent/corpus-agent/agent/exit"
	"github.com/corpus-agent/corpus-agent/state"
)

// TestNextThatIsRemovedDuringARun removes or changes the link while states run: the converged release becomes current,
// and the link is restored.
func TestNextThatIsRemovedDuringARun(t *testing.T) {
	t.Parallel()
	for name, meddle := range map[string]func(next string) error{
		"removed": os.Remove,
		"changed back": func(next string) error {
			current, err := os.Readlink(filepath.Join(filepath.Dir(next), "current"))
			if err != nil {
				return err
			}
			if err := os.Remove(next); err != nil {
				return err
			}
			return os.Symlink(current, next)
		},
	} {
		t.Run(name, func(t *testing.T) {
			l := newLab(t)
			l.publish("1")
			l.expect(exit.OK)
			l.publish("2")
			l.engine.during = func(state.Request) {
				if err := meddle(filepath.Join(l.Layout.Projects(), "myapp", "next")); err != nil {
					t.Error(err)
				}
			}
			r := l.expect(exit.OK)
			l.engine.during = nil
			if r.Left == nil || r.Left.Service.Version != "2" {
				t.Errorf("the report has left %v", r.Left)
			}
			l.links("2", "2", "1")
			noted(t, r, "next of myapp was changed during the run")
		})
	}
}
