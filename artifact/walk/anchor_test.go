package walk_test

import (
	"errors"
	"os"
	"syscall"
	"testing"

	"github.com/corpus-agent/corpus-agent/artifact/walk"
)

// linked makes a tree like a deploy: files below links of root, and one to which a link of ann leads.
func linked(t *testing.T) string {
	t.Helper()
	root := homes(t)
	for _, dir := range []string{"srv/projects/app/releases/1/states/sub", "srv/projects/app/releases/2/states",
		"home/ann/own/states"} {
		do(t, os.MkdirAll(root+"/"+dir, 0o755))
		do(t, os.WriteFile(root+"/"+dir+"/top.sls", []byte(dir), 0o644))
	}
	do(t, os.WriteFile(root+"/srv/projects/app/releases/2/states/new.sls", nil, 0o644))
	do(t, os.Symlink("releases/1", root+"/srv/projects/app/next"))
	do(t, os.Symlink("projects/app", root+"/srv/service"))
	do(t, os.Symlink("../top.sls", root+"/srv/projects/app/releases/1/states/sub/link"))
	do(t, os.Symlink("/vault/secret", root+"/srv/projects/app/releases/1/states/out"))
	for _, p := range []string{"home/ann/own/states", "home/ann/own/states/top.sls"} {
		do(t, os.Lchown(root+"/"+p, ann, ann))
	}
	do(t, os.Link(root+"/vault/secret", root+"/home/ann/own/states/hard"))
	return root
}

// TestAnchoredRootsResolveLikeRoot compares both, while the tree changes below the directories and above them.
func TestAnchoredRootsResolveLikeRoot(t *testing.T) {
	both(t, func(t *testing.T, o walk.Options) {
		for _, o.Safe = range []bool{true, false} {
			root := linked(t)
			plain := open(t, o, root)
			states, own := "/srv/service/next/states", "/home/ann/dirself/states"
			anchored := plain.Anchored([]string{states, own, "/vault", "/none"})
			compare := func(when string) {
				t.Helper()
				for _, p := range []string{
					states, states + "/", states + "/top.sls", states + "/sub/link", states + "/sub", states + "/out", states +
						"/none", states + "/new.sls", states + "/top.sls/x",
					states + "/../states/top.sls", states + "/sub/../../../1/states/top.sls", states + "x", own + "/top.sls", own +
						"/hard", own + "/none", "/vault/secret", "/none/none",
				} {
					for _, flags := range []int{0, syscall.O_NOFOLLOW, syscall.O_DIRECTORY} {
						want, wantErr := read(plain, p, flags)
						got, gotErr := read(anchored, p, flags)
						if got != want || errnoOf(gotErr) != errnoOf(wantErr) || (gotErr == nil) != (wantErr == nil) {
							t.Errorf("%s: %s with flags %#x: %q, %v; the root itself: %q, %v", when, p, flags, got, gotErr, want, wantErr)
						}
					}
				}
			}
			compare("at first")
			compare("again")
			do(t, os.Remove(root+"/srv/projects/app/next"))
			compare("without the link")
			do(t, os.Symlink("releases/2", root+"/srv/projects/app/next"))
			compare("with another release")
			do(t, os.Remove(root+"/srv/projects/app/next"))
			do(t, os.Symlink("releases/1", root+"/srv/projects/app/next"))
			compare("with the first release")
			do(t, os.Lchown(root+"/home/ann/own/states", 0, 0))
			compare("when the directory that ann's link leads to is root's")
			do(t, os.Lchown(root+"/srv/projects/app/releases/1/states", ann, ann))
			compare("when the states are ann's")
		}
	})
}

// errnoOf returns the kernel's number of an error, 0 for an unsafe step.
func errnoOf(err error) syscall.Errno {
	var errno syscall.Errno
	errors.As(err, &errno)
	return errno
}

// BenchmarkBelowLinks opens a file below two links.
func BenchmarkBelowLinks(b *testing.B) {
	root := b.TempDir()
	for _, err := range []error{os.MkdirAll(root+"/srv/projects/app/releases/1/states", 0o755),
		os.Symlink("releases/1", root+"/srv/projects/app/next"), os.Symlink("projects/app", root+"/srv/service"),
		os.WriteFile(root+"/srv/projects/app/releases/1/states/top.sls", nil, 0o644)} {
		if err != nil {
			b.Fatal(err)
		}
	}
	plain, err := walk.Open(walk.Options{Dir: root, Safe: true})
	if err != nil {
		b.Fatal(err)
	}
	defer plain.Close()
	for name, r := range map[string]*walk.Root{"plain": plain,
		"anchored": plain.Anchored([]string{"/srv/service/next/states"})} {
		b.Run(name, func(b *testing.B) {
			for b.Loop() {
				f, err := r.OpenFile("/srv/service/next/states/top.sls", os.O_RDONLY)
				if err != nil {
					b.Fatal(err)
				}
				_ = f.Close()
			}
		})
	}
}
