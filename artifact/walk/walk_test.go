package walk_test

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/corpus-agent/corpus-agent/artifact/walk"
)

// both runs a conformance test with the kernel's walk and with the checked walk.
func both(t *testing.T, test func(t *testing.T, o walk.Options)) {
	t.Run("kernel", func(t *testing.T) {
		fd, err := unix.Openat2(unix.AT_FDCWD, "/", &unix.OpenHow{Flags: unix.O_PATH})
		if err != nil {
			t.Skipf("this kernel has no openat2: %v", err)
		}
		_ = unix.Close(fd)
		test(t, walk.Options{})
	})
	t.Run("checked", func(t *testing.T) { test(t, walk.Options{Checked: true}) })
}

func do(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// open opens a root at a directory of the test.
func open(t testing.TB, o walk.Options, dir string) *walk.Root {
	t.Helper()
	o.Dir = dir
	r, err := walk.Open(o)
	do(t, err)
	t.Cleanup(func() { _ = r.Close() })
	return r
}

// plant makes a root beside a directory that must not be reached. A name that ends in a slash is a directory, one with
// a target is a link, and any other is a file with its own name as content.
func plant(t testing.TB, entries ...string) (root, outside string) {
	t.Helper()
	base := t.TempDir()
	do(t, os.Chmod(base, 0o755))
	do(t, os.Chmod(filepath.Dir(base), 0o755))
	root, outside = base+"/root", base+"/outside"
	do(t, os.Mkdir(root, 0o755))
	do(t, os.Mkdir(outside, 0o755))
	do(t, os.WriteFile(outside+"/secret", []byte("secret"), 0o644))
	for _, e := range entries {
		name, target, link := strings.Cut(e, " -> ")
		p := root + "/" + name
		do(t, os.MkdirAll(filepath.Dir(p), 0o755))
		switch {
		case link:
			do(t, os.Symlink(strings.ReplaceAll(target, "OUTSIDE", outside), p))
		case strings.HasSuffix(name, "/"):
			do(t, os.MkdirAll(p, 0o755))
		default:
			do(t, os.WriteFile(p, []byte(name), 0o644))
		}
	}
	return root, outside
}

func read(r *walk.Root, path string, flags int) (string, error) {
	f, err := r.OpenFile(path, unix.O_RDONLY|unix.O_NONBLOCK|flags)
	if err != nil {
		return "", err
	}
	defer f.Close()
	data, err := io.ReadAll(f)
	return string(data), err
}

func TestPathsMeanTheSameInsideARoot(t *testing.T) {
	root, _ := plant(t, "etc/file", "srv/a/b/", "srv/a/file", "srv/a/b/up -> ../file", "var/abs -> /srv/a/b",
		"var/out -> OUTSIDE/secret",
		"var/dots -> ../../../../../../outside/secret", "var/loop -> loop", "var/to -> /", "var/dirlink -> /srv/a/",
		"var/none -> /nowhere", "var/filelink -> /etc/file",
		"proc -> /proc", "outside -> OUTSIDE")
	for i := range 41 {
		do(t, os.Symlink(fmt.Sprintf("c%d", i), fmt.Sprintf("%s/c%d", root, i+1)))
	}
	do(t, os.WriteFile(root+"/c0", []byte("end"), 0o644))
	long := "/" + strings.Repeat("x", 256)
	for _, c := range []struct {
		path  string
		flags int
		want  string
		err   error
	}{
		{"/etc/file", 0, "etc/file", nil},
		{"//etc/./file", 0, "etc/file", nil},
		{"/../../etc/file", 0, "etc/file", nil},
		{"/etc/../etc/file", 0, "etc/file", nil},
		{"/var/abs/up", 0, "srv/a/file", nil},
		{"/var/abs/../file", 0, "srv/a/file", nil},
		{"/var/dirlink/file", 0, "srv/a/file", nil},
		{"/var/dirlink/b/../file", 0, "srv/a/file", nil},
		{"/var/to/etc/file", 0, "etc/file", nil},
		{"/var/filelink", 0, "etc/file", nil},
		{"/c40", 0, "end", nil},
		{"/c41", 0, "", unix.ELOOP},
		{"/var/out", 0, "", unix.ENOENT},
		{"/var/dots", 0, "", unix.ENOENT}, // root/outside leads to a path that is not in the root
		{"/outside/secret", 0, "", unix.ENOENT},
		{"/var/none", 0, "", unix.ENOENT},
		{"/var/loop", 0, "", unix.ELOOP},
		{"/var/loop/x", 0, "", unix.ELOOP},
		{"/var/loop", unix.O_NOFOLLOW, "", unix.ELOOP},
		{"/var/filelink", unix.O_NOFOLLOW, "", unix.ELOOP},
		{"/var/filelink/", unix.O_NOFOLLOW, "", unix.ENOTDIR},
		{"/etc/file/", 0, "", unix.ENOTDIR},
		{"/etc/file/x", 0, "", unix.ENOTDIR},
		{"/etc/file/..", 0, "", unix.ENOTDIR},
		{"/etc/file", unix.O_DIRECTORY, "", unix.ENOTDIR},
		{"/none", 0, "", unix.ENOENT},
		{"/none/..", 0, "", unix.ENOENT},
		{long, 0, "", unix.ENAMETOOLONG},
		{strings.Repeat("/etc/..", 600), 0, "", unix.ENAMETOOLONG},
		{"/a\x00b", 0, "", unix.EINVAL},
		{"etc/file", 0, "", walk.ErrRelative},
		{"", 0, "", walk.ErrRelative},
	} {
		both(t, func(t *testing.T, o walk.Options) {
			for _, safe := range []bool{false, true} {
				o.Safe = safe
				got, err := read(open(t, o, root), c.path, c.flags)
				if got != c.want || !errors.Is(err, c.err) {
					t.Errorf("%.60s (flags %#x, safe %v): %q, %v, want %q, %v", c.path, c.flags, safe, got, err, c.want, c.err)
				}
				var loop *walk.Loop
				if errors.Is(err, unix.ELOOP) && (!errors.As(err, &loop) || !strings.HasSuffix(loop.Hint(), c.path+" [C073]")) {
					t.Errorf("the error %q has no hint that names %q", err, c.path)
				}
				if err != nil && !strings.Contains(err.Error(), walk.Clip(c.path)) {
					t.Errorf("the error %q does not name %q", err, c.path)
				}
			}
		})
	}
}

// TestMagicLinksAreNotFollowed checks that links in /proc, which lead to files regardless of their text, are not
// followed.
func TestMagicLinksAreNotFollowed(t *testing.T) {
	both(t, func(t *testing.T, o walk.Options) {
		r := open(t, o, "/proc")
		for _, p := range []string{"/self/root/etc/passwd", "/self/cwd/.", "/self/exe", "/thread-self/root/.."} {
			if _, err := read(r, p, 0); !errors.Is(err, unix.ELOOP) {
				t.Errorf("%s: %v, want ELOOP", p, err)
			}
		}
		if got, err := read(r, "/self/comm", 0); err != nil || got == "" {
			t.Errorf("/self/comm: %q, %v", got, err)
		}
	})
}

// TestBothWalksAgree compares the two on random trees and paths.
func TestBothWalksAgree(t *testing.T) {
	rnd := rand.New(rand.NewPCG(1, 2))
	names := []string{"a", "b", "c", "..", ".", "/", "d/", "a/b", "../a", "/a", "/b/..", "c/../..", "//a//b/"}
	pick := func() string { return names[rnd.IntN(len(names))] }
	for range 40 {
		root, _ := plant(t)
		for range 12 {
			p := filepath.Join(root, filepath.Clean("/"+pick()+"/"+pick()+"/"+pick()))
			_ = os.MkdirAll(filepath.Dir(p), 0o755)
			switch rnd.IntN(3) {
			case 0:
				_ = os.Mkdir(p, 0o755)
			case 1:
				_ = os.WriteFile(p, nil, 0o644)
			default:
				_ = os.Symlink(pick()+strings.TrimPrefix(pick(), "/"), p)
			}
		}
		kernel, checked := open(t, walk.Options{}, root), open(t, walk.Options{Checked: true}, root)
		for range 60 {
			p := "/" + pick() + "/" + pick() + "/" + pick() + "/" + pick()
			for _, flags := range []int{unix.O_PATH, unix.O_PATH | unix.O_NOFOLLOW, unix.O_RDONLY,
				unix.O_RDONLY | unix.O_DIRECTORY, unix.O_PATH | unix.O_DIRECTORY | unix.O_NOFOLLOW} {
				want, got := identity(kernel, p, flags), identity(checked, p, flags)
				if want != got {
					t.Errorf("%s with flags %#x: the kernel finds %s, the checked walk %s", p, flags, want, got)
				}
			}
		}
	}
}

// identity returns the file to which a path leads, or the error.
func identity(r *walk.Root, p string, flags int) string {
	fd, err := r.Openat(p, flags)
	if err != nil {
		return err.Error()
	}
	defer unix.Close(fd)
	var st unix.Stat_t
	_ = unix.Fstat(fd, &st)
	return fmt.Sprint(st.Dev, st.Ino)
}

// TestRacesNeverLeadOut moves directories and links while paths are opened.
func TestRacesNeverLeadOut(t *testing.T) {
	both(t, func(t *testing.T, o walk.Options) {
		root, outside := plant(t, "d/", "deep/er/x/", "l -> OUTSIDE", "up -> ../../../outside")
		do(t, os.Mkdir(outside+"/moved", 0o755))
		r := open(t, o, root)
		stop := exchange(root+"/d", root+"/l", root+"/deep/er", outside+"/moved/er")
		defer stop()
		for range 3000 {
			for _, p := range []string{"/d/secret", "/d/../../outside/secret", "/deep/er/../../../outside/secret",
				"/deep/er/x/../../../secret", "/deep/er/../../secret"} {
				if got, err := read(r, p, 0); err == nil {
					t.Fatalf("%s has the content %q from outside of the root", p, got)
				}
				if d, _, err := r.Parent(p); err == nil {
					if _, err := d.Lstat("secret"); err == nil {
						t.Fatalf("the directory of %s is outside of the root", p)
					}
					do(t, d.Close())
				}
			}
		}
	})
}

// exchange exchanges pairs of paths until it is stopped, and then restores them. A path that does not exist is moved
// back and forth.
func exchange(paths ...string) (stop func()) {
	end := make(chan struct{})
	var moving sync.WaitGroup
	for i := 0; i+1 < len(paths); i += 2 {
		a, b := paths[i], paths[i+1]
		moving.Go(func() {
			for swapped := false; ; swapped = !swapped {
				select {
				case <-end:
					if !swapped {
						return
					}
				default:
				}
				if unix.Renameat2(unix.AT_FDCWD, a, unix.AT_FDCWD, b, unix.RENAME_EXCHANGE) != nil {
					_ = os.Rename(a, b)
					_ = os.Rename(b, a)
				}
			}
		})
	}
	return func() { close(end); moving.Wait() }
}

func TestErrorsOfTheHostAreNotAbsence(t *testing.T) {
	both(t, func(t *testing.T, o walk.Options) {
		root, _ := plant(t, "loop -> loop", "file", "shut/in")
		do(t, os.Chmod(root+"/shut", 0))
		t.Cleanup(func() { _ = os.Chmod(root+"/shut", 0o755) })
		r := open(t, o, root)
		for p, want := range map[string]bool{"/none": true, "/none/x": true, "/loop": false,
			"/file/x": false, "/shut/in": false} {
			if p == "/shut/in" && os.Geteuid() == 0 {
				continue // TestAsOrdinaryUser checks this
			}
			_, err := r.OpenFile(p, unix.O_PATH)
			found, err := walk.Found(err)
			if found || (err == nil) != want {
				t.Errorf("%s: found %v, %v, want absent: %v", p, found, err, want)
			}
		}
		if found, err := walk.Found(nil); !found || err != nil {
			t.Errorf("an existing file: found %v, %v", found, err)
		}
	})
}

// TestAsOrdinaryUser runs the tests again as the user nobody.
func TestAsOrdinaryUser(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("this run is as an ordinary user")
	}
	cmd := exec.Command("/proc/self/exe", "-test.run=^Test(Paths|Both|Races|Errors|Dir)", "-test.v")
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: 65534, Gid: 65534}}
	cmd.Dir, cmd.Env = "/", []string{"HOME=/", "TMPDIR=/tmp"}
	out, err := cmd.CombinedOutput()
	if err != nil || !strings.Contains(string(out), "--- PASS: TestErrorsOfTheHostAreNotAbsence") {
		t.Errorf("as an ordinary user: %v\n%s", err, out)
	}
}

func TestDirChangesLinksNotTargets(t *testing.T) {
	both(t, func(t *testing.T, o walk.Options) {
		root, outside := plant(t, "d/file", "d/out -> OUTSIDE/secret", "d/dirout -> OUTSIDE", "e/")
		r := open(t, o, root)
		d, name, err := r.Parent("/d/out")
		do(t, err)
		defer d.Close()
		before, err := os.Stat(outside + "/secret")
		do(t, err)
		if target, err := d.Readlink(name); err != nil || target != outside+"/secret" {
			t.Errorf("Readlink: %q, %v", target, err)
		}
		if err := d.Chmod(name, 0o777); !errors.Is(err, unix.EOPNOTSUPP) {
			t.Errorf("a link got a mode: %v", err)
		}
		if _, err := d.Open(name); !errors.Is(err, unix.ELOOP) {
			t.Errorf("a link was opened: %v", err)
		}
		if _, err := d.OpenDir("dirout"); err == nil {
			t.Error("a link was opened as a directory")
		}
		do(t, d.Chown(name, os.Geteuid(), os.Getegid()))
		do(t, d.Create(name, walk.New{Mode: 0o640, UID: -1, GID: -1},
			func(w io.Writer) error { _, err := io.WriteString(w, "mine"); return err }))
		do(t, d.Symlink(outside, "file"))
		do(t, d.RemoveAll(t.Context(), "dirout"))
		do(t, d.RemoveAll(t.Context(), "dirout"))
		if after, err := os.Stat(outside + "/secret"); err != nil || after.Mode() != before.Mode() ||
			after.ModTime() != before.ModTime() {
			t.Errorf("a file outside of the root was changed: %v", err)
		}
		if data, err := os.ReadFile(root + "/d/out"); string(data) != "mine" {
			t.Errorf("the file has %q, %v", data, err)
		}
		if info, err := os.Lstat(root + "/d/out"); err != nil || info.Mode() != 0o640 {
			t.Errorf("the file has mode %v, %v", info.Mode(), err)
		}
		sub, err := d.Mkdir("sub", walk.New{Mode: 0o777 | fs.ModeSticky, UID: -1, GID: -1})
		do(t, err)
		defer sub.Close()
		if info, err := os.Lstat(root + "/d/sub"); err != nil || info.Mode() != fs.ModeDir|fs.ModeSticky|0o777 {
			t.Errorf("the directory has mode %v, %v", info.Mode(), err)
		}
		e, err := r.OpenDir("/e")
		do(t, err)
		defer e.Close()
		do(t, d.Rename("out", e, "moved"))
		if names, err := e.ReadDir(); err != nil || strings.Join(names, " ") != "moved" {
			t.Errorf("e has %q, %v", names, err)
		}
		do(t, e.Unlink("moved"))
		if names, err := d.ReadDir(); err != nil || strings.Join(names, " ") != "file sub" {
			t.Errorf("d has %q, %v", names, err)
		}
		for _, bad := range []string{"", "..", "a/b", "a\x00b"} {
			if err := d.Unlink(bad); !errors.Is(err, unix.EINVAL) {
				t.Errorf("the name %q: %v, want EINVAL", bad, err)
			}
		}
		if err := d.Create("late", walk.New{Mode: 0o600, UID: -1, GID: -1},
			func(io.Writer) error { return errors.New("the disk is full") }); err == nil {
			t.Error("a file without content was made")
		}
		if names, _ := d.ReadDir(); len(names) != 2 {
			t.Errorf("a failed Create left %q", names)
		}
	})
}

func TestFollowFindsWhereAFileWouldBeMade(t *testing.T) {
	both(t, func(t *testing.T, o walk.Options) {
		root, _ := plant(t, "etc/file", "a/new -> ../etc/made", "a/abs -> /etc/file", "a/chain -> new",
			"a/out -> OUTSIDE/new", "a/loop -> loop")
		r := open(t, o, root)
		for p, want := range map[string]string{"/a/new": "/etc made", "/a/chain": "/etc made", "/a/abs": "/etc file",
			"/etc/../a/x": "/a x", "/": "/ .", "/a/out": "", "/a/loop": ""} {
			got := ""
			d, name, err := r.Follow(p)
			if err == nil {
				way, err := os.Readlink(fmt.Sprintf("/proc/self/fd/%d", d.FD()))
				do(t, errors.Join(err, d.Close()))
				got = "/" + strings.TrimPrefix(strings.TrimPrefix(way, r.Name()), "/") + " " + name
			}
			if got != want {
				t.Errorf("%s leads to %q (%v), want %q", p, got, err, want)
			}
		}
	})
}
