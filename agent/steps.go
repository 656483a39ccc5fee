package agent

import (
	"context"
	"errors"

	"github.com/corpus-agent/corpus-agent/agent/exit"
	"github.com/corpus-agent/corpus-agent/agent/inspect"
	"github.com/corpus-agent/corpus-agent/agent/procedure"
	"github.com/corpus-agent/corpus-agent/state/diag"
)

// named runs the steps that were asked for by name on what is deployed. No link moves, so there is
// nothing to go back to: a step that fails ends the run.
func (r *run) named(ctx context.Context) error {
	on := r.ledger.Good
	if r.ledger.Failing != nil {
		on = r.ledger.Failing
	}
	if on == nil {
		return inspect.ErrNothingDeployed()
	}
	pair := *on
	r.report.To, r.acted = &pair, true
	if r.test {
		return exit.WithCode(exit.Usage, diag.WithHint(errors.New("steps by name have no dry run"), "`corpus-agent deploy --test` shows what states would change"))
	}
	if r.only.Has(procedure.Archive) {
		if err := r.project.Archive(ctx, pair); err != nil {
			return err
		}
	}
	for _, step := range []struct {
		name string
		part func() error
	}{
		{procedure.Sync, func() error { return r.project.Sync(ctx, pair) }},
		{procedure.Fixperms, func() error { return r.project.Fixperms(ctx, pair) }},
		{procedure.Converge, func() error { return r.converge(ctx, pair) }},
		{procedure.Install, func() error { return r.project.Install(ctx, pair) }},
		{procedure.Health, func() error { return r.serving.HealthyNow(ctx, pair) }},
		{procedure.Rollback, func() error { return r.project.Rollback(ctx, pair) }},
	} {
		if !r.only.Has(step.name) {
			continue
		}
		if err := errors.Join(ctx.Err(), step.part()); err != nil {
			return failed(err)
		}
	}
	return nil
}

// failed gives an error without a code of its own that of a run that failed.
func failed(err error) error {
	if exit.Code(err) == exit.Internal {
		return exit.WithCode(exit.Failed, err)
	}
	return err
}
