package host

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/corpus-agent/corpus-agent/artifact/process"
	"github.com/corpus-agent/corpus-agent/artifact/walk"
	"github.com/corpus-agent/corpus-agent/state/host/dialog"
	"github.com/corpus-agent/corpus-agent/state/host/runnable"
	"github.com/corpus-agent/corpus-agent/state/host/terminal"
)

// Commands starts processes on a host.
type Commands interface {
	// Allowed returns a *Skipped error if no commands can be run.
	Allowed(what string) error
	// Run runs a command to its end. It returns an error if the command cannot be started. If the command fails, Code
	// of the output is not 0.
	Run(ctx context.Context, c Command) (Output, error)
}

// Command is one process to run.
type Command struct {
	Argv  []string
	Dir   string        // absolute, "/" by default
	Env   []string      // the whole environment, NAME=value
	Stdin string        // standard input of the command
	As    *Credential   // nil for the agent's own user
	Umask *int          // nil for the agent's own
	Limit time.Duration // 0 for none
	Quiet bool          // changes nothing, so cached reads stay valid
	Named bool          // the caller has recorded the subjects that it changes
	Merge bool          // write stderr to Stdout as well, in the order of the output
	Mute  bool          // discard the output; only the exit code counts

	// Paths lists the paths among the arguments. Run refuses paths that another user can redirect, unless the command
	// runs as an unprivileged user, whose permissions limit it.
	Paths []string

	// Terminal connects the streams of the command to terminals. Stderr is separate unless Merge is set.
	Terminal bool

	// Following allows links that other users control on the way to Dir and in Paths.
	Following bool
}

// Credential is the user as whom a command runs.
type Credential struct {
	UID, GID uint32
	Groups   []uint32
}

// Output is the result of a command.
type Output struct {
	PID      int
	Code     int // exit code; 128 and the signal's number for one that was killed
	Stdout   string
	Stderr   string
	TimedOut bool
}

// maxOutput is the number of bytes kept of each stream; the rest is read and discarded.
const maxOutput = 16 << 20

// failureObserver implements Commands, and passes the output of failed commands to a function.
type failureObserver struct {
	Commands
	failed func(Output)
}

func (h failureObserver) Run(ctx context.Context, c Command) (Output, error) {
	out, err := h.Commands.Run(ctx, c)
	if out.Code != 0 {
		h.failed(out)
	}
	return out, err
}

type commands struct {
	chroot        string // "" for none
	refused       bool   // a root that is not a system to enter
	changed       func() // called before and after a command that may change anything
	files         *tree  // resolves the working directories; if nil, commands start in "/"
	machineErrors *walk.MachineErrors
}

func (c *commands) Allowed(what string) error {
	if c.refused {
		return &Skipped{What: what}
	}
	return nil
}

func (c *commands) Run(ctx context.Context, command Command) (Output, error) {
	if err := c.Allowed(strings.Join(command.Argv, " ")); err != nil {
		return Output{}, err
	}
	if err := c.checkPaths(ctx, command); err != nil {
		return Output{}, err
	}
	if !command.Quiet {
		c.changed()
		defer c.changed() // drop reads that were cached while the command ran
	}
	if command.Limit > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeoutCause(ctx, command.Limit, errTimedOut)
		defer cancel()
	}
	return c.run(ctx, command)
}

var errTimedOut = errors.New("timed out")

func (c *commands) run(ctx context.Context, command Command) (Output, error) {
	argv := withUmask(command.Argv, command.Umask)
	cmd := exec.CommandContext(ctx, argv[0], argv[1:]...)
	stdout, stderr := &kept{}, &kept{}
	// A nil stream is /dev/null, which needs neither a pipe nor a goroutine.
	if command.Stdin != "" {
		cmd.Stdin = strings.NewReader(command.Stdin)
	}
	switch {
	case command.Mute:
	case command.Merge:
		cmd.Stdout, cmd.Stderr = stdout, stdout
	default:
		cmd.Stdout, cmd.Stderr = stdout, stderr
	}
	finish := func() {}
	if command.Terminal && !command.Mute {
		var err error
		if finish, err = terminal.Attach(cmd, stdout, stderr, command.Merge); err != nil {
			return Output{}, fmt.Errorf("running %s: %w", command.Argv[0], err)
		}
	}
	cmd.Env = command.Env
	cmd.SysProcAttr = &syscall.SysProcAttr{Chroot: c.chroot, Credential: credential(command.As)}
	process.Detach(cmd)
	ended := make(chan struct{})
	defer close(ended)
	var overdue atomic.Bool // false if the command itself ended in time, even if its children did not
	cmd.Cancel = func() error {
		overdue.Store(true)
		return endGroup(ctx, cmd, ended)
	}
	cmd.WaitDelay = 2 * time.Second
	if command.Limit == 0 {
		cmd.WaitDelay += killAfter
	}
	if err := c.resolve(cmd); err != nil {
		finish()
		return Output{}, fmt.Errorf("running %s: %w", command.Argv[0], err)
	}
	if err := c.start(cmd, command); err != nil {
		finish()
		_ = c.machineErrors.Note(cmd.Path, err)
		return Output{}, fmt.Errorf("running %s: %w", command.Argv[0], err)
	}
	err := cmd.Wait()
	finish()
	out := Output{PID: cmd.Process.Pid, Code: exitCode(cmd.ProcessState), Stdout: stdout.String(), Stderr: stderr.String()}
	if overdue.Load() && errors.Is(context.Cause(ctx), errTimedOut) {
		out.TimedOut = true
		return out, nil
	}
	if ctx.Err() != nil && !errors.Is(context.Cause(ctx), errTimedOut) {
		return out, ctx.Err()
	}
	var failed *exec.ExitError
	if err != nil && !errors.As(err, &failed) && !errors.Is(err, exec.ErrWaitDelay) {
		return out, fmt.Errorf("running %s: %w", command.Argv[0], err)
	}
	return out, nil
}

// killAfter is the time that a command has to end after SIGTERM.
const killAfter = 5 * time.Second

// endGroup ends a command and the processes that it started: by SIGKILL if it ran longer than its limit, otherwise by
// SIGTERM first.
func endGroup(ctx context.Context, cmd *exec.Cmd, ended <-chan struct{}) error {
	if errors.Is(context.Cause(ctx), errTimedOut) {
		return process.Signal(cmd, syscall.SIGKILL)
	}
	go func() {
		select {
		case <-ended: // its process ID may belong to another process by now
		case <-time.After(killAfter):
			_ = process.Signal(cmd, syscall.SIGKILL)
		}
	}()
	return process.Signal(cmd, syscall.SIGTERM)
}

// withUmask returns a command line in which a shell sets the umask and then runs argv. A process can set only its own
// umask, and that of the agent applies to all of its threads.
func withUmask(argv []string, mask *int) []string {
	if mask == nil {
		return argv
	}
	return append([]string{"/bin/sh", "-c", fmt.Sprintf(`umask %04o && exec "$@"`, *mask), "sh"}, argv...)
}

// resolve finds the program inside the chroot; exec.LookPath has searched outside of it.
func (c *commands) resolve(cmd *exec.Cmd) error {
	if c.chroot == "" || strings.Contains(cmd.Args[0], "/") {
		return nil
	}
	cmd.Err = nil
	program, err := runnable.Find(c.chroot, cmd.Args[0])
	if err == nil {
		cmd.Path = program
	}
	return err
}

func credential(as *Credential) *syscall.Credential {
	if as == nil {
		return nil
	}
	return &syscall.Credential{Uid: as.UID, Gid: as.GID, Groups: as.Groups}
}

// NotStarted reports whether a shell's exit code says that it did not find the program of a command, or could not start
// it.
func NotStarted(code int) bool { return code == 126 || code == 127 }

func exitCode(state *os.ProcessState) int {
	if status, ok := state.Sys().(syscall.WaitStatus); ok && status.Signaled() {
		return 128 + int(status.Signal())
	}
	return state.ExitCode()
}

// kept keeps the start of a stream. It does not embed the buffer, since io.Copy would then call the ReadFrom of the
// buffer, which has no limit, instead of Write.
type kept struct{ buffer bytes.Buffer }

func (k *kept) Write(p []byte) (int, error) {
	k.buffer.Write(p[:min(len(p), max(0, maxOutput-k.buffer.Len()))])
	return len(p), nil
}

func (k *kept) String() string { return k.buffer.String() }

// talk starts a process for a dialog, in the root of commands.
func (c *commands) talk(command Command) (*dialog.Dialog, error) {
	if err := c.Allowed(strings.Join(command.Argv[:1], " ")); err != nil {
		return nil, err
	}
	program, err := runnable.Find(c.chroot, command.Argv[0])
	if err == nil && c.files != nil {
		err = c.files.checkProgram(program)
	}
	if err != nil {
		return nil, err
	}
	cmd := exec.Command(program, command.Argv[1:]...)
	cmd.Dir, cmd.Env = "/", command.Env
	cmd.SysProcAttr = &syscall.SysProcAttr{Chroot: c.chroot}
	d, err := dialog.Start(cmd)
	if err != nil {
		_ = c.machineErrors.Note(program, err)
		return nil, fmt.Errorf("running %s: %w", command.Argv[0], err)
	}
	return d, nil
}
