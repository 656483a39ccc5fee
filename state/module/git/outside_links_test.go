package git_test

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/corpus-agent/corpus-agent/state/diag"
	"github.com/corpus-agent/corpus-agent/state/module"
	"github.com/corpus-agent/corpus-agent/state/module/git"
	"github.com/corpus-agent/corpus-agent/state/statetest"
)

// commitLinks commits symbolic links to a repository; links maps their names to their targets.
func commitLinks(t *testing.T, h *statetest.Host, dir string, links map[string]string) {
	t.Helper()
	for name, target := range links {
		if err := os.Symlink(target, filepath.Join(h.Dir, dir, name)); err != nil {
			t.Fatal(err)
		}
	}
	do(t, h, "-C", dir, "add", "--all")
	do(t, h, "-C", dir, "commit", "--quiet", "--message", "links")
}

// run checks and applies a function with the target /opt/app.
func run(t *testing.T, h *statetest.Host, function string, more ...any) error {
	t.Helper()
	resource := git.Tables()["git"][function]()
	arguments := args(append([]any{"name", "/srv/remote", "target", "/opt/app"}, more...)...)
	if _, problems := module.Decode(resource, module.Call{Arguments: arguments}); len(problems) > 0 {
		t.Fatal(problems)
	}
	d, err := resource.Check(context.Background(), h.Host)
	if err == nil {
		_, err = resource.Apply(context.Background(), h.Host, d)
	}
	return err
}

// TestOutsideLinks checks that no link of a repository leads out of a work tree of root, of a new clone as well
// as of an existing one, and that the next run refuses the same again.
func TestOutsideLinks(t *testing.T) {
	s := suite(t)
	for function, more := range map[string][]any{"latest": nil, "cloned": {"branch", "evil"},
		"detached": {"rev", "evil"}} {
		for _, older := range []bool{false, true} {
			h := statetest.NewHost(t)
			s.Prepare(t, h)
			if older {
				clone()(t, h)
				do(t, h, "-C", "/opt/app", "fetch", "--quiet")
			}
			do(t, h, "-C", "/srv/remote", "checkout", "--quiet", "-b", "evil")
			commitLinks(t, h, "/srv/remote", map[string]string{"inside": "file", "settings.ini": "../../etc/shadow"})
			if older {
				do(t, h, "-C", "/opt/app", "fetch", "--quiet", "/srv/remote", "+refs/heads/*:refs/remotes/origin/*")
			}
			if function == "latest" {
				more = []any{"rev", "evil"}
			}
			for range 2 {
				err := run(t, h, function, more...)
				if err == nil || !strings.Contains(err.Error(), "settings.ini leads to ../../etc/shadow") ||
					!strings.Contains(diag.HintOf(err), "allow_outside_links") {
					t.Fatalf("%s (older: %v) gives %v", function, older, err)
				}
				if _, err := os.Lstat(filepath.Join(h.Dir, "opt/app/settings.ini")); err == nil {
					t.Errorf("%s (older: %v) leaves the link", function, older)
				}
			}
			if err := run(t, h, function, append(more, "allow_outside_links", true)...); err != nil {
				t.Errorf("%s (older: %v) refuses allowed links: %v", function, older, err)
			}
			if _, err := os.Lstat(filepath.Join(h.Dir, "opt/app/settings.ini")); err != nil {
				t.Errorf("%s (older: %v) lacks the link: %v", function, older, err)
			}
		}
	}
}

// TestInsideLinks checks that links within a repository are checked out.
func TestInsideLinks(t *testing.T) {
	s := suite(t)
	h := statetest.NewHost(t)
	s.Prepare(t, h)
	commitLinks(t, h, "/srv/remote", map[string]string{"one": "file", "two": "./one"})
	if err := run(t, h, "latest"); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Lstat(filepath.Join(h.Dir, "opt/app/two")); err != nil {
		t.Error(err)
	}
}
