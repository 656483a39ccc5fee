package hosttest

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"testing"
)

// tools returns the programs that change accounts.
func tools() []string {
	return []string{"useradd", "usermod", "userdel", "groupadd", "groupmod", "groupdel", "gpasswd", "chage", "chpasswd",
		"passwd", "getent"}
}

// Chroot creates a small system with the account tools of the machine, and with crontab and visudo if the machine has
// them. It skips the test if permissions or programs are missing.
func Chroot(t testing.TB) string {
	t.Helper()
	if os.Geteuid() != 0 {
		t.Skip("entering a chroot requires root")
	}
	root := t.TempDir()
	Tree(t, root)
	for _, name := range tools() {
		file, err := exec.LookPath(name)
		if err != nil {
			t.Skipf("this machine has no %s to test with", name)
		}
		Install(t, root, file)
	}
	for _, name := range []string{"crontab", "visudo"} {
		if file, err := exec.LookPath(name); err == nil {
			Install(t, root, file)
		}
	}
	return root
}

// library matches a file in the output of ldd(1).
var library = regexp.MustCompile(`/[^ ()]+`)

// Install copies a program, and the libraries with which it is linked, into root.
func Install(t testing.TB, root, file string) {
	t.Helper()
	out, err := exec.Command("ldd", file).Output()
	if err != nil {
		t.Skipf("the libraries of %s are not to be found: %v", file, err)
	}
	for _, path := range append(library.FindAllString(string(out), -1), file) {
		target := filepath.Join(root, path)
		if _, err := os.Lstat(target); err == nil {
			continue
		}
		data, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		Put(t, target, string(data), 0o755)
	}
}
