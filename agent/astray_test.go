package agent_test

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/corpus-agent/corpus-agent/agent/exit"
)

// TestLinksToADirectoryAboveAreSetAside has links in the places of directories that lead to a directory above them, or
// to the state directory: status names the link, and the next runs deploy as on a host that has lost the directory.
func TestLinksToADirectoryAboveAreSetAside(t *testing.T) {
	whole := deployedTwice(t)
	for path, target := range map[string]string{
		"/srv/projects": ".", "/srv/projects/": "../var/lib/corpus", "/srv/projects/myapp": "..",
		"/srv/projects/myapp/releases": ".", "/srv/projects/myapp/releases/": "../../projects",
	} {
		t.Run(path+" to "+target, func(t *testing.T) {
			t.Parallel()
			l := whole.duplicate(t)
			l.Config.Store = "mem://"
			at := filepath.Clean(l.Layout.Path(path))
			must(t, os.Rename(at, at+".away"))
			must(t, os.Symlink(target, at))
			name := filepath.Clean(path) + " is a link to " + target
			if s := mustStatus(t, l); !slices.ContainsFunc(s.Drift, func(text string) bool {
				return strings.Contains(text, name)
			}) {
				t.Errorf("status has the drift %q", s.Drift)
			}
			for range 2 {
				l.expect(exit.OK)
			}
			l.publish("3")
			l.expect(exit.OK)
			if info, err := os.Lstat(at); err != nil || !info.IsDir() {
				t.Errorf("%s is not a directory: %v, %v", at, info, err)
			}
			if s := mustStatus(t, l); len(s.Drift) != 0 {
				t.Errorf("status has the drift %q", s.Drift)
			}
		})
	}
}
