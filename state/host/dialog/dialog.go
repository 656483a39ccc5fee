// Package dialog starts a process and exchanges messages with it over two pipes.
package dialog

import (
	"errors"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/corpus-agent/corpus-agent/artifact/process"
)

// Dialog is a process that reads requests from its descriptor 3 and writes answers to its descriptor 4, until Close.
// The end of its output is kept for messages.
type Dialog struct {
	cmd      *exec.Cmd
	tree     *process.Tree
	to, from *os.File
	printed  tail
	ended    chan struct{} // closed when the process has ended
	silent   chan struct{} // closed when the output is complete
	once     sync.Once
}

// Start starts a command whose program, directory and environment are set.
func Start(cmd *exec.Cmd) (*Dialog, error) {
	d := &Dialog{cmd: cmd, ended: make(chan struct{}), silent: make(chan struct{})}
	d.tree = process.Enclose(cmd)
	if err := d.start(); err != nil {
		return nil, err
	}
	return d, nil
}

// start connects the process and starts it. Its output is read independently of its end, since a child may keep the
// pipe open for longer.
func (d *Dialog) start() error {
	var files []*os.File
	pipe := func() (r, w *os.File, err error) {
		r, w, err = os.Pipe()
		files = append(files, r, w)
		return r, w, err
	}
	theirIn, to, err := pipe()
	from, theirOut, err2 := pipe()
	printed, theirText, err3 := pipe()
	if err := errors.Join(err, err2, err3); err != nil {
		closeFiles(files...)
		d.tree.Leave()
		return err
	}
	d.to, d.from = to, from
	d.cmd.ExtraFiles, d.cmd.Stdout, d.cmd.Stderr = []*os.File{theirIn, theirOut}, theirText, theirText
	d.cmd.SysProcAttr.Pdeathsig = syscall.SIGKILL
	err = d.run()
	closeFiles(theirIn, theirOut, theirText)
	if err != nil {
		closeFiles(to, from, printed)
		d.tree.End(false)
		return err
	}
	go func() {
		d.printed.copy(printed)
		close(d.silent)
	}()
	return nil
}

// run starts the process on a thread that lives as long as the process: the kernel kills the process when the
// thread that
// started it ends, as it does when this program is killed.
func (d *Dialog) run() error {
	started := make(chan error)
	go func() {
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		err := process.Start(d.cmd)
		started <- err
		if err == nil {
			_ = d.cmd.Wait() // Ending describes how it ended
			close(d.ended)
		}
	}()
	return <-started
}

func closeFiles(files ...*os.File) {
	for _, f := range files {
		if f != nil {
			_ = f.Close() // a pipe has no data to flush
		}
	}
}

// Read reads the answers of the process.
func (d *Dialog) Read(p []byte) (int, error) { return d.from.Read(p) }

// Write sends data to the process.
func (d *Dialog) Write(p []byte) (int, error) { return d.to.Write(p) }

// HangUp closes the pipe from which the process reads.
func (d *Dialog) HangUp() error { return d.to.Close() }

// Signal sends a signal to the process alone.
func (d *Dialog) Signal(s syscall.Signal) error { return d.cmd.Process.Signal(s) }

// Printed returns the end of the output of the process.
func (d *Dialog) Printed() string { return d.printed.String() }

// Ending waits a moment for the end of a process that has closed its pipe, and returns a description of how it ended.
func (d *Dialog) Ending() string {
	select {
	case <-d.ended:
		select { // the pipe may still have output, and a child may hold it open
		case <-d.silent:
		case <-time.After(closeWait):
		}
		return d.cmd.ProcessState.String()
	case <-time.After(closeWait):
		return "still running"
	}
}

// closeWait is the time that a process has to end by itself after its pipes are closed.
const closeWait = 2 * time.Second

// Close closes the pipes, waits for a moment, and ends the process with all processes that it started.
func (d *Dialog) Close() { d.close(closeWait) }

// Kill ends the process with all processes that it started, at once.
func (d *Dialog) Kill() { d.close(0) }

func (d *Dialog) close(wait time.Duration) {
	d.once.Do(func() {
		_ = d.to.Close() // the process reads the end of its input
		if wait > 0 {
			select {
			case <-d.ended:
			case <-time.After(wait):
			}
		}
		_ = d.tree.Signal(syscall.SIGKILL) // it may have ended
		_ = d.from.Close()
		select {
		case <-d.ended:
		case <-time.After(closeWait):
		}
		d.tree.End(wait == 0)
	})
}

// tail keeps the end of the output of a process.
type tail struct {
	mu   sync.Mutex
	text []byte
}

const tailSize = 8 << 10

func (t *tail) copy(from *os.File) {
	defer from.Close()
	buffer := make([]byte, 4<<10)
	for {
		n, err := from.Read(buffer)
		t.mu.Lock()
		t.text = append(t.text, buffer[:n]...)
		if over := len(t.text) - tailSize; over > 0 {
			t.text = append(t.text[:0], t.text[over:]...)
		}
		t.mu.Unlock()
		if err != nil {
			return
		}
	}
}

func (t *tail) String() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return strings.ToValidUTF8(string(t.text), "?")
}
