package host_test

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/corpus-agent/corpus-agent/state/diag"
	"github.com/corpus-agent/corpus-agent/state/host"
	"github.com/corpus-agent/corpus-agent/state/host/machine"
)

// TestFilesAsOrdinaryUser runs the tests of files again as the user nobody.
func TestFilesAsOrdinaryUser(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("all tests of this run are run by an ordinary user")
	}
	cmd := exec.Command("/proc/self/exe", "-test.run=^Test(Tree|Write|Temp)", "-test.v")
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: 65534, Gid: 65534}}
	cmd.Dir, cmd.Env = "/", []string{"HOME=/", "TMPDIR=/tmp", "PATH=" + os.Getenv("PATH")}
	out, err := cmd.CombinedOutput()
	if err != nil || !strings.Contains(string(out), "--- PASS: TestWriteKeepsModeAndAttributes") {
		t.Errorf("as an ordinary user: %v\n%s", err, out)
	}
}

// rooted returns the files of a host below a root, and a directory beside the root that must stay unchanged.
func rooted(t testing.TB) (files host.Files, root, outside string) {
	t.Helper()
	dir := t.TempDir()
	root, outside = dir+"/root", dir+"/outside"
	for _, d := range []string{root, root + "/etc", root + "/tmp", outside, outside + "/sub"} {
		must(t, os.Mkdir(d, 0o755))
	}
	must(t, os.WriteFile(outside+"/secret", []byte(secret), 0o640))
	must(t, os.WriteFile(outside+"/sealed", nil, 0o600))
	h, err := machine.New(host.Options{Root: root})
	must(t, err)
	return h.Files, root, outside
}

const secret = "nobody may see this"

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// snapshot describes all properties of a directory that an operation could change.
func snapshot(t testing.TB, dir string) string {
	t.Helper()
	var b strings.Builder
	must(t, filepath.WalkDir(dir, func(p string, _ fs.DirEntry, err error) error {
		info, statErr := os.Lstat(p)
		if err := errors.Join(err, statErr); err != nil {
			return err
		}
		st := info.Sys().(*syscall.Stat_t)
		fmt.Fprintln(&b, p, info.Mode(), st.Uid, st.Gid, st.Nlink, st.Mtim, st.Ino)
		return nil
	}))
	return b.String()
}

// operations returns all operations on a path.
func operations(f host.Files) map[string]func(p string) error {
	at := time.Unix(1000, 0)
	content := func() host.NewFile { return host.NewFile{Content: strings.NewReader("mine"), UID: -1, GID: -1} }
	return map[string]func(string) error{
		"write":    func(p string) error { return f.Write(p, content()) },
		"mkdir":    func(p string) error { return f.Mkdir(p+"/made", 0o777) },
		"symlink":  func(p string) error { return f.Symlink("x", p+"/link") },
		"link":     func(p string) error { return f.Link("/etc/own", p+"/linked") },
		"linkfrom": func(p string) error { return f.Link(p, "/etc/stolen") },
		"rename":   func(p string) error { return f.Rename("/etc/own", p+"/moved") },
		"steal":    func(p string) error { return f.Rename(p+"/secret", "/etc/stolen") },
		"remove":   func(p string) error { return f.Remove(p + "/secret") },
		"clear":    func(p string) error { return f.RemoveAll(p + "/sub") },
		"chmod":    func(p string) error { return f.Chmod(p, 0o777) },
		"chown":    func(p string) error { return f.Chown(p+"/secret", os.Geteuid(), os.Getegid()) },
		"chtimes":  func(p string) error { return f.Chtimes(p, at, at) },
	}
}

func TestTreeNeverLeavesItsRoot(t *testing.T) {
	probe, _, _ := rooted(t)
	for name := range operations(probe) {
		t.Run(name, func(t *testing.T) {
			f, root, outside := rooted(t)
			must(t, os.WriteFile(root+"/etc/own", []byte("own"), 0o644))
			must(t, os.WriteFile(outside+"/sub/f", nil, 0o644))
			before := snapshot(t, outside)
			for link, target := range map[string]string{
				"absolute": outside, "relative": "../../outside", "up": "../../../../../../../../" + outside[1:],
				"file": outside + "/secret", "root": "/", "parent": "..", "self": "/proc/self/root" + outside,
			} {
				must(t, os.Symlink(target, root+"/etc/"+link))
				p := "/etc/" + link
				for _, p := range []string{p, p + "/", p + "/.", p + "/..", p + "/../../../outside", p + "/secret", p + outside} {
					_ = operations(f)[name](p)
					checkHidden(t, f, p)
				}
			}
			if after := snapshot(t, outside); after != before {
				t.Errorf("outside of the root there was\n%sand now\n%s", before, after)
			}
		})
	}
}

// checkHidden fails the test if a path shows content from outside of the root.
func checkHidden(t testing.TB, f host.Files, p string) {
	t.Helper()
	data, _ := f.ReadFile(p)
	if r, err := f.Open(p); err == nil {
		more, _ := io.ReadAll(r)
		data = append(data, more...)
		_ = r.Close()
	}
	names, _ := f.ReadDir(p)
	if strings.Contains(string(data), secret) || slices.Contains(names, "sealed") {
		t.Errorf("%s shows content from outside of the root: %q %q", p, data, names)
	}
}

// TestTreeStaysInItsRootDuringRaces replaces a directory by a link to the outside while the host writes to it.
func TestTreeStaysInItsRootDuringRaces(t *testing.T) {
	f, root, outside := rooted(t)
	must(t, os.Mkdir(root+"/etc/real", 0o755))
	must(t, os.Symlink(outside, root+"/etc/bad"))
	before := snapshot(t, outside)
	stop := make(chan struct{})
	var swapping sync.WaitGroup
	swapping.Go(func() {
		for {
			select {
			case <-stop:
				return
			default:
			}
			_ = os.Rename(root+"/etc/real", root+"/etc/d")
			_ = os.Rename(root+"/etc/d", root+"/etc/real")
			_ = os.Rename(root+"/etc/bad", root+"/etc/d")
			_ = os.Rename(root+"/etc/d", root+"/etc/bad")
		}
	})
	for range 200 {
		for _, attempt := range operations(f) {
			_ = attempt("/etc/d")
		}
		checkHidden(t, f, "/etc/d/secret")
	}
	close(stop)
	swapping.Wait()
	if after := snapshot(t, outside); after != before {
		t.Errorf("outside of the root there was\n%sand now\n%s", before, after)
	}
}

func TestTreeFollowsLinksAsTheKernelDoes(t *testing.T) {
	f, root, _ := rooted(t)
	for _, d := range []string{"/srv", "/srv/a", "/srv/a/b", "/var"} {
		must(t, os.Mkdir(root+d, 0o755))
	}
	must(t, os.Symlink("/srv/a/b", root+"/var/here"))
	must(t, os.Symlink("../file", root+"/srv/a/b/link")) // is /srv/a/file, by every path to the link
	must(t, os.Symlink("/etc/absolute", root+"/var/absolute"))
	for path, lands := range map[string]string{
		"/var/here/link": "/srv/a/file", "/var/absolute": "/etc/absolute", "/var/here/../up": "/srv/a/up",
		"/var//plain/": "/var/plain",
	} {
		must(t, f.Write(path, host.NewFile{Content: strings.NewReader(path), UID: -1, GID: -1}))
		if data, err := os.ReadFile(root + lands); string(data) != path {
			t.Errorf("writing %s gives %s the content %q, %v", path, lands, data, err)
		}
		if data, err := f.ReadFile(strings.TrimSuffix(path, "/")); string(data) != path {
			t.Errorf("reading %s gives %q, %v", path, data, err)
		}
	}
	for _, link := range []string{"/var/absolute", "/srv/a/b/link"} {
		if info, err := f.Lstat(link); err != nil || !info.IsLink() {
			t.Errorf("%s is not a link any more: %v", link, err)
		}
	}
}

func TestTreeReportsMistakes(t *testing.T) {
	f, root, _ := rooted(t)
	must(t, os.Symlink("loop", root+"/etc/loop"))
	must(t, syscall.Mkfifo(root+"/etc/pipe", 0o600))
	must(t, os.WriteFile(root+"/etc/file", nil, 0o600))
	_, resolving := f.Resolve("/etc/loop")
	_, relative := f.Stat("etc/file")
	_, pipe := f.ReadFile("/etc/pipe")
	_, zero := f.ReadFile("/etc/a\x00b")
	_, listing := f.ReadDir("/etc/file")
	_, missing := f.Open("/etc/none")
	for name, c := range map[string]struct {
		err  error
		want string
	}{
		"a loop":                 {resolving, "too many levels"},
		"a relative path":        {relative, "not an absolute path"},
		"relative change":        {f.Remove("etc/file"), "not an absolute path"},
		"a pipe":                 {pipe, "not a regular file"},
		"a zero byte":            {zero, "invalid argument"},
		"a listed file":          {listing, "not a directory"},
		"a missing file":         {missing, "no such file"},
		"a removed missing file": {f.Remove("/etc/none"), "no such file"},
		"mkdir again":            {f.Mkdir("/etc", 0o755), "exists"},
		"long name":              {f.Mkdir("/"+strings.Repeat("x", 300), 0o755), "too long"},
		"a full dir":             {f.Remove("/etc"), "not empty"},
	} {
		if c.err == nil || !strings.Contains(c.err.Error(), c.want) {
			t.Errorf("%s: %v, want %q", name, c.err, c.want)
		}
	}
	_, below := f.Open("/etc/file/below")
	for _, err := range []error{resolving, below} {
		if hint := diag.HintOf(err); !strings.Contains(hint, "namei -l /etc/") {
			t.Errorf("%v has the hint %q", err, hint)
		}
	}
	if !errors.Is(missing, fs.ErrNotExist) {
		t.Errorf("the error of a missing file is %v, which is not fs.ErrNotExist", missing)
	}
}

func TestTreeRemoveAllStopsAtLinks(t *testing.T) {
	f, root, outside := rooted(t)
	must(t, os.MkdirAll(root+"/srv/a/b/c", 0o700))
	must(t, os.WriteFile(root+"/srv/a/f", nil, 0o400))
	must(t, os.WriteFile(root+"/etc/kept", nil, 0o644))
	must(t, os.Symlink("/etc", root+"/srv/a/b/etc"))
	must(t, os.Symlink(outside, root+"/srv/a/out"))
	must(t, f.RemoveAll("/srv"))
	must(t, f.RemoveAll("/srv/gone/already"))
	must(t, os.Symlink("/etc", root+"/link"))
	must(t, f.RemoveAll("/link"))
	if _, err := os.Lstat(root + "/srv"); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("/srv is still there: %v", err)
	}
	for _, p := range []string{root + "/etc/kept", outside + "/secret"} {
		if _, err := os.Lstat(p); err != nil {
			t.Errorf("%s, behind a link, was removed: %v", p, err)
		}
	}
}

func TestTreeModesIgnoreUmask(t *testing.T) {
	f, root, _ := rooted(t)
	must(t, f.Mkdir("/srv", 0o777|fs.ModeSetgid|fs.ModeSticky))
	mode(t, root+"/srv", 0o777|fs.ModeDir|fs.ModeSetgid|fs.ModeSticky)
	must(t, f.Symlink("srv", "/link"))
	if err := f.Chmod("/link", 0o700); err == nil {
		t.Error("a link was given a mode")
	}
	mode(t, root+"/srv", 0o777|fs.ModeDir|fs.ModeSetgid|fs.ModeSticky)
	must(t, f.Chmod("/srv", 0o700))
	mode(t, root+"/srv", 0o700|fs.ModeDir)
	at := time.Unix(86400, 5000)
	must(t, f.Chtimes("/srv", at, at))
	info, err := f.Stat("/link")
	if err != nil || !info.Modified.Equal(at) || !info.Accessed.Equal(at) || !info.IsDir() {
		t.Errorf("after setting times to %v a stat gives %+v, %v", at, info, err)
	}
}

func mode(t *testing.T, p string, want fs.FileMode) {
	t.Helper()
	info, err := os.Lstat(p)
	if err != nil || info.Mode() != want {
		t.Errorf("%s has mode %v, want %v (%v)", p, info.Mode(), want, err)
	}
}

// recorder lists the recorded subjects and refuses the one that is named refuse.
type recorder struct {
	subjects []string
	refuse   string
}

func (r *recorder) Kept() error { return nil }

func (r *recorder) Replacing(s host.Subject) error {
	r.subjects = append(r.subjects, s.String())
	if s.Name == r.refuse {
		return errors.New("the disk of before-images is full")
	}
	return nil
}

func TestTreeCallsTheRecorderFirst(t *testing.T) {
	root := t.TempDir()
	r := &recorder{refuse: "/keep"}
	h, err := machine.New(host.Options{Root: root, Recorder: r})
	must(t, err)
	must(t, os.WriteFile(root+"/keep", []byte("old"), 0o644))
	must(t, h.Files.Mkdir("/d", 0o755))
	must(t, h.Files.Symlink("../keep", "/d/link"))
	must(t, h.Files.Mkdir("/d/sub", 0o755))
	must(t, h.Files.Rename("/d/sub", "/d/moved"))
	must(t, h.Files.Chmod("/d/moved", 0o700))
	r.subjects = nil
	if err := h.Files.Write("/d/link", host.NewFile{Content: strings.NewReader("new"), UID: -1, GID: -1}); err == nil {
		t.Error("a write that cannot be recorded has no error")
	}
	if data, _ := os.ReadFile(root + "/keep"); string(data) != "old" {
		t.Errorf("a file that could not be recorded is %q now", data)
	}
	must(t, h.Files.RemoveAll("/d"))
	below := []string{"file /d/link", "file /d/moved", "file /d"} // first all, then each before its removal
	want := slices.Concat([]string{"file /keep"}, below, below)
	if !slices.Equal(r.subjects, want) {
		t.Errorf("the recorded subjects are %q, want %q", r.subjects, want)
	}
}

func TestTreePermissionErrorHasHint(t *testing.T) {
	if os.Geteuid() == 0 {
		t.Skip("root may write anywhere; TestFilesAsOrdinaryUser runs this test as the user nobody")
	}
	f, root, _ := rooted(t)
	must(t, os.Chmod(root+"/etc", 0o555))
	for name, attempt := range operations(f) {
		err := attempt("/etc/new")
		if errors.Is(err, fs.ErrPermission) && diag.HintOf(err) == "" {
			t.Errorf("%s: %v has no hint", name, err)
		}
	}
	if err := f.Mkdir("/etc/new", 0o755); !errors.Is(err, fs.ErrPermission) {
		t.Errorf("making a directory without permission: %v", err)
	}
	if f.CanChown() {
		t.Error("an ordinary user can give files away")
	}
}

// FuzzTree does arbitrary operations inside a root, links included, and checks that the outside stays the same.
func FuzzTree(f *testing.F) {
	f.Add("/etc/a", "../../outside", "/etc/a/secret")
	f.Add("/etc/a", "/", "/etc/a/../../outside/secret")
	f.Add("/a", "/proc/self/root", "/a/tmp")
	f.Add("/etc/../a", ".", "/a/a/a/..")
	f.Fuzz(func(t *testing.T, link, target, p string) {
		files, _, outside := rooted(t)
		before := snapshot(t, outside)
		_ = files.Symlink(target, link)
		for _, attempt := range operations(files) {
			_ = attempt(p)
			checkHidden(t, files, p)
			checkHidden(t, files, link+"/secret")
		}
		if after := snapshot(t, outside); after != before {
			t.Errorf("outside of the root there was\n%sand now\n%s", before, after)
		}
	})
}

// TestSparseFilesAreNotReadIntoMemory reads a sparse file of 100 GB.
func TestSparseFilesAreNotReadIntoMemory(t *testing.T) {
	root := t.TempDir()
	if err := errors.Join(os.WriteFile(filepath.Join(root, "f"), nil, 0o644),
		os.Truncate(filepath.Join(root, "f"), 100<<30)); err != nil {
		t.Skip("this filesystem has no such files:", err)
	}
	h, err := machine.New(host.Options{Root: root})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := h.Files.ReadFile("/f"); err == nil || !strings.Contains(err.Error(), "is not read into memory") ||
		diag.HintOf(err) == "" {
		t.Errorf("the error is %v", err)
	}
}
