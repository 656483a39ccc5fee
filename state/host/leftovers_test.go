package host_test

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/corpus-agent/corpus-agent/state/host"
)

// TestDeclarationsAreNotedWithoutALook notes what states declare at a path before anything is there, so that a run
// without changes makes no system call for it. Only what is in the way of a later state is looked at.
func TestDeclarationsAreNotedWithoutALook(t *testing.T) {
	root := t.TempDir()
	h, err := host.Open(host.Options{Root: root}, host.Caches{})
	if err != nil {
		t.Fatal(err)
	}
	h.NoteDeclared("/data/d", fs.ModeDir, false, "")
	h.NoteDeclared("/data/gone", 0, true, "")
	data := filepath.Join(root, "data")
	if err := errors.Join(os.MkdirAll(data+"/d", 0o755), os.Mkdir(data+"/other", 0o755),
		os.Chmod(data, 0o777)); err != nil {
		t.Fatal(err)
	}
	inTheWay := func(p string) error {
		info, err := h.Files.Lstat(p)
		if err != nil {
			t.Fatal(err)
		}
		return host.Unlike(p, info, host.AFile, "")
	}
	for name, c := range map[string]struct {
		err error
		own bool
	}{
		"declared":         {inTheWay("/data/d"), true},
		"declared absence": {host.Gone("/data/gone", fs.ErrNotExist), true},
		"a user's":         {inTheWay("/data/other"), false},
		"a user's absence": {host.Gone("/data/none", fs.ErrNotExist), false},
	} {
		by, _ := h.ObstructionOf(c.err)
		if (by == nil) != c.own {
			t.Errorf("%s: the obstruction is %v", name, by)
		}
	}
}

// counted is the environment variable of the process that TestDeclarationsMakeNoSystemCall traces.
const counted = "CORPUS_TEST_COUNTED_NOTES"

// TestDeclarationsMakeNoSystemCall traces a process that notes declarations between two looks at files: none of the
// calls that are about files is between them.
func TestDeclarationsMakeNoSystemCall(t *testing.T) {
	if os.Getenv(counted) != "" {
		h, err := host.Open(host.Options{Root: t.TempDir()}, host.Caches{})
		if err != nil {
			t.Fatal(err)
		}
		_, _ = os.Lstat("/first-mark") // only strace sees it
		for i := range 100 {
			h.NoteDeclared(fmt.Sprintf("/data/d/%d", i), fs.ModeDir, false, "")
			h.NoteDeclared(fmt.Sprintf("/data/l/%d", i), fs.ModeSymlink, false, "/data/d")
			h.NoteDeclared(fmt.Sprintf("/data/gone/%d", i), 0, true, "")
		}
		_, _ = os.Lstat("/last-mark")
		return
	}
	strace, err := exec.LookPath("strace")
	if err != nil {
		t.Skip("this machine has no strace to count with")
	}
	trace := filepath.Join(t.TempDir(), "trace")
	cmd := exec.CommandContext(t.Context(), strace, "-f", "-qq", "-o", trace, "-e", "signal=none", "-e",
		"trace=openat,openat2,readlinkat,newfstatat,fstat,statx,faccessat,faccessat2,getdents64,lgetxattr", os.Args[0],
		"-test.run", "^"+t.Name()+"$")
	cmd.Env = append(os.Environ(), counted+"=1")
	if out, err := cmd.CombinedOutput(); err != nil {
		if strings.Contains(string(out), "Operation not permitted") {
			t.Skipf("processes cannot be traced here: %s", out)
		}
		t.Fatalf("%v: %s", err, out)
	}
	data, err := os.ReadFile(trace)
	if err != nil {
		t.Fatal(err)
	}
	_, after, first := strings.Cut(string(data), "first-mark")
	_, after, _ = strings.Cut(after, "\n")
	between, _, last := strings.Cut(after, "last-mark")
	between = between[:strings.LastIndexByte(between, '\n')+1]
	if !first || !last || strings.TrimSpace(between) != "" {
		t.Errorf("the notes made calls (marks %v, %v):\n%s", first, last, between)
	}
}
