package hosttest

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// Distribution returns the directory of a root that resembles a host of another family: a small Debian system with the
// package manager of that family, from Debian's own packages. release is the content of its /etc/os-release. It skips
// the test if permissions or programs are missing. If $CORPUS_TEST_ROOTS is set, prepared roots are kept there.
func Distribution(t testing.TB, release string, packages ...string) string {
	t.Helper()
	if os.Geteuid() != 0 {
		t.Skip("a root with a package manager requires root")
	}
	if _, err := exec.LookPath("debootstrap"); err != nil {
		t.Skip("a root with a package manager takes debootstrap")
	}
	kept := os.Getenv("CORPUS_TEST_ROOTS")
	if kept == "" {
		kept = t.TempDir()
	}
	prepared := filepath.Join(kept, strings.Join(packages, "+"))
	if _, err := os.Stat(prepared); err != nil {
		bootstrap(t, prepared, packages)
	}
	root := t.TempDir()
	command(t, "cp", "-a", prepared+"/.", root)
	if err := os.RemoveAll(filepath.Join(root, "etc/os-release")); err != nil {
		t.Fatal(err)
	}
	Put(t, filepath.Join(root, "etc/os-release"), release, 0o644)
	return root
}

// bootstrap creates the root under another name and then renames it, so that an incomplete one is not used.
func bootstrap(t testing.TB, prepared string, packages []string) {
	t.Helper()
	partial := prepared + ".half"
	if err := os.RemoveAll(partial); err != nil {
		t.Fatal(err)
	}
	if err := os.MkdirAll(partial, 0o755); err != nil {
		t.Fatal(err)
	}
	command(t, "debootstrap", "--variant=minbase", "--include="+strings.Join(packages, ","), "bookworm", partial, mirror())
	for _, dir := range []string{"var/cache/apt/archives", "var/lib/apt/lists"} {
		if err := os.RemoveAll(filepath.Join(partial, dir)); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Rename(partial, prepared); err != nil {
		t.Fatal(err)
	}
}

// mirror returns the mirror that the machine's apt uses, or Debian's.
func mirror() string {
	out, _ := exec.Command("apt-get", "indextargets", "--format", "$(REPO_URI)").Output() // or Debian's
	for line := range strings.Lines(string(out)) {
		if line = strings.TrimSpace(line); line != "" && !strings.Contains(line, "security") {
			return line
		}
	}
	return "http://deb.debian.org/debian"
}

// In runs a program in a root and returns its output.
func In(t testing.TB, root string, argv ...string) string {
	t.Helper()
	return command(t, "chroot", append([]string{root, "env", "LC_ALL=C", "HOME=/root"}, argv...)...)
}

func command(t testing.TB, name string, args ...string) string {
	t.Helper()
	out, err := exec.Command(name, args...).CombinedOutput()
	if err != nil {
		t.Fatalf("%s %s: %v\n%s", name, strings.Join(args, " "), err, out)
	}
	return string(out)
}
