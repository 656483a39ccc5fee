package agent

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"time"

	"github.com/corpus-agent/corpus-agent/agent/exit"
	"github.com/corpus-agent/corpus-agent/agent/failure"
	"github.com/corpus-agent/corpus-agent/agent/inspect"
	"github.com/corpus-agent/corpus-agent/agent/layout"
	"github.com/corpus-agent/corpus-agent/agent/ledger"
	"github.com/corpus-agent/corpus-agent/agent/procedure"
	"github.com/corpus-agent/corpus-agent/agent/report"
	"github.com/corpus-agent/corpus-agent/grains"
	"github.com/corpus-agent/corpus-agent/state"
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
		ctx, cancel := context.WithTimeout(ctx, r.Config.ConvergeTimeout)
		defer cancel()
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
	})
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

// engine is what converges.
func (r *run) engine() (state.Engine, error) {
	if r.Engine != nil {
		return r.Engine, nil
	}
	engine, err := state.ByName(r.Config.Engine, r.Config.EngineCommand)
	return engine, exit.WithCode(exit.Usage, err)
}

// request says what to converge, and keeps what converging replaces.
func (r *run) request(ctx context.Context, pair ledger.Pair) (state.Request, error) {
	request, err := r.readOnlyRequest(ctx, pair)
	if err != nil || r.test {
		return request, err
	}
	if request.Host, err = r.undo.Recording(pair); err != nil {
		return request, err
	}
	request.Host.Units = cmp.Or(r.StateUnits, request.Host.Units)
	if r.flips {
		request.Host.Units, err = r.serving.UnitsBeforeLinks(pair, request.Host.Units)
	}
	return request, err
}

// readOnlyRequest says what to converge. A pair that links name is converged through them, so that paths in
// SLS files, which people write as /srv/service/next, mean what they say; a rehearsal has only the
// release directories.
func (r *run) readOnlyRequest(ctx context.Context, pair ledger.Pair) (state.Request, error) {
	service, base := r.PairDirs(pair)
	if !r.test || r.linked(pair) {
		service, base = r.LinkedDirs(pair)
	}
	request, warnings, err := r.Agent.EngineRequest(ctx, r.identity, service, base)
	for _, w := range warnings {
		r.record.Note("grains: %v", failure.Unexecuted(r.Layout, w))
	}
	if err != nil {
		return request, err
	}
	if r.WithoutPillar && r.ledger.Good != nil { // base alone renders with the pillar that the releases bring, as it did before
		service, _ := r.PairDirs(*r.ledger.Good) // links of it may be lost
		request.PillarRoots = layout.PillarRoots(service, base)
	}
	request.Templates, err = r.Templates(base, service)
	request.Test = r.test
	request.Log = r.log
	if r.test && !r.linked(pair) {
		request.Host = request.Host.Foreseeing(r.foreseenLinks(pair))
	}
	return request, err
}

// log keeps what templates say and do in the report. What they say to developers is left out.
func (r *run) log(level, message string) {
	if level == "warning" || level == "error" || level == "critical" {
		r.record.Note("%s", message)
	}
}

// foreseenLinks maps the links through which states of a deploy read a pair's releases to the releases' directories: while states
// run, next of each project and current of base lead to them, and current of the service to the release before.
func (a *Agent) foreseenLinks(pair ledger.Pair) map[string]string {
	links := map[string]string{}
	for _, release := range pair.Releases() {
		p := a.LayoutOf(release.Project)
		dirs, names := []string{p.Dir}, []string{"next"}
		switch {
		case pair.Base != nil && release.Project == pair.Base.Project:
			dirs, names = append(dirs, a.Layout.BaseLink()), append(names, "current")
		case a.Alone == "":
			dirs = append(dirs, a.Layout.ServiceLink())
		}
		for _, dir := range dirs {
			for _, name := range names {
				links[a.Layout.Inside(filepath.Join(dir, name))] = a.Layout.Inside(p.Release(release.Dir()))
			}
		}
	}
	return links
}
