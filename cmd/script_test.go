package cmd_test

import (
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"

	"filippo.io/age"
	"filippo.io/age/armor"
	"github.com/rogpeppe/go-internal/testscript"
	"golang.org/x/sys/unix"

	"github.com/corpus-agent/corpus-agent/packaging/hosttest/fault"
)

// programsDir is the directory of the built programs.
var programsDir string

// programs builds both programs, once for all tests, and returns their directory.
var programs = sync.OnceValues(func() (string, error) {
	dir, err := os.MkdirTemp("", "corpus-programs-")
	if err != nil {
		return "", err
	}
	programsDir = dir
	out, err := exec.Command("go", "build", "-buildvcs=false", "-o", dir, "./corpus-agent", "./corpus").CombinedOutput()
	if err != nil {
		return dir, errors.New(string(out))
	}
	return dir, nil
})

func TestMain(m *testing.M) {
	fault.Main()
	code := m.Run()
	if programsDir != "" {
		_ = os.RemoveAll(programsDir)
	}
	os.Exit(code)
}

// bin returns the directory of the built programs.
func bin(t testing.TB) string {
	t.Helper()
	dir, err := programs()
	if err != nil {
		t.Fatal(err)
	}
	return dir
}

// TestScripts runs sessions of users: each file in testdata/script is a session on a workstation and a host, whose
// trees are at its end. A script's host is below $WORK/root and is named myapp-testing-useast1-1; its store, keys and
// root of trust are in the environment.
//
// In addition to testscript's own commands there are
//
//	exits CODE PROGRAM...   run a program and expect its exit code
//	release PROJECT TREE VERSION CHANNEL   build and publish
//	alone CODE PROGRAM...   exits, for a program without a root, which gets a separate lock
//	agekey FILE VARIABLE   make a private key of age, and put its recipient into a variable
//	encrypted FILE KEY VALUE RECIPIENT...   write an encrypted value as a pillar file
//	denied ERRNO CODE PROGRAM...   exits, in a system whose openat2(2) fails with ENOSYS or EPERM
//
// and the condition [root], which means that the test runs as root.
func TestScripts(t *testing.T) {
	testscript.Run(t, testscript.Params{
		Dir: "../testdata/script", RequireExplicitExec: true, RequireUniqueNames: true,
		Setup: func(env *testscript.Env) error { return hostAndStore(bin(t), env) },
		Cmds: map[string]func(*testscript.TestScript, bool, []string){"exits": exits, "release": release,
			"denied": deniedCall, "alone": withOwnStateDirectory, "agekey": ageKey, "encrypted": encrypted},
		Condition: func(name string) (bool, error) {
			if name != "root" {
				return false, fmt.Errorf("unknown condition %q", name)
			}
			return os.Geteuid() == 0, nil
		},
	})
}

func hostAndStore(bin string, env *testscript.Env) error {
	work := env.WorkDir
	env.Setenv("PATH", bin+":"+env.Getenv("PATH"))
	env.Setenv("HOME", work)
	env.Setenv("CORPUS_STORE", "file://"+work+"/store")
	env.Setenv("CORPUS_KEYS", work+"/keys")
	env.Setenv("CORPUS_ROOT", work+"/root")
	env.Setenv("CORPUS_TRUST_ROOT", work+"/keys/root.json")
	env.Setenv("CORPUS_METADATA_ENABLED", "false")
	if err := os.MkdirAll(filepath.Join(work, "store"), 0o755); err != nil {
		return err
	}
	etc := filepath.Join(work, "root", "etc")
	if err := os.MkdirAll(etc, 0o755); err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(etc, "hostname"), []byte("myapp-testing-useast1-1\n"), 0o644)
}

// withOwnStateDirectory gives a program that runs without --root its own /var/lib/corpus, if the tests may mount one,
// so that it does not use the lock of the machine, which another run may hold.
func withOwnStateDirectory(ts *testscript.TestScript, neg bool, args []string) {
	const mounted = `mkdir -p /var/lib/corpus && mount -t tmpfs -o mode=700 own /var/lib/corpus && exec "$@"`
	if len(args) > 1 && os.Geteuid() == 0 && exec.Command("unshare", "--mount", "true").Run() == nil {
		args = append([]string{args[0], "unshare", "--mount", "sh", "-c", mounted, "sh"}, args[1:]...)
	}
	exits(ts, neg, args)
}

func exits(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 2 {
		ts.Fatalf("usage: exits CODE PROGRAM [ARGUMENT...]")
	}
	want, err := strconv.Atoi(args[0])
	ts.Check(err)
	code := 0
	var failed *exec.ExitError
	switch err := ts.Exec(args[1], args[2:]...); {
	case errors.As(err, &failed):
		code = failed.ExitCode()
	case err != nil:
		ts.Fatalf("%v", err)
	}
	if code != want {
		ts.Fatalf("%s: exit code %d, want %d", strings.Join(args[1:], " "), code, want)
	}
}

func deniedCall(ts *testscript.TestScript, neg bool, args []string) {
	errno, known := map[string]syscall.Errno{"ENOSYS": syscall.ENOSYS, "EPERM": syscall.EPERM}[args[0]]
	if neg || len(args) < 3 || !known {
		ts.Fatalf("usage: denied ENOSYS|EPERM CODE PROGRAM [ARGUMENT...]")
	}
	program, err := exec.LookPath(filepath.Join(strings.Split(ts.Getenv("PATH"), ":")[0], args[2]))
	ts.Check(err)
	self, err := os.Executable()
	ts.Check(err)
	for _, v := range fault.Deny(program, unix.SYS_OPENAT2, errno) {
		name, value, _ := strings.Cut(v, "=")
		ts.Setenv(name, value)
		defer ts.Setenv(name, "")
	}
	exits(ts, false, append([]string{args[1], self}, args[3:]...))
}

func release(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 4 {
		ts.Fatalf("usage: release PROJECT TREE VERSION CHANNEL")
	}
	project, tree, version, channel := args[0], args[1], args[2], args[3]
	file := project + "-" + version + ".tar.zst"
	ts.Check(ts.Exec("corpus", "build", tree, "-o", file))
	ts.Check(ts.Exec("corpus", "publish", project, version, file, "--channel", channel))
}

func ageKey(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 2 {
		ts.Fatalf("usage: agekey FILE VARIABLE")
	}
	identity, err := age.GenerateX25519Identity()
	ts.Check(err)
	ts.Check(os.WriteFile(ts.MkAbs(args[0]), []byte(identity.String()+"\n"), 0o600))
	ts.Setenv(args[1], identity.Recipient().String())
}

func encrypted(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 4 {
		ts.Fatalf("usage: encrypted FILE KEY VALUE RECIPIENT...")
	}
	var recipients []age.Recipient
	for _, text := range args[3:] {
		r, err := age.ParseX25519Recipient(text)
		ts.Check(err)
		recipients = append(recipients, r)
	}
	var value strings.Builder
	lines := armor.NewWriter(&value)
	w, err := age.Encrypt(lines, recipients...)
	ts.Check(err)
	_, err = io.WriteString(w, args[2])
	ts.Check(errors.Join(err, w.Close(), lines.Close()))
	text := "#!yaml|age\n" + args[1] + ": |\n  " + strings.ReplaceAll(value.String(), "\n", "\n  ") + "\n"
	ts.Check(os.WriteFile(ts.MkAbs(args[0]), []byte(text), 0o644))
}
