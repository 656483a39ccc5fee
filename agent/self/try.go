package self

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"github.com/corpus-agent/corpus-agent/agent/exit"
	"github.com/corpus-agent/corpus-agent/agent/hook"
	"github.com/corpus-agent/corpus-agent/state/diag"
)

// LentLock is the environment variable in which a program that is tried finds the descriptor of the lock of the run
// that tries it.
const LentLock = "CORPUS_LENT_LOCK"

// lentAt is that descriptor.
const lentAt = "3"

// Broken is the error of a new agent that does not work on this host.
type Broken struct {
	What  string // the unit or the command that fails
	Units bool   // systemd does not start the agent; otherwise the program itself fails
	Err   error
}

func (b *Broken) Error() string {
	return fmt.Sprintf("the agent that this host would run next does not work: %s: %v", b.What, b.Err)
}
func (b *Broken) Unwrap() error { return b.Err }

// Hint returns what a person can do about it.
func (b *Broken) Hint() string {
	return diag.Agent.Coded(
		"publish a release whose agent works; docs/troubleshooting.md says how to repair a host by hand")
}

// Trial configures the test of an agent.
type Trial struct {
	Before Units         // the units before the change; the zero Units skips their checks
	Lock   *os.File      // the lock of the run, which is lent to the program
	Known  bool          // this host has an identity, which the program must find as well
	DryRun bool          // run the program over what is deployed, without changing anything
	Least  time.Duration // the tests may take this long even if it is longer than Self.Limit
}

// Verdict is the result of a trial that passed.
type Verdict struct {
	Program string // the program that was tried; "" if none was
	Version string // as the program prints it
	Old     bool   // the program does not support a lent lock, so it was not run over what is deployed
}

// Try tests the agent that this host starts next: its units still start it, and it prints its version, reads the
// configuration and the records of the host, and makes a dry run of what is deployed. A test that fails returns a
// *Broken.
func (s *Self) Try(ctx context.Context, t Trial) (Verdict, error) {
	limit := s.Limit
	if limit == 0 {
		limit = Limit
	}
	ctx, cancel := context.WithTimeout(ctx, max(limit, t.Least))
	defer cancel()
	if what := s.Lost(ctx, t.Before); what != "" {
		return Verdict{}, &Broken{What: "its units", Units: true, Err: errors.New(what)}
	}
	program := s.Units(ctx).Service.Program()
	if program == nil {
		if !trusted(s.Executable) {
			return Verdict{}, nil // another user may have replaced it, and no unit starts it
		}
		program = []string{s.Executable}
	}
	v := Verdict{Program: program[len(program)-1]}
	out, err := s.run(ctx, program, nil, "version")
	if err != nil {
		return v, err
	}
	v.Version, _, _ = strings.Cut(out, "\n")
	if t.Known {
		if _, err := s.run(ctx, program, nil, "config", "check"); err != nil {
			return v, err
		}
	}
	if _, err := s.run(ctx, program, nil, "status"); err != nil {
		return v, err
	}
	if !t.DryRun {
		return v, nil
	}
	_, err = s.run(ctx, program, t.Lock, "converge", "--test")
	var code *exec.ExitError
	if errors.As(err, &code) && code.ExitCode() == exit.Locked {
		v.Old = true
		return v, nil
	}
	return v, err
}

// run runs a command of the program, which must succeed.
func (s *Self) run(ctx context.Context, program []string, lock *os.File, args ...string) (string, error) {
	o := hook.Options{Env: s.Env, Dir: "/", Timeout: Limit, Grace: 2 * time.Second}
	if deadline, ok := ctx.Deadline(); ok {
		o.Timeout = time.Until(deadline)
	}
	if lock != nil {
		o.Files, o.Env = []*os.File{lock}, append(append([]string{}, s.Env...), LentLock+"="+lentAt)
	}
	o.Args = append(append(append([]string{}, program[1:]...), s.Flags...), args...)
	began := time.Now()
	result, err := hook.Program(ctx, program[0], o)
	if err == nil {
		return result.Output, nil
	}
	if errors.Is(ctx.Err(), context.Canceled) {
		return "", ctx.Err()
	}
	return "", &Broken{What: strings.Join(append(program[len(program)-1:], args...), " "),
		Err: explain(ctx, err, time.Since(began), result.Output)}
}

// explain returns the reason why a command failed, with its last output.
func explain(ctx context.Context, err error, took time.Duration, output string) error {
	var started *exec.ExitError
	var path *fs.PathError
	switch {
	case ctx.Err() != nil:
		return fmt.Errorf("no answer within %s", diag.Elapsed(took))
	case !errors.As(err, &started) && errors.As(err, &path):
		return fmt.Errorf("it cannot be started: %w", path.Err)
	}
	const longest = 300
	words := strings.TrimSpace(output)
	if len(words) > longest {
		words = "..." + words[len(words)-longest:]
	}
	if words == "" {
		return err
	}
	return fmt.Errorf("%w: %s", err, strings.ReplaceAll(words, "\n", "; "))
}

// trusted reports whether only root and this process's user can change the file at a path. For a file that does not
// exist, it checks the directory.
func trusted(path string) bool {
	real, err := filepath.EvalSymlinks(path)
	if errors.Is(err, fs.ErrNotExist) {
		real, err = filepath.EvalSymlinks(filepath.Dir(path))
	}
	if err != nil {
		return false
	}
	for ; ; real = filepath.Dir(real) {
		var st syscall.Stat_t
		if syscall.Lstat(real, &st) != nil || st.Uid != 0 && st.Uid != uint32(os.Geteuid()) {
			return false
		}
		sticky := st.Mode&syscall.S_IFMT == syscall.S_IFDIR && st.Mode&syscall.S_ISVTX != 0
		if st.Mode&0o022 != 0 && !sticky {
			return false
		}
		if real == "/" {
			return true
		}
	}
}
