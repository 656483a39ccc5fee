// Package attack_test runs the programs of a local user against what the agent does as root, in disposable hosts.
//
// A world is such a host: a tree with the victims, which are files of root or of another user, and a directory that the
// user ann owns. An operation is an action of the agent below ann's directory: a primitive of package walk, a state
// function, a step of a deploy. An attack is what ann does there before or during the operation: she puts links, pipes
// and hard links where the agent expects files, exchanges directories with links as fast as the kernel allows, and
// removes temporary files. Each attack is tried on each operation. Afterwards no victim has another content, owner or
// mode, no new file exists in the victims' directories, no user can read a victim's content elsewhere, the agent has
// not waited for ann, and no program of ann's has run as root.
//
// TestAttacksBeatCarelessPrograms proves that the attacks work: each succeeds against a program that does the same
// operations by path, as most programs do.
//
// Without the build tag attack each test runs in a short form.
package attack_test

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"
)

// Variables of the environment that select what this program does when a test starts it again.
const (
	asAttacker = "CORPUS_ATTACK_LOOP"  // an attacker: the value is its looped in JSON
	asReader   = "CORPUS_ATTACK_READ"  // a user who reads every file below the directory in the value
	asEntered  = "CORPUS_ATTACK_ENTER" // the agent with the directory in the value as its root
	asPusher   = "CORPUS_ATTACK_PUSH"  // a command that pushes input into its terminal
)

// programsDir is the directory of the built programs.
var programsDir string

// programs builds both programs once for all tests and returns their directory.
var programs = sync.OnceValues(func() (string, error) {
	dir, err := os.MkdirTemp("", "corpus-attack-programs-")
	if err != nil {
		return "", err
	}
	programsDir = dir
	cmd := exec.Command("go", "build", "-buildvcs=false", "-o", dir, "../../cmd/corpus-agent", "../../cmd/corpus")
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := cmd.CombinedOutput(); err != nil {
		return dir, errors.New(string(out))
	}
	self, err := os.ReadFile("/proc/self/exe")
	return dir, errors.Join(err, os.WriteFile(filepath.Join(dir, "pusher"), self, 0o755), os.Chmod(dir, 0o755))
})

func TestMain(m *testing.M) {
	switch {
	case os.Getenv(asAttacker) != "":
		attackUntilKilled(os.Getenv(asAttacker))
	case os.Getenv(asReader) != "":
		readEverything(os.Getenv(asReader))
		os.Exit(0)
	case os.Getenv(asEntered) != "":
		fmt.Fprintln(os.Stderr, "entering:", enter(os.Getenv(asEntered), os.Args[1:]))
		os.Exit(125)
	case os.Getenv(asPusher) != "":
		pushInput()
		os.Exit(0)
	}
	if os.Geteuid() == 0 && os.Getenv(worldsIn) == "" {
		os.Exit(isolated())
	}
	code := m.Run()
	if programsDir != "" {
		_ = os.RemoveAll(programsDir)
	}
	os.Exit(code)
}

// worldsIn is the variable with the directory in which worlds are made.
const worldsIn = "CORPUS_ATTACK_WORLDS"

// isolated runs the tests in a mount namespace with a filesystem in memory for worlds: a sync is cheap there, an attack
// that fills the disk fills 2 GiB, and everything is gone when the tests end, in every case.
func isolated() int {
	dir, err := os.MkdirTemp("", "corpus-attack-worlds-")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	defer os.Remove(dir)
	cmd := exec.Command("/bin/sh",
		append([]string{"-c", `chmod 755 "$` + worldsIn + `"; mount -t tmpfs -o size=2g,mode=755 worlds "$` + worldsIn +
			`" 2>/dev/null; exec "$0" "$@"`, os.Args[0]}, os.Args[1:]...)...)
	cmd.Env = append(os.Environ(), worldsIn+"="+dir)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = os.Stdin, os.Stdout, os.Stderr
	cmd.SysProcAttr = &syscall.SysProcAttr{Unshareflags: syscall.CLONE_NEWNS, Pdeathsig: syscall.SIGKILL}
	err = cmd.Run()
	var failed *exec.ExitError
	if errors.As(err, &failed) {
		return failed.ExitCode()
	} else if err != nil { // without the right to a namespace the tests use the machine's disk
		cmd = exec.Command(os.Args[0], os.Args[1:]...)
		cmd.Env = append(os.Environ(), worldsIn+"="+dir)
		cmd.Stdout, cmd.Stderr = os.Stdout, os.Stderr
		if cmd.Run() != nil {
			return 1
		}
	}
	return 0
}

// needRoot skips a test without root: it makes files of several users and changes roots.
func needRoot(t *testing.T) {
	t.Helper()
	if os.Geteuid() != 0 {
		t.Skip("this test needs root: it makes files of several users and changes roots")
	}
}

// enter makes a directory the root of this process, with the machine's programs below /usr, and starts a program there.
// It does so in a new mount namespace, whose mounts end with the process.
func enter(dir string, args []string) error {
	bin := os.Getenv("CORPUS_ATTACK_PROGRAMS")
	if err := unix.Mount("", "/", "", unix.MS_REC|unix.MS_PRIVATE, ""); err != nil {
		return err
	}
	for _, from := range []string{"/usr", "/dev", bin} {
		to := filepath.Join(dir, from)
		if from == bin {
			to = filepath.Join(dir, "opt/corpus")
		}
		if err := errors.Join(os.MkdirAll(to, 0o755), unix.Mount(from, to, "", unix.MS_BIND, "")); err != nil {
			return fmt.Errorf("mounting %s: %w", to, err)
		}
		if from != "/dev" {
			if err := unix.Mount("", to, "", unix.MS_BIND|unix.MS_REMOUNT|unix.MS_RDONLY, ""); err != nil {
				return err
			}
		}
	}
	if err := errors.Join(os.MkdirAll(filepath.Join(dir, "proc"), 0o755),
		unix.Mount("proc", filepath.Join(dir, "proc"), "proc", 0, "")); err != nil {
		return err
	}
	if err := errors.Join(unix.Chroot(dir), os.Chdir("/")); err != nil {
		return err
	}
	var env []string
	for _, v := range os.Environ() {
		if !strings.HasPrefix(v, "CORPUS_ATTACK_") {
			env = append(env, v)
		}
	}
	if keep := os.Getenv("CORPUS_ATTACK_KEEP"); keep != "" {
		env = append(env, keep+"=1")
	}
	return syscall.Exec(args[0], args, env)
}
