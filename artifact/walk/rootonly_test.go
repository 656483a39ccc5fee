package walk_test

import (
	"errors"
	"os"
	"strings"
	"testing"

	"github.com/corpus-agent/corpus-agent/artifact/walk"
)

// TestSoleTrees changes one part of a repository at a time.
func TestSoleTrees(t *testing.T) {
	for name, c := range map[string]struct {
		change func(root string) error
		by     string // "" for no user
		at     string
	}{
		"root's":            {func(string) error { return nil }, "", ""},
		"the top":           {func(r string) error { return os.Lchown(r+"/srv/git", ann, 0) }, "user 64001", "/srv/git"},
		"a directory above": {func(r string) error { return os.Lchown(r+"/srv", ann, 0) }, "user 64001", "/srv"},
		"a file": {func(r string) error { return os.Lchown(r+"/srv/git/config", ann, 0) },
			"user 64001", "/srv/git/config"},
		"a file deep below": {func(r string) error { return os.Lchown(r+"/srv/git/objects/ab/cd", ann, 0) }, "user 64001",
			"/srv/git/objects/ab/cd"},
		"all may write": {func(r string) error { return os.Chmod(r+"/srv/git/config", 0o666) },
			"any user", "/srv/git/config"},
		"all may make a file": {func(r string) error { return os.Chmod(r+"/srv/git/hooks", 0o777|os.ModeSticky) },
			"any user", "/srv/git/hooks"},
		"a group may write": {func(r string) error {
			return errors.Join(os.Chown(r+"/srv/git/hooks", 0, 500), os.Chmod(r+"/srv/git/hooks", 0o775))
		}, "group 500", "/srv/git/hooks"},
		"root's group may": {func(r string) error { return os.Chmod(r+"/srv/git/hooks", 0o775) }, "", ""},
		"a link to root's": {func(r string) error { return os.Symlink("/vault", r+"/srv/git/more") }, "", ""},
		"a link to ann's": {func(r string) error { return os.Symlink("/home/ann", r+"/srv/git/more") },
			"user 64001", "/srv/git/more"},
		"a link in a cycle": {func(r string) error { return os.Symlink("/srv/git", r+"/srv/git/more") }, "", ""},
		"a link to nothing": {func(r string) error { return os.Symlink("/none", r+"/srv/git/more") }, "", ""},
		"a link of ann's": {func(r string) error {
			return errors.Join(os.Symlink("/vault", r+"/srv/git/more"), os.Lchown(r+"/srv/git/more", ann, ann))
		}, "user 64001", "/srv/git/more"},
		"a link to ann's file": {func(r string) error { return os.Symlink("/home/ann/file", r+"/srv/git/more") },
			"user 64001", "/home/ann"},
		"a file that is absent": {func(r string) error { return os.RemoveAll(r + "/srv/git") }, "absent", ""},
	} {
		t.Run(name, func(t *testing.T) {
			root := homes(t)
			for _, dir := range []string{"/srv/git/hooks", "/srv/git/objects/ab"} {
				do(t, os.MkdirAll(root+dir, 0o755))
			}
			for _, file := range []string{"/srv/git/config", "/srv/git/objects/ab/cd"} {
				do(t, os.WriteFile(root+file, nil, 0o644))
			}
			do(t, c.change(root))
			both(t, func(t *testing.T, o walk.Options) {
				o.Safe = true
				o.Dir = root
				r, err := walk.Open(o)
				do(t, err)
				defer r.Close()
				err = r.CheckRootOnly("/srv/git")
				var unsafe *walk.UnsafeError
				switch {
				case c.by == "absent":
					if !errors.Is(err, os.ErrNotExist) {
						t.Errorf("a missing directory gives %v", err)
					}
				case c.by == "":
					do(t, err)
				case !errors.As(err, &unsafe) || unsafe.By != c.by || !strings.HasPrefix(unsafe.Component, c.at):
					t.Errorf("the result is %v, want %s at %s", err, c.by, c.at)
				}
			})
		})
	}
}

// TestSoleFiles checks files; the path to a file is checked even if the file does not exist.
func TestSoleFiles(t *testing.T) {
	root := homes(t)
	do(t, os.MkdirAll(root+"/etc/x", 0o755))
	do(t, os.WriteFile(root+"/etc/x/file", nil, 0o644))
	both(t, func(t *testing.T, o walk.Options) {
		o.Safe, o.Dir = true, root
		r, err := walk.Open(o)
		do(t, err)
		defer r.Close()
		look := func(p, by string) {
			t.Helper()
			err := r.CheckRootOnly(p)
			var unsafe *walk.UnsafeError
			if by == "" && err != nil && !errors.Is(err, os.ErrNotExist) || by != "" &&
				(!errors.As(err, &unsafe) || unsafe.By != by) {
				t.Errorf("%s: %v, want controlled by %q", p, err, by)
			}
		}
		look("/etc/x/file", "")
		look("/etc/x/none", "")
		do(t, os.Chmod(root+"/etc/x/file", 0o666))
		look("/etc/x/file", "any user")
		do(t, os.Chmod(root+"/etc/x/file", 0o644))
		do(t, os.Lchown(root+"/etc/x/file", ann, 0))
		look("/etc/x/file", "user 64001")
		do(t, os.Lchown(root+"/etc/x/file", 0, 0))
		do(t, os.Lchown(root+"/etc/x", ann, 0))
		look("/etc/x/file", "user 64001")
		look("/etc/x/none", "user 64001")
		do(t, os.Lchown(root+"/etc/x", 0, 0))
	})
}
