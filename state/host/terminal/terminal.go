// Package terminal gives commands pseudo-terminals in place of pipes.
package terminal

import (
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"time"

	"golang.org/x/sys/unix"
)

// Attach connects the streams of a command to terminals and copies its output. The caller must call finish when the
// command has ended, or was not started; the output is complete then.
func Attach(cmd *exec.Cmd, stdout, stderr io.Writer, merge bool) (finish func(), err error) {
	out, err := openTerminal()
	if err != nil {
		return nil, err
	}
	all := []*terminal{out}
	if cmd.Stdin == nil {
		cmd.Stdin = out.command
	}
	cmd.Stdout, cmd.Stderr = out.command, out.command
	out.copyTo(stdout)
	if !merge {
		second, err := openTerminal()
		if err != nil {
			return nil, errors.Join(err, out.close())
		}
		cmd.Stderr = second.command
		second.copyTo(stderr)
		all = append(all, second)
	}
	return func() {
		for _, t := range all {
			_ = t.close() // only reads use it
		}
	}, nil
}

// terminal is a pseudo-terminal: the side of the agent, and that of the command.
type terminal struct {
	agent, command *os.File
	copied         chan struct{}
}

func openTerminal() (*terminal, error) {
	fd, err := unix.Open("/dev/ptmx", unix.O_RDWR|unix.O_NOCTTY|unix.O_CLOEXEC|unix.O_NONBLOCK, 0)
	if err != nil {
		return nil, fmt.Errorf("opening a terminal: %w", err)
	}
	agent := os.NewFile(uintptr(fd), "/dev/ptmx")
	err = unix.IoctlSetPointerInt(fd, unix.TIOCSPTLCK, 0)
	n := 0
	if err == nil {
		n, err = unix.IoctlGetInt(fd, unix.TIOCGPTN)
	}
	var command *os.File
	if err == nil {
		command, err = os.OpenFile(fmt.Sprintf("/dev/pts/%d", n), os.O_RDWR|unix.O_NOCTTY, 0)
	}
	if err == nil {
		err = plainOutput(int(command.Fd()))
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("opening a terminal: %w", err), agent.Close())
	}
	return &terminal{agent: agent, command: command, copied: make(chan struct{})}, nil
}

// plainOutput turns off the translation of line feeds in the output.
func plainOutput(fd int) error {
	modes, err := unix.IoctlGetTermios(fd, unix.TCGETS)
	if err != nil {
		return err
	}
	modes.Oflag &^= unix.OPOST
	modes.Lflag &^= unix.ECHO
	return unix.IoctlSetTermios(fd, unix.TCSETS, modes)
}

func (t *terminal) copyTo(w io.Writer) {
	go func() {
		defer close(t.copied)
		_, _ = io.Copy(w, t.agent) // it ends with an error when the last process closes its side
	}()
}

// close copies the rest of the output. A process that the command left behind may keep the terminal open for longer.
func (t *terminal) close() error {
	err := t.command.Close()
	select {
	case <-t.copied:
	case <-time.After(2 * time.Second):
	}
	err = errors.Join(err, t.agent.Close())
	<-t.copied
	return err
}
