package agent

import (
	"context"
	"errors"
	"fmt"

	"github.com/corpus-agent/corpus-agent/agent/exit"
	"github.com/corpus-agent/corpus-agent/agent/ledger"
	"github.com/corpus-agent/corpus-agent/agent/report"
	"github.com/corpus-agent/corpus-agent/grains"
	"github.com/corpus-agent/corpus-agent/state/diag"
)

// Rollback puts the previous pair back and quarantines the one that ran, so that the next tick of
// the timer does not deploy it again.
func (a *Agent) Rollback(ctx context.Context) (*report.Report, error) {
	return a.pass(ctx, "rollback", false, func(r *run) error {
		if err := r.identify(ctx, grains.Identity{}); err != nil {
			return err
		}
		if err := r.settleCut(); err != nil {
			return err
		}
		return r.rollback(ctx)
	})
}

func (r *run) rollback(ctx context.Context) error {
	good, previous := r.ledger.Good, r.ledger.Previous
	if good == nil || previous == nil || !r.hasAll(*previous) {
		return exit.WithCode(exit.Usage, diag.WithHint(errors.New("there is no earlier deploy to go back to"), "`corpus-agent history` shows what was deployed"))
	}
	if w, yes := r.ledger.IsWithdrawn(*previous); yes {
		return exit.WithCode(exit.Refused, diag.WithHint(fmt.Errorf("%s, to go back to, was withdrawn on %s: %s", w.Release, w.At.Format("2006-01-02"), w.Reason),
			"publish a mended version; `corpus yank --undo` takes the withdrawal back"))
	}
	left := *good
	r.report.To = previous
	if err := r.apply(ctx, *previous); err != nil {
		return err
	}
	r.ledger.MarkBad(ledger.Bad{Pair: left, Reason: "rolled back by hand", Run: r.id, At: r.now().UTC()})
	r.ledger.Previous = nil
	return r.save()
}
