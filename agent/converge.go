package agent

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/corpus-agent/corpus-agent/agent/exit"
	"github.com/corpus-agent/corpus-agent/agent/failure"
	"github.com/corpus-agent/corpus-agent/agent/ledger"
	"github.com/corpus-agent/corpus-agent/agent/procedure"
	"github.com/corpus-agent/corpus-agent/agent/report"
	"github.com/corpus-agent/corpus-agent/agent/topfiles"
	"github.com/corpus-agent/corpus-agent/state"
	"github.com/corpus-agent/corpus-agent/state/compile"
	"github.com/corpus-agent/corpus-agent/state/diag"
	"github.com/corpus-agent/corpus-agent/state/exec"
	"github.com/corpus-agent/corpus-agent/state/host/units"
)

// converge runs the engine over a pair.
func (r *run) converge(ctx context.Context, pair ledger.Pair) error {
	return r.record.Stage("converge", pair.String(), func() error {
		return failure.Within(ctx, "converge.timeout", r.Config.ConvergeTimeout, func(ctx context.Context) error {
			err := r.guarded(pair, func() error { return r.convergeTo(ctx, pair) })
			if err != nil && r.fault.OfBase(pair, err) {
				r.record.Complete(func(rep *report.Report) { rep.FailedInBase = true })
			}
			return err
		})
	})
}

// guarded runs states of a pair with do. It returns an error, and restores the links, if a state changes the links and
// directories that only deploys move.
func (r *run) guarded(pair ledger.Pair, do func() error) error {
	if r.test || !r.isNative() {
		return do()
	}
	pairs := []ledger.Pair{pair}
	if runs := r.ledger.Runs(); runs != nil {
		pairs = append(pairs, *runs)
	}
	r.guard, r.movedBy = r.linking.Guard(pairs...), nil
	defer func() { r.guard = nil }()
	err := do()
	moved := r.movedBy
	if moved == nil {
		return err
	}
	aside, back := r.guard.PutBack()
	if back != nil {
		r.record.Note("the links were not all restored: %v", back)
	}
	for _, name := range aside {
		r.record.Note("what was in the place of a link is now %s", name)
	}
	if err != nil { // it may be one of the host, which is not the cause
		moved = fmt.Errorf("%w; after that: %v", moved, err)
	}
	return exit.WithCode(exit.Failed, moved)
}

// guardAfter records the first state after which a link or directory that only deploys move is not as it was.
func (r *run) guardAfter(result *exec.Result) {
	r.endedMu.Lock()
	defer r.endedMu.Unlock()
	if r.guard == nil || r.movedBy != nil || result.Changes.Len() == 0 && result.Outcome == exec.Succeeded {
		return
	}
	if what := r.guard.Changed(); what != "" {
		r.movedBy = diag.Contradiction.Hint(diag.At(result.Step.Pos, "%s %s changed what only deploys move: %s",
			result.Step.Function(), result.ID(), what),
			"take it out of the state, or except this path: the agent makes and moves it itself")
	}
}

func (r *run) convergeTo(ctx context.Context, pair ledger.Pair) error {
	if err := r.releases.Intact(ctx, pair); err != nil {
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
	r.serving.BeginStates()
	began := time.Now()
	seen := &topfiles.Origins{Observer: r.record, InBase: func(file string) bool { return r.fault.InBase(pair, file) }}
	outcome, err := program.Apply(ctx, r.observing(seen)) // the outermost observer gets the redactor
	r.excused = outcome.Excused()
	r.selfTest.Converged(time.Since(began))
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
	r.topFiles.NoteUnused(pair, seen)
	return r.topFiles.Count(ctx, pair, outcome)
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
	r.topFiles.Report(request)
	return state.WithTemplates(engine).Compile(ctx, request)
}

// private is an observer that checks, before and after a state changes a file, whether every user may read the file,
// since the result of the state shows both contents.
type private struct {
	exec.Observer
	of *run
}

func (p private) StepStarted(s *compile.Step) {
	p.of.delivery.Readable.LookAt(s.Name())
	p.Observer.StepStarted(s)
}

func (p private) StepDone(r *exec.Result) {
	if r.Outcome != exec.Succeeded || r.Changes.Len() > 0 { // of another step, no content is shown
		p.of.delivery.Readable.LookAt(r.Step.Name())
	}
	p.of.guardAfter(r)
	if r.Ended() {
		p.of.endIn(r.Step.Function() + " " + r.ID())
	}
	if s := r.Step; s.Function() == "service.running" && r.Outcome == exec.Succeeded && r.Changes.Len() > 0 {
		p.of.serving.StartedByState(s.Name())
	}
	p.Observer.StepDone(r)
}

// endIn records the state that was ended after the run was asked to end.
func (r *run) endIn(state string) {
	r.endedMu.Lock()
	defer r.endedMu.Unlock()
	r.endedIn = state
}

// observing returns an observer that passes its events to o. It also checks the files that states change, and records
// in the journal which state runs.
func (r *run) observing(o exec.Observer) exec.Observer {
	return r.undo.Observing(private{Observer: o, of: r})
}

// convergeAndInstall converges a pair by its top files, and then applies the project's own SLS files.
func (r *run) convergeAndInstall(ctx context.Context, pair ledger.Pair) error {
	if r.only.Has(procedure.Converge) {
		if err := r.converge(ctx, pair); err != nil {
			return err
		}
	}
	if err := r.guarded(pair, func() error { return r.project.Install(ctx, pair) }); err != nil {
		return err
	}
	return r.project.Fixperms(ctx, pair)
}

// settleUnits reloads systemd if states changed its files, and no state has acted on a unit since.
func (r *run) settleUnits(ctx context.Context) {
	h := r.undo.RecordedHost()
	if h == nil || r.test {
		return
	}
	if err := units.Settle(context.WithoutCancel(ctx), h); err != nil {
		r.record.Note("files of units changed: %v; run `systemctl daemon-reload`", err)
	}
}
