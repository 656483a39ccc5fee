package fault_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/corpus-agent/corpus-agent/packaging/hosttest/fault"
)

// writing is the variable that makes this binary the watched program: it writes two files and renames one.
const writing = "CORPUS_TEST_WRITING"

func TestMain(m *testing.M) {
	fault.Main()
	if dir := os.Getenv(writing); dir != "" {
		os.Exit(write(dir))
	}
	os.Exit(m.Run())
}

func write(dir string) int {
	one, two := filepath.Join(dir, "one"), filepath.Join(dir, "two")
	for _, err := range []error{os.WriteFile(one, []byte("1"), 0o600), os.Rename(one, two),
		os.WriteFile(one, []byte("2"), 0o600)} {
		if err != nil {
			println(err.Error())
			return 3
		}
	}
	return 0
}

func run(t *testing.T, w fault.Watch) (fault.Outcome, string) {
	t.Helper()
	dir := t.TempDir()
	if err := os.Mkdir(filepath.Join(dir, "in"), 0o755); err != nil {
		t.Fatal(err)
	}
	w.Below = filepath.Join(dir, "in")
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), writing+"="+w.Below)
	o, err := w.Run(cmd)
	if err != nil {
		if strings.Contains(err.Error(), "seccomp") {
			t.Skipf("this kernel does not let system calls be watched: %v", err)
		}
		t.Fatal(err)
	}
	var names []string
	entries, _ := os.ReadDir(w.Below)
	for _, e := range entries {
		names = append(names, e.Name())
	}
	return o, strings.Join(names, " ")
}

func TestCallsAreCountedInOrder(t *testing.T) {
	o, left := run(t, fault.Watch{Calls: fault.Names()})
	var names []string
	for _, c := range o.Calls {
		names = append(names, c.Name+" "+filepath.Base(c.Path))
	}
	if got, want := strings.Join(names, ", "), "create one, write one, renameat two, create one, write one"; got != want {
		t.Errorf("the calls are %s, want %s", got, want)
	}
	if o.Code != 0 || left != "one two" {
		t.Errorf("exit code %d, and the files are %s: %s", o.Code, left, o.Err)
	}
}

func TestKilledBeforeTheCall(t *testing.T) {
	for at, want := range []string{1: "", 2: "one", 3: "one", 4: "two", 5: "one two"} {
		if at == 0 {
			continue
		}
		o, left := run(t, fault.Watch{Calls: fault.Names(), At: at})
		if o.Code != -1 || left != want {
			t.Errorf("killed at call %d: exit code %d, and the files are %q, want %q", at, o.Code, left, want)
		}
	}
}

func TestCallsFail(t *testing.T) {
	w := fault.Watch{Calls: fault.Needing(), At: 3, Errno: syscall.EIO}
	o, left := run(t, w)
	if hit, ok := o.Hit(w); !ok || hit.Name != "renameat" || o.Code != 3 ||
		!strings.Contains(o.Err, "input/output error") || left != "one" {
		t.Errorf("hit %v, exit code %d, %s, and the files are %q", hit, o.Code, o.Err, left)
	}
	o, left = run(t, fault.Watch{Calls: []string{"write"}, At: 1, Errno: syscall.ENOSPC, Onward: true})
	if o.Code != 3 || !strings.Contains(o.Err, "no space left") || left != "one two" {
		t.Errorf("exit code %d, %s, and the files are %q", o.Code, o.Err, left)
	}
}
