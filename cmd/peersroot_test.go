//go:build peers

package cmd_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"syscall"
	"testing"
)

// apart runs this test again as the first process of new namespaces for mounts and processes. All its mounts and files
// disappear when it ends, in every case: its files are in memory, and no tree with mounts has to be removed.
func apart(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("this test needs root: it makes a disposable root directory")
	}
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	scratch, err := os.MkdirTemp("", "corpus-peers-")
	if err != nil {
		t.Fatal(err)
	}
	defer os.Remove(scratch) // the directory is empty
	runtime.LockOSThread()   // the signal is sent when the thread ends
	defer runtime.UnlockOSThread()
	cmd := exec.Command(self, "-test.run=^TestPeers$", "-test.v", "-test.timeout=0")
	cmd.Env = append(os.Environ(), "CORPUS_PEERS_SCRATCH="+scratch)
	cmd.Stdout, cmd.Stderr = os.Stdout, os.Stderr
	cmd.SysProcAttr = &syscall.SysProcAttr{Cloneflags: syscall.CLONE_NEWPID, Unshareflags: syscall.CLONE_NEWNS,
		Pdeathsig: syscall.SIGKILL}
	if err := cmd.Run(); err != nil {
		t.Fatal(err)
	}
}

func mount(t *testing.T, source, target, kind, options string) {
	t.Helper()
	if err := syscall.Mount(source, target, kind, 0, options); err != nil {
		t.Fatalf("mount %s on %s: %v", kind, target, err)
	}
}

// fresh returns the directories of a root that are new for each root.
func fresh() []string { return []string{"dev", "tmp", "run"} }

// mountRoot makes a system from the lower layers that keeps its changes in memory.
func mountRoot(t *testing.T, scratch, name, lower string) string {
	t.Helper()
	dir := filepath.Join(scratch, name)
	root := filepath.Join(dir, "root")
	for _, sub := range []string{"upper", "work", "root"} {
		if err := os.MkdirAll(filepath.Join(dir, sub), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	mount(t, "overlay", root, "overlay", "lowerdir="+lower+",upperdir="+dir+"/upper,workdir="+dir+"/work")
	mount(t, "proc", filepath.Join(root, "proc"), "proc", "")
	for _, sub := range fresh() {
		mount(t, "tmpfs", filepath.Join(root, sub), "tmpfs", "mode=1777")
	}
	for device, minor := range map[string]int{"null": 3, "zero": 5, "random": 8, "urandom": 9} {
		file := filepath.Join(root, "dev", device)
		if err := syscall.Mknod(file, syscall.S_IFCHR|0o666, 1<<8|minor); err != nil {
			t.Fatalf("%s: %v", file, err)
		}
		if err := os.Chmod(file, 0o666); err != nil {
			t.Fatal(err)
		}
	}
	for _, sub := range []string{"dev/shm", "run/lock"} {
		if err := os.Mkdir(filepath.Join(root, sub), 0o777); err != nil {
			t.Fatal(err)
		}
	}
	return root
}

// unmountRoot unmounts a system, so that its layer can be below others.
func unmountRoot(t *testing.T, root string) {
	for _, sub := range append(fresh(), "proc", "") {
		if err := syscall.Unmount(filepath.Join(root, sub), 0); err != nil {
			t.Errorf("unmount %s: %v", filepath.Join(root, sub), err)
		}
	}
}

// inRoot returns a command in a root, with the environment of a timer: in particular without SHELL, which would set the
// shell of guards.
func inRoot(root, dir string, args ...string) *exec.Cmd {
	cmd := exec.Command(args[0], args[1:]...)
	cmd.Dir, cmd.SysProcAttr = dir, &syscall.SysProcAttr{Chroot: root}
	environ := slices.DeleteFunc(os.Environ(), func(v string) bool { return strings.HasPrefix(v, "SHELL=") })
	cmd.Env = append(environ, "HOME=/root", "TMPDIR=/tmp", "LANG=C.UTF-8", "LC_ALL=C.UTF-8",
		"DEBIAN_FRONTEND=noninteractive")
	return cmd
}

// lookIn returns the path of a program in a root, or "".
func lookIn(root, name string) string {
	for dir := range strings.SplitSeq("/usr/local/bin:/usr/bin:/bin:"+os.Getenv("PATH"), ":") {
		file := filepath.Join(dir, name)
		if info, err := os.Stat(filepath.Join(root, file)); err == nil && !info.IsDir() && info.Mode()&0o111 != 0 {
			return file
		}
	}
	return ""
}
