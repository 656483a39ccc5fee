package agent_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/corpus-agent/corpus-agent/agent/exit"
)

// TestStatusReportsReplacedLink replaces current by a directory and by a regular file.
func TestStatusReportsReplacedLink(t *testing.T) {
	t.Parallel()
	for what, put := range map[string]func(path string) error{
		"a directory":    func(path string) error { return os.Mkdir(path, 0o755) },
		"a regular file": func(path string) error { return os.WriteFile(path, []byte("x"), 0o644) },
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

// TestPreviousThatNamesAnotherRelease points previous at another release on the disk: a run with nothing new corrects
// it as the ledger says, and status names it until then.
func TestPreviousThatNamesAnotherRelease(t *testing.T) {
	t.Parallel()
	l := newLab(t)
	for _, version := range []string{"1", "2", "3"} {
		l.publish(version)
		l.expect(exit.OK)
	}
	previous := l.Layout.Path("/srv/projects/myapp/previous")
	first, err := filepath.Glob(l.Layout.Path("/srv/projects/myapp/releases/1-*"))
	if err != nil || len(first) != 1 {
		t.Fatal(first, err)
	}
	for name, run := range map[string]func(){
		"deploy": func() { l.expect(exit.OK) },
		"converge": func() {
			if _, err := l.Converge(t.Context(), false); err != nil {
				t.Error(err)
			}
		},
	} {
		must(t, os.Remove(previous))
		must(t, os.Symlink(filepath.Join("releases", filepath.Base(first[0])), previous))
		if drift := strings.Join(mustStatus(t, l).Drift, "\n"); !strings.Contains(drift,
			"previous of myapp leads to \""+filepath.Base(first[0])) {
			t.Errorf("drift is %q", drift)
		}
		run()
		l.links("3", "3", "2")
		if drift := mustStatus(t, l).Drift; len(drift) > 0 {
			t.Errorf("after %s, drift is %q", name, drift)
		}
	}
}
