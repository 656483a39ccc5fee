package host_test

import (
	"errors"
	"io"
	"io/fs"
	"os"
	"path"
	"strings"
	"syscall"
	"testing"
	"testing/iotest"

	"golang.org/x/sys/unix"

	"github.com/corpus-agent/corpus-agent/state/diag"
	"github.com/corpus-agent/corpus-agent/state/host"
	"github.com/corpus-agent/corpus-agent/state/host/machine"
)

func text(s string) host.NewFile {
	return host.NewFile{Content: strings.NewReader(s), UID: -1, GID: -1}
}

func TestWriteKeepsModeAndAttributes(t *testing.T) {
	f, root, _ := rooted(t)
	file := root + "/etc/motd"
	must(t, os.WriteFile(file, []byte("old"), 0o600))
	must(t, os.Chmod(file, 0o640|fs.ModeSetuid))
	attributes := unix.Setxattr(file, "user.note", []byte("kept"), 0) == nil
	must(t, f.Write("/etc/motd", text("new")))
	mode(t, file, 0o640|fs.ModeSetuid)
	if data, _ := os.ReadFile(file); string(data) != "new" {
		t.Errorf("the content is %q", data)
	}
	buf := make([]byte, 16)
	if n, err := unix.Getxattr(file, "user.note", buf); attributes && (err != nil || string(buf[:n]) != "kept") {
		t.Errorf("an extended attribute is %q, %v", buf[:max(n, 0)], err)
	}
	expectOnly(t, root+"/etc", "motd")
}

// expectOnly fails the test if a directory has other entries than the given ones.
func expectOnly(t *testing.T, dir string, want ...string) {
	t.Helper()
	entries, err := os.ReadDir(dir)
	must(t, err)
	var got []string
	for _, e := range entries {
		got = append(got, e.Name())
	}
	if strings.Join(got, " ") != strings.Join(want, " ") {
		t.Errorf("%s has %q, want %q", dir, got, want)
	}
}

func TestWriteSetsGivenModeAndOwner(t *testing.T) {
	f, root, _ := rooted(t)
	bits := fs.FileMode(0o751)
	content := text("x")
	content.Mode = &bits
	if os.Geteuid() == 0 {
		content.UID, content.GID = 5, 60
	}
	must(t, f.Write("/etc/x", content))
	mode(t, root+"/etc/x", 0o751)
	info, err := f.Stat("/etc/x")
	if err != nil || content.UID >= 0 && (info.UID != 5 || info.GID != 60) {
		t.Errorf("the owner is %d:%d, %v", info.UID, info.GID, err)
	}
}

func TestNewFilesHaveTheUmask(t *testing.T) {
	f, root, _ := rooted(t)
	must(t, f.Write("/etc/x", text("x")))
	must(t, os.WriteFile(root+"/etc/y", nil, 0o666))
	like, err := os.Lstat(root + "/etc/y")
	must(t, err)
	mode(t, root+"/etc/x", like.Mode())
	if 0o666&^f.Umask() != like.Mode() {
		t.Errorf("the umask is %v, and a new file has mode %v", f.Umask(), like.Mode())
	}
}

func TestFailedWriteKeepsTheOldFile(t *testing.T) {
	f, root, _ := rooted(t)
	must(t, os.WriteFile(root+"/etc/motd", []byte("old"), 0o644))
	broken := errors.New("the connection was closed")
	content := text("")
	content.Content = io.MultiReader(strings.NewReader("new"), iotest.ErrReader(broken))
	if err := f.Write("/etc/motd", content); !errors.Is(err, broken) {
		t.Errorf("a write whose content fails gives %v", err)
	}
	if data, _ := os.ReadFile(root + "/etc/motd"); string(data) != "old" {
		t.Errorf("the content is %q", data)
	}
	expectOnly(t, root+"/etc", "motd")
}

func TestWriteReplacesOnlyFiles(t *testing.T) {
	f, root, _ := rooted(t)
	must(t, syscall.Mkfifo(root+"/etc/pipe", 0o600))
	must(t, os.Mkdir(root+"/etc/sub", 0o755))
	for _, p := range []string{"/etc/pipe", "/etc/sub", "/", "/etc/."} {
		if err := f.Write(p, text("x")); err == nil {
			t.Errorf("%s was replaced", p)
		}
	}
	expectOnly(t, root+"/etc", "pipe", "sub")
}

func TestWriteOfImmutableFileHasHint(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("only root makes a file immutable")
	}
	f, root, _ := rooted(t)
	file, err := os.Create(root + "/etc/motd")
	must(t, err)
	defer file.Close()
	const immutable = 0x10
	if err := unix.IoctlSetPointerInt(int(file.Fd()), unix.FS_IOC_SETFLAGS, immutable); err != nil {
		t.Skipf("this filesystem has no immutable files: %v", err)
	}
	defer func() { must(t, unix.IoctlSetPointerInt(int(file.Fd()), unix.FS_IOC_SETFLAGS, 0)) }()
	err = f.Write("/etc/motd", text("new"))
	if !errors.Is(err, fs.ErrPermission) || !strings.Contains(diag.HintOf(err), "chattr -i") {
		t.Errorf("writing it gives %v, hint %q", err, diag.HintOf(err))
	}
	expectOnly(t, root+"/etc", "motd")
}

// TestWriteKeepsFreeSpace writes content of unknown size into a small filesystem.
func TestWriteKeepsFreeSpace(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("only root mounts a filesystem that is small")
	}
	f, root, _ := rooted(t)
	if err := unix.Mount("tmpfs", root+"/etc", "tmpfs", 0, "size=100m"); err != nil {
		t.Skipf("nothing can be mounted here: %v", err)
	}
	defer func() { must(t, unix.Unmount(root+"/etc", 0)) }()
	most := &spaceProbe{dir: root + "/etc", free: 1 << 40}
	err := f.Write("/etc/zeros", host.NewFile{Content: most, UID: -1, GID: -1})
	if !errors.Is(err, unix.ENOSPC) || !strings.Contains(err.Error(), "16 MiB to spare") || most.free == 0 {
		t.Errorf("%v, with %d bytes left", err, most.free)
	}
	expectOnly(t, root+"/etc")
	must(t, f.Write("/etc/much", host.NewFile{Content: io.LimitReader(most, 70<<20), UID: -1, GID: -1}))
}

// spaceProbe is a reader of zeros that records the least free space of a filesystem.
type spaceProbe struct {
	dir  string
	free int64
}

func (l *spaceProbe) Read(p []byte) (int, error) {
	var st unix.Statfs_t
	err := unix.Statfs(l.dir, &st)
	l.free = min(l.free, int64(st.Bfree)*st.Frsize)
	clear(p)
	return len(p), err
}

func TestWriteFailureLeavesNoTemporaryFile(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("only root mounts a filesystem that is small or read-only")
	}
	f, root, _ := rooted(t)
	if err := unix.Mount("tmpfs", root+"/etc", "tmpfs", 0, "size=64k"); err != nil {
		t.Skipf("nothing can be mounted here: %v", err)
	}
	defer func() { must(t, unix.Unmount(root+"/etc", 0)) }()
	must(t, f.Write("/etc/motd", text("old")))
	err := f.Write("/etc/motd", text(strings.Repeat("new", 1<<20)))
	if !errors.Is(err, unix.ENOSPC) || !strings.Contains(diag.HintOf(err), "room") {
		t.Errorf("on a full filesystem a write gives %v, hint %q", err, diag.HintOf(err))
	}
	must(t, unix.Mount("", root+"/etc", "", unix.MS_REMOUNT|unix.MS_RDONLY, ""))
	err = f.Write("/etc/motd", text("new"))
	if !errors.Is(err, unix.EROFS) || !strings.Contains(diag.HintOf(err), "read-only") {
		t.Errorf("on a read-only filesystem a write gives %v, hint %q", err, diag.HintOf(err))
	}
	if data, _ := f.ReadFile("/etc/motd"); string(data) != "old" {
		t.Errorf("the content is %q", data)
	}
	expectOnly(t, root+"/etc", "motd")
}

func TestTempFilesArePrivateAndDistinct(t *testing.T) {
	root := t.TempDir()
	must(t, os.Mkdir(root+"/tmp", 0o777))
	h, err := machine.New(host.Options{Root: root})
	must(t, err)
	one, remove, err := h.TempFor("", "check.conf", []byte("a"), 0o700)
	must(t, err)
	two, removeOther, err := h.TempFor("", "check.conf", []byte("b"), 0o600)
	must(t, err)
	if one == two || path.Base(one) != "check.conf" || path.Dir(one) == path.Dir(two) || path.Dir(one) == "/tmp" {
		t.Errorf("temporary files are %s and %s, want each in a directory of its own", one, two)
	}
	mode(t, root+one, 0o700)
	mode(t, root+path.Dir(one), fs.ModeDir|0o711)
	must(t, remove())
	must(t, removeOther())
	expectOnly(t, root+"/tmp")
}

func BenchmarkStat(b *testing.B) {
	root := b.TempDir()
	must(b, os.WriteFile(root+"/f", []byte("x"), 0o644))
	relocated, err := machine.New(host.Options{Root: root})
	must(b, err)
	machine, err := machine.New(host.Options{})
	must(b, err)
	b.Run("rooted", func(b *testing.B) {
		for b.Loop() {
			_, _ = relocated.Files.Stat("/f")
		}
	})
	b.Run("machine", func(b *testing.B) {
		for b.Loop() {
			_, _ = machine.Files.Stat(root + "/f")
		}
	})
}
