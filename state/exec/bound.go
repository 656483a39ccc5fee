package exec

import (
	"context"
	"errors"
	"fmt"
	"path"
	"slices"
	"time"

	"github.com/corpus-agent/corpus-agent/state/compile"
	"github.com/corpus-agent/corpus-agent/state/diag"
	"github.com/corpus-agent/corpus-agent/state/host"
	"github.com/corpus-agent/corpus-agent/state/module"
	"github.com/corpus-agent/corpus-agent/state/value"
)

// abandonAfter is the time that a cancelled step has to return. A step that does not return, for example because it
// reads from a share whose server is down, is abandoned, since nothing can end it.
const abandonAfter = 30 * time.Second

var (
	errOverdue = errors.New("the time limit of the run was reached")
	errStopped = errors.New("the run was cancelled, and the step did not end within the grace period")
	errLooking = errors.New("the run was cancelled while the step compared what is there with its declaration")
)

// lookGrace is the time that a running check has to end after the run was cancelled. It is short, since a check changes
// nothing.
const lookGrace = 2 * time.Second

// bounded runs a step. When ctx is cancelled, a step that has begun has the runner's Grace to end before it is
// cancelled. When the deadline of ctx passes, the step is cancelled at once.
func (r *Runner) bounded(ctx context.Context, s *compile.Step, run func(context.Context) *Result) *Result {
	if ctx.Done() == nil {
		return run(ctx)
	}
	own, end := r.outlasting(ctx)
	defer end()
	own, busy := host.Tracking(own)
	done := make(chan *Result, 1)
	r.crew.start(func() func() {
		result := run(own)
		return func() { done <- result }
	})
	select {
	case result := <-done:
		return r.endedBy(own, result)
	case <-own.Done():
	}
	for {
		select {
		case result := <-done:
			return r.endedBy(own, result)
		case <-time.After(abandonAfter):
		}
		if !busy() {
			abandoned := &Result{Step: s, Changes: value.NewMap(), Comment: "the step did not return after it was cancelled",
				Started: time.Now()}
			r.redact(abandoned)
			return r.endedBy(own, abandoned)
		}
	}
}

// outlasting returns the context for a step. If the deadline of ctx passes, the context is done at once. If ctx is
// cancelled, the context is done after Grace, or never if Grace is 0. The caller must call end.
func (r *Runner) outlasting(ctx context.Context) (own context.Context, end func()) {
	own, cancel := context.WithCancelCause(context.WithoutCancel(ctx))
	own = context.WithValue(own, askedKey{}, &asked{ctx, cancel})
	stop := context.AfterFunc(ctx, func() {
		switch {
		case errors.Is(ctx.Err(), context.DeadlineExceeded):
			cancel(errOverdue)
		case r.Grace > 0:
			timer := time.AfterFunc(r.Grace, func() { cancel(errStopped) })
			context.AfterFunc(own, func() { timer.Stop() })
		}
	})
	return own, func() { stop(); cancel(nil) }
}

// asked holds the context of the run of a step, which is done when the run is to end, and a function that cancels the
// step.
type asked struct {
	run context.Context
	end context.CancelCauseFunc
}

type askedKey struct{}

// looking runs the check of a step. If the run is cancelled, looking cancels the check after lookGrace, or after Grace
// if that is shorter. Without [Runner.bounded], it does not cancel the check.
func (r *Runner) looking(ctx context.Context, look func(context.Context) (module.Diff, error)) (module.Diff, error) {
	a, bounded := ctx.Value(askedKey{}).(*asked)
	if !bounded {
		return look(ctx)
	}
	grace := lookGrace
	if r.Grace > 0 {
		grace = min(grace, r.Grace)
	}
	own, cancel := context.WithCancelCause(ctx) // not cancelled at the end: ctx may still use files of the check
	stop := context.AfterFunc(a.run, func() {
		timer := time.AfterFunc(grace, func() { cancel(errLooking) })
		context.AfterFunc(own, func() { timer.Stop() })
	})
	diff, err := look(own)
	if stop(); err != nil && errors.Is(context.Cause(own), errLooking) {
		a.end(errLooking)
	}
	return diff, err
}

// ended is the cause of the failure of a step that was cancelled with its run.
type ended struct{ error }

func (e *ended) Unwrap() error { return e.error }

// Ended reports whether the step was cancelled because its run was cancelled or reached its time limit.
func (r *Result) Ended() bool {
	var e *ended
	return errors.As(r.cause, &e)
}

// endedBy returns a result. If ctx is done and the step failed, endedBy changes the result to say that the step was
// cancelled, and why.
func (r *Runner) endedBy(ctx context.Context, result *Result) *Result {
	cause := context.Cause(ctx)
	if cause == nil || result.Outcome != Failed {
		return result
	}
	during := ""
	if guard := (*cutGuard)(nil); errors.As(result.cause, &guard) {
		during = " while its " + guard.key + " ran"
	}
	last := ""
	if code, ok := errors.AsType[interface {
		error
		LastLines() string
	}](result.cause); ok { // a module in Python says where it was
		last = result.shown(code.LastLines())
	}
	result.Comment = fmt.Sprintf("cancelled after %s%s: %v%s", result.lasted(), during, cause, last)
	hint := "run it again: what is done already stays"
	if errors.Is(cause, errOverdue) {
		hint = "see what it waits for; converge.timeout in agent.yaml limits the time of all states together"
	}
	result.Hint = diag.Timeout.Coded(hint)
	result.cause = &ended{cause}
	if during == "" && errors.Is(cause, errOverdue) {
		r.nameDelay(result)
	}
	return result
}

// nameDelay says in the result of a step that reached the time limit what a user may have made to delay it.
func (r *Runner) nameDelay(result *Result) {
	found := make(chan *host.Obstruction, 1) // a share whose server is down blocks a look at the paths, too
	go func() { found <- r.delayedBy(result.Step) }()
	select {
	case by := <-found:
		if by != nil { // the result is redacted already, and the path is not
			result.Comment, result.Hint = result.shown(by.After(result.Comment)), result.shown(by.Hint(result.Hint))
			result.obstruction = by
		}
	case <-time.After(lookGrace):
	}
}

// delayedBy returns what an unprivileged user may have made so large or so deep that a step of files does not end in
// time; nil if such a user can change none of its paths.
func (r *Runner) delayedBy(s *compile.Step) *host.Obstruction {
	if !slices.Contains([]string{"archive", "file", "git", "ini", "ssh_auth", "ssh_known_hosts"}, s.State()) {
		return nil
	}
	for _, argument := range []string{"name", "source", "target", "config"} {
		p, _ := s.Chunk.Value(argument).(string)
		if !path.IsAbs(p) {
			continue
		}
		if by, _ := r.Host.ObstructionOf(host.Unsuitable(path.Clean(p), errOverdue)); by != nil {
			return by
		}
	}
	return nil
}

func (r *Result) lasted() time.Duration {
	lasted := time.Since(r.Started)
	if lasted > time.Second {
		return lasted.Round(time.Second)
	}
	return lasted.Round(time.Millisecond)
}
