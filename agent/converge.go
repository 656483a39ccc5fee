package agent

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/corpus-agent/corpus-agent/agent/exit"
	"github.com/corpus-agent/corpus-agent/agent/failure"
	"github.com/corpus-agent/corpus-agent/agent/inspect"
	"github.com/corpus-agent/corpus-agent/agent/ledger"
	"github.com/corpus-agent/corpus-agent/agent/procedure"
	"github.com/corpus-agent/corpus-agent/agent/report"
	"github.com/corpus-agent/corpus-agent/grains"
	"github.com/corpus-agent/corpus-agent/state"
	"github.com/corpus-agent/corpus-agent/state/compile"
	"github.com/corpus-agent/corpus-agent/state/exec"
)

// Converge brings the host to what its current releases say. It never contacts the store.
func (a *Agent) Converge(ctx context.Context, test bool) (*report.Report, error) {
	if a.Lent != 0 && test {
		return a.trial(ctx)
	}
	return a.pass(ctx, "converge", test, func(r *run) error {
		if r.ledger.Runs() == nil {
			return inspect.ErrNothingDeployed()
		}
		if r.ledger.Good == nil {
			r.record.Note("nothing of the service was deployed yet; %s converges alone", r.ledger.Alone)
		}
		if err := r.identify(ctx, grains.Identity{}); err != nil {
			return err
		}
		if err := r.settleCut(ctx); err != nil {
			return r.baseWithout(ctx, err)
		}
		return r.serving.StillServes(ctx, r.orDoubt(r.convergeGood(ctx)))
	})
}

// convergeGood converges what is deployed, or base alone, after it has brought back what of it was lost. Where an earlier
// run put the links back and was cut short before the units followed them, this is the rest of its way back.
func (r *run) convergeGood(ctx context.Context) error {
	if !r.test && r.ledger.Failing == nil && r.ledger.Running == nil {
		fresh, err := r.complete(ctx)
		if err != nil {
			return err
		}
		converge := r.converge
		if fresh {
			converge = r.convergeAndInstall
		}
		restart, err := r.serving.FollowReplaced(ctx, *r.ledger.Runs())
		if err != nil {
			return err
		}
		switch s := r.ledger.Serving; {
		case restart:
			return r.serving.ConvergeAndServe(ctx, *r.ledger.Runs(), converge)
		case s != nil && !s.Since.IsZero():
			return r.serving.ConvergeAndRestart(ctx, *r.ledger.Runs(), converge)
		case fresh:
			return converge(ctx, *r.ledger.Runs())
		}
	}
	if r.ledger.Serving == nil || r.test {
		return r.converge(ctx, *r.ledger.Runs())
	}
	r.record.Note("%s", unfinishedUnits(*r.ledger.Serving))
	return r.settleDown(ctx, *r.ledger.Runs())
}

// unfinishedUnits says why units are restarted though nothing is deployed.
func unfinishedUnits(s ledger.Serving) string {
	if len(s.Retry) > 0 {
		return fmt.Sprintf("%s did not run what is deployed after the way back of run %s; that is tried again", strings.Join(s.Retry, ", "), s.Run)
	}
	return fmt.Sprintf("run %s was cut short before all units ran what is deployed; they are restarted", s.Run)
}

// converge runs the engine over a pair.
func (r *run) converge(ctx context.Context, pair ledger.Pair) error {
	return r.record.Stage("converge", pair.String(), func() error {
		return failure.Within(ctx, "converge.timeout", r.Config.ConvergeTimeout, func(ctx context.Context) error {
			return r.convergeTo(ctx, pair)
		})
	})
}

func (r *run) convergeTo(ctx context.Context, pair ledger.Pair) error {
	if err := r.intact(ctx, pair); err != nil {
		return err
	}
	program, err := r.compile(ctx, pair)
	if err != nil {
		return err
	}
	if r.Engine == nil {
		if err := r.undo.BeforeEngine(); err != nil {
			return err
		}
	}
	if r.Engine == nil && r.Config.Engine != "native" {
		r.learnSecrets(ctx, pair)
	}
	down := r.serving.UnservedBefore(ctx, pair)
	began := time.Now()
	seen := &origins{Observer: r.record, inBase: func(file string) bool { return r.inBase(pair, file) }}
	outcome, err := program.Apply(ctx, r.observing(seen)) // the outermost observer gets the redactor
	r.took = max(r.took, time.Since(began))
	err = errors.Join(err, r.undo.Synced())
	r.settleUnits(ctx)
	r.serving.KeepUnserved(ctx, down)
	if outcome.Output != "" {
		r.record.Output(outcome.Output)
	}
	var failed *state.Failure
	if errors.As(err, &failed) {
		return exit.WithCode(exit.Failed, err)
	}
	if err != nil {
		return err
	}
	r.noteUnused(pair, seen)
	return r.emptied(ctx, pair, outcome)
}

func (r *run) compile(ctx context.Context, pair ledger.Pair) (state.Program, error) {
	engine, err := r.engine()
	if err != nil {
		return nil, err
	}
	request, err := r.request(ctx, pair)
	if err != nil {
		return nil, err
	}
	r.reportTop(request)
	return state.WithTemplates(engine).Compile(ctx, request)
}

// compiles reports why a pair does not compile, before a hook of it has run: what a hook does cannot be taken back.
func (r *run) compiles(ctx context.Context, pair ledger.Pair) error {
	if !r.only.Has(procedure.Converge) {
		return nil
	}
	engine, err := r.engine()
	if err != nil {
		return err
	}
	request, err := r.readOnlyRequest(ctx, pair)
	if err != nil {
		return err
	}
	request.Test = true
	_, err = state.WithTemplates(engine).Compile(ctx, request)
	return err
}

// private is an observer that looks at the files of states before and after they change: whether everybody may read
// them then, as what a state reports shows both.
type private struct {
	exec.Observer
	of *run
}

func (p private) StepStarted(s *compile.Step) {
	p.of.readable.LookAt(s.Name())
	p.Observer.StepStarted(s)
}

func (p private) StepDone(r *exec.Result) {
	p.of.readable.LookAt(r.Step.Name())
	if r.Ended() {
		p.of.endIn(r.Step.Function() + " " + r.ID())
	}
	p.Observer.StepDone(r)
}

// endIn remembers the state that was ended since the run was asked to end.
func (r *run) endIn(state string) {
	r.endedMu.Lock()
	defer r.endedMu.Unlock()
	r.endedIn = state
}

// observing adds what a run does about states beside their results: the files that they change are looked at, and the
// journal gets to know which state is at work.
func (r *run) observing(o exec.Observer) exec.Observer {
	return r.undo.Observing(private{Observer: o, of: r})
}
