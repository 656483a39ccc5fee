// Package attack_test runs the programs of a local user against what the agent does as root, in hosts to throw away.
//
// A world is such a host: a tree with files that are root's or another user's, the victims, and a directory that the
// user ann owns. An operation is something that the agent does below ann's directory: a primitive of package walk, a
// state function, a step of a deploy. An attack is what ann does there before the operation or meanwhile: she puts
// links, pipes and hard links where the agent expects files, exchanges directories with links as fast as the kernel
// lets her, takes temporary files away. Each attack is tried on each operation. Afterwards no victim may have another
// content, owner or mode, nothing may be in the victims' directories that did not exist, no user may read a victim's
// content anywhere, the agent may not have waited for ann, and no program of ann's may have run as root.
//
// TestAttacksBeatCarelessPrograms shows that the attacks work: each of them breaks through a program that does the same
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

// What this program is when it is started again, by variables of the environment.
const (
	asAttacker = "CORPUS_ATTACK_LOOP"  // an attacker: the value is a loop in JSON
	asReader   = "CORPUS_ATTACK_READ"  // a user who reads every file below the directory that is the value
	asEntered  = "CORPUS_ATTACK_ENTER" // the agent in a root of its own, which is the value
	asPusher   = "CORPUS_ATTACK_PUSH"  // a command that pushes input into its terminal
)

// programsDir is the directory of programs, once they are built.
var programsDir string

// programs builds both programs, once for all tests, and gives the directory they are in.
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

// worldsIn is the variable that names the directory in which worlds are made.
const worldsIn = "CORPUS_ATTACK_WORLDS"

// isolated runs the tests in a mount namespace of their own, where worlds are made in memory: a sync costs nothing
// there, and an attack that fills the disk fills 2 GiB. None of it outlives the tests, however they end.
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
	} else if err != nil { // without the right to a namespace they run on the machine's own disk
		cmd = exec.Command(os.Args[0], os.Args[1:]...)
		cmd.Env = append(os.Environ(), worldsIn+"="+dir)
		cmd.Stdout, cmd.Stderr = os.Stdout, os.Stderr
		if cmd.Run() != nil {
			return 1
		}
	}
	return 0
}

// needRoot skips a test that no other user can run: it makes files of several users and enters roots.
func needRoot(t *testing.T) {
	t.Helper()
	if os.Geteuid() != 0 {
		t.Skip("files of several users, and entering a root, take root")
	}
}

// enter makes a directory the root of this process, with the machine's programs below /usr, and starts a program there.
// It runs in a mount namespace of its own, so that its mounts are gone with it.
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
