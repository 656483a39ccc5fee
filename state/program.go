package state

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	osexec "os/exec"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/corpus-agent/corpus-agent/artifact/process"
	"github.com/corpus-agent/corpus-agent/state/diag"
	"github.com/corpus-agent/corpus-agent/state/exec"
	"github.com/corpus-agent/corpus-agent/state/value"
)

// program is a process that converges in the place of the native engine.
type program struct {
	argv []string
	env  []string
	dir  string
	read func(stdout []byte) (Outcome, error) // parses the output into results; nil keeps the text
}

// prepare finds the program. It returns an error for a host with a root, since the program acts on the running system.
func prepare(r Request, p program) (Program, error) {
	if err := r.Host.Commands.Allowed("the engine " + p.argv[0]); err != nil {
		return nil, err
	}
	file, err := process.Look(p.argv[0])
	if err != nil {
		return nil, diag.Engine.Hint(fmt.Errorf("finding the engine: %w", err),
			"install it, or set `engine: native` in agent.yaml")
	}
	p.argv[0] = file
	p.env = append(process.Environ(), append(p.env, describe(r)...)...)
	return p, nil
}

// describe returns the environment variables that tell a program which trees to converge.
func describe(r Request) []string {
	env := []string{"CORPUS_SERVICE_DIR=" + r.Service, "CORPUS_BASE_DIR=" + r.Base}
	if r.Test {
		env = append(env, "CORPUS_TEST=1")
	}
	for _, grain := range []string{"service_name", "service_instance", "region", "service_node", "cluster_name",
		"service_group"} {
		if v, ok := r.Grains.Get(grain); ok {
			env = append(env, "CORPUS_"+strings.ToUpper(grain)+"="+value.Str(v))
		}
	}
	return env
}

// stopGrace is the time that a program has to end after SIGTERM.
const stopGrace = 30 * time.Second

// Apply runs the program. When ctx is done, the program gets a signal to stop, and is killed if it does not.
func (p program) Apply(ctx context.Context, _ exec.Observer) (Outcome, error) {
	cmd := osexec.CommandContext(ctx, p.argv[0], p.argv[1:]...)
	var stdout bytes.Buffer
	all := &transcript{}
	cmd.Stdout, cmd.Stderr = io.MultiWriter(&stdout, all), all
	cmd.Env, cmd.Dir = p.env, p.dir
	tree := process.Enclose(cmd)
	cmd.WaitDelay = stopGrace
	cmd.Cancel = func() error { return tree.Signal(syscall.SIGTERM) }
	_, err := tree.RunAndLeave(ctx) // processes that its states started continue
	if err != nil && errors.Is(ctx.Err(), context.DeadlineExceeded) {
		return Outcome{Output: all.String()}, overdue(ctx)
	}
	if err != nil && ctx.Err() != nil {
		return Outcome{Output: all.String()}, ctx.Err()
	}
	if p.read != nil {
		outcome, readErr := p.read(stdout.Bytes())
		if readErr == nil {
			return outcome, errors.Join(failure(outcome.Results, failed), silent(err, outcome))
		}
	}
	if err != nil {
		err = diag.Engine.Hint(fmt.Errorf("%s: %w: %s", p.argv[0], err, lastLine(all.String())),
			"the report has all that it printed")
	}
	return Outcome{Output: all.String()}, err
}

// silent drops the error of an exit code if results of states have failed, since these explain it.
func silent(err error, o Outcome) error {
	if failure(o.Results, (*exec.Result).Fails) != nil {
		return nil
	}
	return err
}

func lastLine(s string) string {
	s = strings.TrimSpace(s)
	return s[strings.LastIndexByte(s, '\n')+1:]
}

// transcript keeps the output of a program, both streams in the order in which they arrive. Of a very long output it
// keeps the end, where the failures are.
type transcript struct {
	mu   sync.Mutex
	text []byte
}

const maxTranscript = 1 << 20

func (t *transcript) Write(p []byte) (int, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.text = append(t.text, p...)
	if over := len(t.text) - maxTranscript; over > maxTranscript {
		t.text = append(t.text[:0], t.text[over:]...)
	}
	return len(p), nil
}

func (t *transcript) String() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return string(t.text[max(0, len(t.text)-maxTranscript):])
}
