package process

import (
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"sync"
	"time"
)

// outputGrace is how long Run waits for the output of a command that has ended while a child keeps it open.
const outputGrace = time.Second

// Run starts the command of the tree, which the caller made with the context, and waits for it. The error is that of
// the command's own process. Processes that it left behind are ended as by [Tree.End]. held reports that one of them
// kept the output open for longer than a moment.
func (t *Tree) Run(ctx context.Context) (held bool, err error) {
	return t.run(ctx, func(overdue, held bool) { t.End(overdue || held) })
}

// RunAndLeave is like [Tree.Run] for a command that may leave processes behind: they continue, unless the context ended
// the command. Output that they write later is discarded.
func (t *Tree) RunAndLeave(ctx context.Context) (held bool, err error) {
	return t.run(ctx, func(overdue, _ bool) {
		if overdue {
			t.End(true)
			return
		}
		t.Leave()
	})
}

func (t *Tree) run(ctx context.Context, after func(overdue, held bool)) (held bool, err error) {
	s, err := streamsOf(t.cmd)
	if err == nil {
		err = Start(t.cmd)
	}
	s.started()
	if err != nil {
		s.stop()
		after(false, false)
		return false, err
	}
	err = t.cmd.Wait()
	overdue := err != nil && ctx.Err() != nil
	held = !overdue && !s.end(outputGrace)
	after(overdue, held)
	s.end(outputGrace)
	s.stop()
	return held, err
}

// streams are the pipes of a command. The pipes of os/exec would not do: its Wait waits for them too, so that a process
// left behind turns a success into an error.
type streams struct {
	theirs  []io.Closer // the command's ends, closed once it was started
	ours    []io.Closer
	feed    func()
	outputs []func()
	read    chan struct{} // closed when all output has been read
}

// streamsOf replaces a command's readers and writers that are not files by pipes.
func streamsOf(cmd *exec.Cmd) (*streams, error) {
	s := &streams{feed: func() {}, read: make(chan struct{})}
	if err := s.input(cmd); err != nil {
		return s, err
	}
	same := cmd.Stderr == cmd.Stdout
	var err error
	if cmd.Stdout, err = s.output(cmd.Stdout); err == nil && same {
		cmd.Stderr = cmd.Stdout
	} else if err == nil {
		cmd.Stderr, err = s.output(cmd.Stderr)
	}
	return s, err
}

func (s *streams) input(cmd *exec.Cmd) error {
	from := cmd.Stdin
	if _, file := from.(*os.File); file || from == nil {
		return nil
	}
	r, w, err := s.pipe()
	if err != nil {
		return err
	}
	s.theirs, s.ours = append(s.theirs, r), append(s.ours, w)
	s.feed = func() {
		_, _ = io.Copy(w, from) // a command need not read all of its input
		_ = w.Close()
	}
	cmd.Stdin = r
	return nil
}

func (s *streams) output(to io.Writer) (io.Writer, error) {
	if _, file := to.(*os.File); file || to == nil {
		return to, nil
	}
	r, w, err := s.pipe()
	if err != nil {
		return nil, err
	}
	s.theirs, s.ours = append(s.theirs, w), append(s.ours, r)
	s.outputs = append(s.outputs, func() { _, _ = io.Copy(to, r) }) // stop closes r
	return w, nil
}

func (s *streams) pipe() (r, w *os.File, err error) {
	if r, w, err = os.Pipe(); err != nil {
		err = fmt.Errorf("making a pipe: %w", err)
	}
	return r, w, err
}

// started closes the command's ends and starts to copy.
func (s *streams) started() {
	closeAll(s.theirs)
	go s.feed()
	var all sync.WaitGroup
	for _, output := range s.outputs {
		all.Go(output)
	}
	go func() {
		all.Wait()
		close(s.read)
	}()
}

// end reports whether all output has been read within a duration.
func (s *streams) end(within time.Duration) bool {
	select {
	case <-s.read:
		return true
	case <-time.After(within):
		return false
	}
}

// stop closes the pipes. If a writer is still blocked with the last output, for example a stopped terminal, the
// remaining output is lost.
func (s *streams) stop() {
	closeAll(s.ours)
	s.end(outputGrace)
}

func closeAll(files []io.Closer) {
	for _, f := range files {
		_ = f.Close() // closing a pipe loses nothing
	}
}
