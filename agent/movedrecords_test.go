package agent_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/corpus-agent/corpus-agent/agent/exit"
)

// TestRecordsMovedByAnOperator moves a directory of the agent to another name or into another directory of the agent
// and links it from its place: the next run uses it there and sets nothing aside.
func TestRecordsMovedByAnOperator(t *testing.T) {
	whole := deployedTwice(t)
	for _, c := range []struct{ from, to string }{
		{"trust/projects", "trust/moved"},
		{"reports", "trust/moved"},
		{"trees", "trust/moved"},
	} {
		t.Run(c.from+" to "+c.to, func(t *testing.T) {
			t.Parallel()
			l := whole.duplicate(t)
			l.Config.Store = "mem://"
			from, to := filepath.Join(l.Layout.State(), c.from), filepath.Join(l.Layout.State(), c.to)
			must(t, os.Rename(from, to))
			target, err := filepath.Rel(filepath.Dir(from), to)
			must(t, err)
			must(t, os.Symlink(target, from))
			l.publish("3")
			l.expect(exit.OK)
			l.links("3", "3", "2")
			if aside, err := filepath.Glob(filepath.Join(l.Layout.State(), "*", "*.damaged-*")); err != nil || len(aside) > 0 {
				t.Errorf("set aside: %q, %v", aside, err)
			}
			if info, err := os.Lstat(from); err != nil || info.Mode()&os.ModeSymlink == 0 {
				t.Errorf("the link is %v, %v", info, err)
			}
			if entries, err := os.ReadDir(to); err != nil || len(entries) == 0 {
				t.Errorf("the moved directory has %v, %v", entries, err)
			}
		})
	}
}
