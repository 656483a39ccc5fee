package python

import (
	"context"
	"errors"
	"fmt"
	"os/exec"
	"strings"
	"syscall"
	"time"

	"github.com/corpus-agent/corpus-agent/state/diag"
	"github.com/corpus-agent/corpus-agent/state/host"
	"github.com/corpus-agent/corpus-agent/state/host/dialog"
)

// pythonOptions returns the arguments of python3. Without -S it would execute code of .pth files and
// sitecustomize, which
// other users may have written, before the worker can check anything.
func pythonOptions() []string { return []string{"-I", "-S", "-B", "-c", bootstrap} }

// searchPath is the PATH of the worker. Modules see only the variables of environment, not those of the agent.
const searchPath = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"

func environment() []string {
	return []string{"PATH=" + searchPath, "LANG=C.UTF-8", "HOME=/", "LC_ALL=C.UTF-8"}
}

// startTime is the maximum time that python3 takes to read its program.
const startTime = 30 * time.Second

// start starts the process, unless there is one.
func (w *Worker) start(ctx context.Context) error {
	if w.talk != nil {
		return nil
	}
	talk, err := w.options.Host.Talk(host.Command{Argv: append([]string{"python3"}, pythonOptions()...),
		Env: environment()})
	if err != nil {
		return notStarted(err)
	}
	w.started++
	w.sent, w.pillar = map[string][]byte{}, nil
	w.forget()
	if err := w.introduce(ctx, talk, startTime); err != nil {
		return err
	}
	w.talk = talk
	return nil
}

// ErrAbsent is wrapped by the error of a host that has no python3.
var ErrAbsent = errors.New("the host has no python3, which the tree's own modules need")

// notStarted returns the error for a python3 that the kernel did not start.
func notStarted(err error) error {
	switch {
	case errors.Is(err, exec.ErrNotFound):
		return &Unstarted{diag.Python.Hint(ErrAbsent,
			"install python3 (3.7 or newer), or take the modules out of the tree")}
	case errors.Is(err, syscall.ENOEXEC), errors.Is(err, syscall.EINVAL), errors.Is(err, syscall.ELIBBAD):
		// The hint of the error is for scripts.
		return &Unstarted{diag.Python.Hint(errors.New(err.Error()+": the file is empty or damaged, or made for another "+
			"kind of machine"), "reinstall python3, on Debian: apt-get install --reinstall python3-minimal "+
			"libpython3-stdlib")}
	}
	var skipped *host.Skipped
	if errors.As(err, &skipped) {
		return err
	}
	return &Unstarted{diag.Python.Hint(fmt.Errorf("starting python3: %w", err),
		"run `python3 -I -S -c pass` on the host: it has to end at once, and to print nothing")}
}

// refusal begins the message with which the worker ends because other users can change the files of python3.
const refusal = "root does not run "

// introduce sends the process its program and the first message, and waits until it has read them. It ends a process
// that does not read them in time, or when the context ends.
func (w *Worker) introduce(ctx context.Context, talk *dialog.Dialog, most time.Duration) error {
	begin, err := w.begin()
	if err != nil {
		talk.Kill()
		return err
	}
	own, done := context.WithTimeoutCause(ctx, most, fmt.Errorf("it did not read its program within %s", most))
	defer done()
	stop := context.AfterFunc(own, talk.Kill)
	err = w.sendProgram(talk)
	if err == nil {
		err = writeFrame(talk, begin)
	}
	if err == nil {
		_, err = readFrame(talk) // it is ready
	}
	if !stop() {
		err = context.Cause(own)
	}
	if err == nil {
		return nil
	}
	w.kept().Write(keptProgram, nil) // in case the bytecode is at fault, the next start compiles the text
	if hungUp(err) {
		err = fmt.Errorf("it ended at once (%s)", talk.Ending())
	}
	talk.Kill()
	err = fmt.Errorf("starting python3: %w%s", err, lastLines(talk.Printed()))
	if ctx.Err() == nil {
		err = &Unstarted{err}
	}
	if strings.Contains(talk.Printed(), refusal) {
		return diag.Exposed.Hint(err, "give the file or directory to root, and let root alone write to it")
	}
	return diag.Python.Hint(err,
		"run `python3 -I -S -c 'import json, traceback'` on the host: it has to end at once, and to print nothing")
}
