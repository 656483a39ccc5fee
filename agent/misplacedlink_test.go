package agent_test

import (
	"os"
	"strings"
	"testing"

	"github.com/corpus-agent/corpus-agent/agent/exit"
)

// TestStatusReportsReplacedLink replaces current by a directory and by a plain file.
func TestStatusReportsReplacedLink(t *testing.T) {
	t.Parallel()
	for what, put := range map[string]func(path string) error{
		"a directory":  func(path string) error { return os.Mkdir(path, 0o755) },
		"a plain file": func(path string) error { return os.WriteFile(path, []byte("x"), 0o644) },
	} {
		t.Run(what, func(t *testing.T) {
			l := newLab(t)
			l.publish("1")
			l.expect(exit.OK)
			current := l.Layout.Path("/srv/projects/myapp/current")
			if err := os.Remove(current); err != nil {
				t.Fatal(err)
			}
			if err := put(current); err != nil {
				t.Fatal(err)
			}
			w, err := l.Why()
			if err != nil {
				t.Fatal(err)
			}
			if drift := strings.Join(w.Drift, "\n"); !strings.Contains(drift,
				"current of myapp is "+what+" and no link; the next run sets it aside") {
				t.Errorf("drift is %q", drift)
			}
			l.expect(exit.OK)
			l.links("1", "1", "")
			if s, err := l.Status(); err != nil || len(s.Drift) > 0 {
				t.Errorf("after the next run, drift is %v, %v", s.Drift, err)
			}
		})
	}
}
