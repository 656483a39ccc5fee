package walk_test

import (
	"errors"
	"io"
	"os"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/corpus-agent/corpus-agent/artifact/walk"
)

const ann, bob = 64001, 64002

// homes makes a tree in which ann and bob have their own directories. Links lead to names that no machine has:
// following one outside of the root would change the machine of the test.
func homes(t *testing.T) string {
	t.Helper()
	if os.Geteuid() != 0 {
		t.Skip("this test needs root: it makes files of several users")
	}
	root, _ := plant(t, "vault/secret", "vault/link -> secret", "home/ann/own/file", "home/ann/file", "home/bob/file",
		"home/ann/roots/file", "home/ann/roots/link -> /vault/secret",
		"home/ann/self -> own/file", "home/ann/dirself -> own", "home/ann/etc -> /vault", "home/ann/shadow -> /vault/secret",
		"home/ann/dots -> ../../vault/secret", "home/ann/bob -> ../bob/file",
		"home/ann/new -> /vault/cron", "home/ann/newown -> own/new", "home/ann/there -> etc/secret",
		"home/ann/onward -> dirself/../../../vault/secret",
		"tmp/bylink -> /vault/secret", "tmp/byroot -> /vault/secret", "share/link -> /vault/secret",
		"team/link -> /vault/secret", "team/fine -> work", "team/work/x",
		"home/ann/open/file", "home/ann/open/self -> file", "home/ann/open/shadow -> /vault/secret",
		"home/ann/shared/self -> ../file")
	for _, p := range []string{"home/ann", "home/ann/own", "home/ann/own/file", "home/ann/file", "home/ann/self",
		"home/ann/dirself", "home/ann/etc", "home/ann/shadow", "home/ann/dots",
		"home/ann/bob", "home/ann/new", "home/ann/newown", "home/ann/there", "home/ann/onward", "tmp/bylink", "home/ann/open",
		"home/ann/open/file", "home/ann/open/self", "home/ann/open/shadow", "home/ann/shared/self"} {
		do(t, os.Lchown(root+"/"+p, ann, ann))
	}
	do(t, os.Lchown(root+"/home/ann/shared", ann, 500))
	do(t, os.Chmod(root+"/home/ann/open", 0o775))
	do(t, os.Chmod(root+"/home/ann/shared", 0o775))
	do(t, os.Chmod(root+"/home/ann/open/file", 0o600))
	do(t, os.Lchown(root+"/home/bob", bob, bob))
	do(t, os.Lchown(root+"/home/bob/file", bob, bob))
	do(t, os.Chmod(root+"/tmp", 0o777|os.ModeSticky))
	do(t, os.Chmod(root+"/share", 0o777))
	for _, p := range []string{"team", "team/work"} {
		do(t, os.Lchown(root+"/"+p, 0, 500))
		do(t, os.Chmod(root+"/"+p, 0o775))
	}
	do(t, os.Link(root+"/vault/secret", root+"/home/ann/hard"))
	return root
}

func TestSafeRootRefusesLinksOfOtherUsers(t *testing.T) {
	root := homes(t)
	protected, err := os.ReadFile("/proc/sys/fs/protected_symlinks")
	if err != nil {
		t.Fatal(err)
	}
	for p, by := range map[string]string{
		"/vault/link":            "", // a link of root's
		"/home/ann/file":         "",
		"/home/ann/roots/file":   "", // no link leads there
		"/home/ann/self":         "",
		"/home/ann/dirself/file": "",
		"/tmp/byroot":            "", // the sticky bit keeps others from replacing it
		"/team/fine/x":           "",
		"/home/ann/open/self":    "", // the private group of ann
		"/home/ann/open/shadow":  "user 64001",
		"/home/ann/shared/self":  "group 500",
		"/home/ann/etc/secret":   "user 64001",
		"/home/ann/shadow":       "user 64001",
		"/home/ann/dots":         "user 64001",
		"/home/ann/there":        "user 64001",
		"/home/ann/onward":       "user 64001",
		"/home/ann/bob":          "user 64001",
		"/home/ann/roots/link":   "user 64001", // ann can move the directory away
		"/home/ann/hard":         "user 64001",
		"/tmp/bylink":            "user 64001",
		"/share/link":            "any user",
		"/team/link":             "group 500",
	} {
		both(t, func(t *testing.T, o walk.Options) {
			o.Safe = true
			_, err := read(open(t, o, root), p, 0)
			var unsafe *walk.UnsafeError
			switch {
			case p == "/tmp/bylink" && protected[0] != '0' && errors.Is(err, os.ErrPermission):
				return // the kernel itself refuses links of other users in directories such as /tmp
			case by == "" && err != nil:
				t.Errorf("%s is refused: %v", p, err)
			case by != "" && (!errors.As(err, &unsafe) || unsafe.By != by):
				t.Errorf("%s: %v, want it refused because of %s", p, err, by)
			case by != "" && (!strings.Contains(err.Error(), p) || unsafe.Hint() == ""):
				t.Errorf("%s: %v has no path or no hint", p, err)
			}
			o.Safe = false
			if _, err := read(open(t, o, root), p, 0); err != nil {
				t.Errorf("%s in a root that is not safe: %v", p, err)
			}
		})
	}
}

func TestSafeRootCreatesNothingThroughForeignLinks(t *testing.T) {
	root := homes(t)
	both(t, func(t *testing.T, o walk.Options) {
		o.Safe = true
		r := open(t, o, root)
		var unsafe *walk.UnsafeError
		for p, refused := range map[string]bool{"/home/ann/new": true, "/home/ann/shadow": true, "/home/ann/newown": false,
			"/vault/link": false, "/vault/fresh": false} {
			d, _, err := r.Follow(p)
			if errors.As(err, &unsafe) != refused {
				t.Errorf("Follow %s: %v, want refused: %v", p, err, refused)
			}
			if err == nil {
				do(t, d.Close())
			}
		}
		d, err := r.OpenDir("/home/ann")
		do(t, err)
		defer d.Close()
		for op, err := range map[string]error{"chown": d.Chown("hard", ann, ann), "chmod": d.Chmod("hard", 0o666),
			"open": second(d.Open("hard"))} {
			if !errors.As(err, &unsafe) {
				t.Errorf("%s of a hard link of ann's to root's file: %v", op, err)
			}
		}
		do(t, d.Chown("file", bob, bob))
		do(t, d.Chown("file", ann, ann))
		do(t, d.Create("hard", walk.New{Mode: 0o600, UID: ann, GID: ann},
			func(w io.Writer) error { _, err := io.WriteString(w, "ann's"); return err }))
		if data, err := os.ReadFile(root + "/vault/secret"); string(data) != "vault/secret" {
			t.Errorf("root's file has %q, %v", data, err)
		}
		do(t, os.Remove(root+"/home/ann/hard"))
		do(t, os.Link(root+"/vault/secret", root+"/home/ann/hard"))
	})
}

func second[T any](_ T, err error) error { return err }

// TestSafeRootUnderExchange has ann exchange her directory with a link to one of root's while files are read and made
// in it.
func TestSafeRootUnderExchange(t *testing.T) {
	root := homes(t)
	do(t, os.WriteFile(root+"/home/ann/own/secret", []byte("ann's"), 0o644))
	both(t, func(t *testing.T, o walk.Options) {
		o.Safe = true
		r := open(t, o, root)
		stop := exchange(root+"/home/ann/own", root+"/home/ann/etc")
		defer stop()
		for range 1000 {
			if got, err := read(r, "/home/ann/own/secret", 0); err == nil && got != "ann's" {
				t.Fatalf("root read %q", got)
			}
			if d, err := r.OpenDir("/home/ann/own"); err == nil {
				var st unix.Stat_t
				do(t, unix.Fstat(d.FD(), &st))
				do(t, d.Close())
				if st.Uid != ann {
					t.Fatalf("root opened a directory of user %d", st.Uid)
				}
			}
		}
	})
}

func TestFixedNames(t *testing.T) {
	root := homes(t)
	do(t, os.Mkdir(root+"/tmp/byann", 0o755))
	do(t, os.Lchown(root+"/tmp/byann", ann, ann))
	do(t, os.Mkdir(root+"/tmp/roots", 0o755))
	for p, fixed := range map[string]bool{
		"/": true, "/vault": true, "/home/ann": true, "/tmp": true, "/tmp/roots": true, "/team": true, "/share": true,
		"/home/ann/own": false, "/home/ann/roots": false, "/tmp/byann": false, "/team/work": false, "/home/ann/etc": false,
		"/home/ann/../../vault": false, "/vault/none": false, "/vault/secret": false, "vault": false,
	} {
		both(t, func(t *testing.T, o walk.Options) {
			o.Safe = true
			if got := open(t, o, root).Fixed(p); got != fixed {
				t.Errorf("Fixed %s is %v", p, got)
			}
		})
	}
}

func TestRefusalsNameAccounts(t *testing.T) {
	name := func(kind string) func(int) string {
		return func(id int) string { return map[int]string{ann: kind + "ann"}[id] }
	}
	for by, want := range map[string]string{"user 64001": "user U-ann", "user 64002": "user 64002",
		"group 64001": "group G-ann", "any user": "any user"} {
		e := &walk.UnsafeError{Path: "/a/b", Component: "/a", By: by, Owner: ann}
		named := e.Named(name("U-"), name("G-"))
		if text := named.Error() + named.Hint(); !strings.Contains(text, "controlled by "+want+" and") ||
			!strings.Contains(text, "of user U-ann") || !strings.Contains(named.Hint(), want) {
			t.Errorf("%s: %s", by, text)
		}
		if e.By != by || !strings.Contains(e.Error(), "of user 64001") {
			t.Errorf("the error itself has changed: %v", e)
		}
	}
}

// TestGroupsThatMayWriteControl checks that a group counts in any case, since processes have groups in which their
// users are not members, unless it is the owner's own group, or staff below /usr/local, without other members.
func TestGroupsThatMayWriteControl(t *testing.T) {
	root := homes(t)
	do(t, errors.Join(os.MkdirAll(root+"/usr/local/lib", 0o755), os.Symlink("/vault/secret", root+"/usr/local/lib/link"),
		os.Mkdir(root+"/usr/localized", 0o755), os.Symlink("/vault/secret", root+"/usr/localized/link")))
	for _, p := range []string{"/usr/local", "/usr/local/lib", "/usr/localized"} {
		do(t, errors.Join(os.Lchown(root+p, 0, 50), os.Chmod(root+p, 0o775|os.ModeSetgid)))
	}
	for name, c := range map[string]struct {
		members []uint32
		known   bool
		refused map[string]string
	}{
		"none": {nil, true, map[string]string{"/team/link": "group 500", "/home/ann/shared/self": "group 500",
			"/usr/local/lib/link": "", "/usr/localized/link": "group 50"}},
		"root": {[]uint32{0}, true, map[string]string{"/team/link": "group 500", "/home/ann/shared/self": "group 500",
			"/usr/local/lib/link": ""}},
		"the owner": {[]uint32{ann, 0}, true, map[string]string{"/team/link": "group 500", "/home/ann/shared/self": ""}},
		"another": {[]uint32{bob}, true, map[string]string{"/team/link": "group 500", "/home/ann/shared/self": "group 500",
			"/home/ann/open/self": "group 64001", "/usr/local/lib/link": "group 50"}},
		"not known": {nil, false, map[string]string{"/team/link": "group 500", "/home/ann/shared/self": "group 500",
			"/home/ann/open/self": "", "/usr/local/lib/link": "group 50"}},
		"everywhere": {[]uint32{ann}, true, map[string]string{"/share/link": "any user",
			"/home/ann/open/shadow": "user 64001", "/home/ann/open/self": ""}},
	} {
		t.Run(name, func(t *testing.T) {
			both(t, func(t *testing.T, o walk.Options) {
				o.Safe, o.Members = true, func(uint32) ([]uint32, bool) { return c.members, c.known }
				for p, by := range c.refused {
					_, err := read(open(t, o, root), p, 0)
					var unsafe *walk.UnsafeError
					if errors.As(err, &unsafe) != (by != "") || by != "" && unsafe.By != by || by == "" && err != nil {
						t.Errorf("%s: %v, want a refusal because of %q", p, err, by)
					}
				}
			})
		})
	}
}

// TestHardLinksOfUsersAreRefused has ann make a hard link to root's file in her directory, which is opened as
// a root.
func TestHardLinksOfUsersAreRefused(t *testing.T) {
	both(t, func(t *testing.T, o walk.Options) {
		o.Safe = true
		below, err := open(t, o, homes(t)).Beneath("/home/ann")
		do(t, err)
		t.Cleanup(func() { do(t, below.Close()) })
		if got, err := read(below, "/hard", 0); err == nil {
			t.Errorf("/hard is read: %q", got)
		}
		if _, err := read(below, "/file", 0); err != nil {
			t.Error(err)
		}
	})
}

// TestTemporaryHardLinksOfUsersAreRefused has ann make and remove a hard link to root's file repeatedly. The kernel
// decreases the number of names before it removes the name, so that the file can seem to have only this name.
func TestTemporaryHardLinksOfUsersAreRefused(t *testing.T) {
	both(t, func(t *testing.T, o walk.Options) {
		o.Safe = true
		root := homes(t)
		r := open(t, o, root)
		below, err := r.Beneath("/home/ann/own")
		do(t, err)
		t.Cleanup(func() { do(t, below.Close()) })
		stop, stopped := make(chan bool), make(chan bool)
		t.Cleanup(func() { close(stop); <-stopped })
		go func() {
			defer close(stopped)
			for f := root + "/home/ann/own/moment"; ; {
				select {
				case <-stop:
					return
				default:
					_ = os.Link(root+"/vault/secret", f)
					_ = os.Remove(f)
				}
			}
		}()
		d, err := r.OpenDir("/home/ann/own")
		do(t, err)
		t.Cleanup(func() { do(t, d.Close()) })
		for how, open := range map[string]func() (*os.File, error){
			"Root.OpenFile": func() (*os.File, error) { return r.OpenFile("/home/ann/own/moment", 0) },
			"below":         func() (*os.File, error) { return below.OpenFile("/moment", 0) },
			"Dir.Open":      func() (*os.File, error) { return d.Open("moment") },
		} {
			for end := time.Now().Add(500 * time.Millisecond); time.Now().Before(end); {
				if f, err := open(); err == nil {
					t.Errorf("%s opens root's file", how)
					do(t, f.Close())
					break
				}
			}
		}
	})
}
