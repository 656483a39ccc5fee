package agent_test

import (
	"os"
	"syscall"
	"testing"

	"github.com/corpus-agent/corpus-agent/agent/exit"
)

// TestMisplacedProjectIsMovedAside replaces the directory of a project: it is set aside, and the project is fetched
// again.
func TestMisplacedProjectIsMovedAside(t *testing.T) {
	for name, put := range map[string]func(path string) error{
		"a file":          func(path string) error { return os.WriteFile(path, []byte("x"), 0o644) },
		"a pipe":          func(path string) error { return syscall.Mkfifo(path, 0o600) },
		"a dangling link": func(path string) error { return os.Symlink("nowhere", path) },
	} {
		for _, project := range []string{"myapp", "base"} {
			t.Run(name+" "+project, func(t *testing.T) {
				t.Parallel()
				l := newLab(t)
				l.publishBase("b1")
				l.publish("1")
				l.expect(exit.OK)
				path := l.Layout.Path("/srv/projects/" + project)
				must(t, os.RemoveAll(path))
				must(t, put(path))
				if _, err := l.Status(); err != nil {
					t.Errorf("status: %v", err)
				}
				noted(t, l.expect(exit.OK), "it was set aside as "+project+".damaged-")
				l.links("1", "1", "")
				if l.engine.last() != "b1+1" {
					t.Errorf("converged %q", l.engine.last())
				}
			})
		}
	}
}
