// Package fault runs a program and injects a fault at one of the system calls that change the disk: it kills the
// program, or fails the call as a full or broken disk does. A test repeats this for each of the calls and checks the
// result.
//
// The calls are intercepted with seccomp(2) user notification. This requires no installation, does not slow down
// other calls, and counts the calls of all threads in their order.
package fault

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"
)

// Call is a system call that the program made.
type Call struct {
	Name string
	Path string // path of its file
	From string // the path before, of a call that renames or links a file
}

func (c Call) String() string { return c.Name + " of " + c.Path }

// Watch selects the calls to count, and the fault for one of them.
type Watch struct {
	Calls []string // names of system calls, from Names
	Below string   // directory; calls about files elsewhere are not counted
	Like  string   // suffix of the path of a file; calls about other files are not counted; "" for any

	At     int           // number of the call with the fault, counted from 1; 0 for none
	Errno  syscall.Errno // error of the call; 0 kills the program
	Onward bool          // all later calls fail as well

	Each func(Call) // is called with each counted call, which proceeds after it has returned; nil for none
}

// Outcome is the result of the program.
type Outcome struct {
	Calls []Call // the counted calls
	Code  int    // its exit code; -1 if it was killed
	Out   string // standard output
	Err   string
}

// Hit returns the call with the fault, if the program reached it.
func (o Outcome) Hit(w Watch) (Call, bool) {
	if w.At == 0 || len(o.Calls) < w.At {
		return Call{}, false
	}
	return o.Calls[w.At-1], true
}

// Run runs a program to its end. Only the program's own calls count, and not those of its child processes.
func (w Watch) Run(cmd *exec.Cmd) (Outcome, error) {
	ours, theirs, err := socketpair()
	if err != nil {
		return Outcome{}, err
	}
	defer ours.Close()
	var out, errs bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &errs
	if err := w.launch(cmd, theirs); err != nil {
		return Outcome{}, err
	}
	listener, err := receive(ours)
	if err != nil {
		_ = cmd.Process.Kill()
		return Outcome{}, errors.Join(fmt.Errorf("watching %s: %w: %s", cmd.Path, err, errs.String()), ignoreExit(cmd.Wait()))
	}
	defer unix.Close(listener)
	s := &supervisor{Watch: w, listener: listener, pid: cmd.Process.Pid}
	ended, watched := make(chan struct{}), make(chan error, 1)
	go func() { watched <- s.serve(ended) }()
	err = ignoreExit(cmd.Wait())
	close(ended)
	err = errors.Join(err, <-watched)
	return Outcome{Calls: s.seen, Code: cmd.ProcessState.ExitCode(), Out: out.String(), Err: errs.String()}, err
}

func ignoreExit(err error) error {
	var exited *exec.ExitError
	if errors.As(err, &exited) {
		return nil
	}
	return err
}

// Variables with which Main is called to execute another program.
const (
	environment = "CORPUS_FAULT_CALLS" // names of the calls to watch
	target      = "CORPUS_FAULT_PROGRAM"
)

// launch starts this binary, whose Main installs the filter and executes the program.
func (w Watch) launch(cmd *exec.Cmd, theirs *os.File) error {
	defer theirs.Close()
	table := calls()
	for _, name := range w.Calls {
		if _, known := table[name]; !known {
			return fmt.Errorf("no call is named %q", name)
		}
	}
	if cmd.Env == nil {
		cmd.Env = os.Environ()
	}
	cmd.Env = append(cmd.Env, environment+"="+strings.Join(w.Calls, ","), target+"="+cmd.Path)
	cmd.Path, cmd.ExtraFiles = "/proc/self/exe", []*os.File{theirs}
	return cmd.Start()
}

func socketpair() (ours, theirs *os.File, err error) {
	pair, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return nil, nil, err
	}
	return os.NewFile(uintptr(pair[0]), "watch"), os.NewFile(uintptr(pair[1]), "watched"), nil
}

// receive receives the file descriptor of the filter.
func receive(from *os.File) (int, error) {
	word, rights := make([]byte, 1), make([]byte, unix.CmsgSpace(4))
	_, n, _, _, err := unix.Recvmsg(int(from.Fd()), word, rights, unix.MSG_CMSG_CLOEXEC)
	if err != nil {
		return 0, err
	}
	messages, err := unix.ParseSocketControlMessage(rights[:n])
	if err != nil || len(messages) != 1 {
		return 0, errors.Join(errors.New("the watch did not begin"), err)
	}
	fds, err := unix.ParseUnixRights(&messages[0])
	if err != nil || len(fds) != 1 {
		return 0, errors.Join(errors.New("the watch has no end"), err)
	}
	return fds[0], nil
}
