package custom

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"os/exec"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/corpus-agent/corpus-agent/artifact/process"
	"github.com/corpus-agent/corpus-agent/state/diag"
	"github.com/corpus-agent/corpus-agent/state/value"
)

const (
	defaultTimeout = 10 * time.Second
	maxOutput      = 1 << 20
	maxMessages    = 4 << 10

	// grace is the time of a program between SIGTERM and SIGKILL.
	grace = time.Second

	searchPath = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
)

// run starts a program and parses its output. It may return both a mapping and an error to warn about.
func (o Options) run(ctx context.Context, path string) (*value.Map, error) {
	timeout := cmp.Or(o.Timeout, defaultTimeout)
	ctx, stop := context.WithTimeout(ctx, timeout)
	defer stop()
	out := bounded{limit: maxOutput, full: stop}
	messages := bounded{limit: maxMessages, full: func() {}}
	var left error
	held, err := o.start(ctx, path, &out, &messages)
	if held {
		left = fmt.Errorf("%s left something running that kept its output open; that was ended", path)
	}
	switch {
	case out.more():
		return nil, fmt.Errorf("%s prints more than %d KiB", path, maxOutput>>10)
	case err != nil && errors.Is(ctx.Err(), context.DeadlineExceeded):
		return nil, diag.Timeout.Hint(fmt.Errorf("%s was stopped: it took longer than %s", path, timeout),
			"run it by hand to see what it waits for")
	case err != nil:
		return nil, fmt.Errorf("running %s: %w%s", path, err, lastLine(messages.text()))
	}
	m, err := parse("the output of "+path, out.text())
	return m, cmp.Or(err, left)
}

// start runs a program as a separate tree of processes, so that its child processes end with it.
func (o Options) start(ctx context.Context, path string, out, messages *bounded) (held bool, err error) {
	attributes := &syscall.SysProcAttr{}
	if o.Chroot {
		attributes.Chroot, path = o.Root, "/"+strings.TrimLeft(strings.TrimPrefix(path, o.Root), "/")
	}
	cmd := exec.CommandContext(ctx, path)
	cmd.Dir = "/"
	cmd.Env = o.environ()
	cmd.Stdout, cmd.Stderr = out, messages
	cmd.SysProcAttr = attributes
	tree := process.Enclose(cmd)
	cmd.Cancel = func() error { return tree.Signal(syscall.SIGTERM) }
	cmd.WaitDelay = grace
	return tree.Run(ctx)
}

// environ returns the complete environment of programs.
func (o Options) environ() []string {
	root := cmp.Or(o.Root, "/")
	if o.Chroot {
		root = "/"
	}
	return []string{
		"PATH=" + searchPath,
		"LANG=C.UTF-8",
		"HOME=/",
		"CORPUS_ROOT=" + root,
		"CORPUS_SERVICE=" + o.Identity.Service,
		"CORPUS_INSTANCE=" + o.Identity.Instance,
		"CORPUS_REGION=" + o.Identity.Region,
		"CORPUS_NODE=" + o.Identity.Node,
	}
}

// lastLine returns the last line of a program's messages, as the end of an error text.
func lastLine(messages []byte) string {
	lines := strings.Split(strings.TrimSpace(string(messages)), "\n")
	if last := strings.TrimSpace(lines[len(lines)-1]); last != "" {
		return ": " + last
	}
	return ""
}

// bounded keeps the first limit bytes that are written to it, and calls full once when there are more. Writing never
// fails, so that the program gets no SIGPIPE, which it does not expect. The buffer is not embedded: its ReadFrom would
// be preferred to Write, and reads everything.
type bounded struct {
	mu     sync.Mutex
	buffer bytes.Buffer
	limit  int
	over   bool
	full   func()
}

func (b *bounded) text() []byte {
	b.mu.Lock()
	defer b.mu.Unlock()
	return bytes.Clone(b.buffer.Bytes())
}

// more reports whether more bytes were written than it keeps.
func (b *bounded) more() bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.over
}

func (b *bounded) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	room := b.limit - b.buffer.Len()
	if len(p) > room && !b.over {
		b.over = true
		b.full()
	}
	b.buffer.Write(p[:min(len(p), room)])
	return len(p), nil
}
