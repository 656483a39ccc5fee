package serving

import (
	"context"
	"errors"
	"time"

	"github.com/corpus-agent/corpus-agent/agent/health"
	"github.com/corpus-agent/corpus-agent/agent/ledger"
	"github.com/corpus-agent/corpus-agent/agent/service"
)

// wayBackTime limits the time for units to follow the links back after the run was cancelled.
const wayBackTime = 2 * time.Minute

// ServeBack makes the units follow the links back to a pair. It does so even if the run was cancelled, since the
// release that failed must not continue serving. Units that fail are restarted by later runs.
func (r *Run) ServeBack(ctx context.Context, pair ledger.Pair) error {
	if ctx.Err() != nil {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(context.WithoutCancel(ctx), wayBackTime)
		defer cancel()
	}
	err := r.Serve(ctx, pair, true)
	var failed *service.Failed
	switch {
	case err == nil:
		r.Ledger.Serving = nil
	case errors.As(err, &failed) && !r.Ending(ctx):
		r.retryUnits(failed.Units())
	}
	return err
}

// retryUnits writes into the ledger that later runs restart these units, and no others.
func (r *Run) retryUnits(units []string) {
	if len(units) > 0 {
		r.Ledger.Serving = &ledger.Serving{Run: r.ID, Units: units, Retry: units}
	}
}

// HealthyBack is Healthy after a rollback to a pair. Units that do not run it are restarted by later runs.
func (r *Run) HealthyBack(ctx context.Context, good ledger.Pair) error {
	err := r.Healthy(ctx, good)
	var sick *health.Unhealthy
	if !errors.As(err, &sick) {
		return err
	}
	r.retryUnits(sick.Units())
	return errors.Join(err, r.Save())
}

// ResetStartLimits resets how often the init system counts the units as failed and started. The release that failed
// used up their start limits, and the one that the links lead back to has to start.
func (r *Run) ResetStartLimits(ctx context.Context) {
	s, err := r.Host.System()
	if err != nil || s.Allowed() != nil || r.Ledger.Serving == nil {
		return
	}
	for _, unit := range r.Ledger.Serving.Units {
		s.Forgive(context.WithoutCancel(ctx), unit)
	}
}

// StopStarted stops the units that this run started for a first release, which failed: no release is current that they
// could run.
func (r *Run) StopStarted(ctx context.Context) error {
	r.Ledger.Serving = nil
	s, err := r.Host.System()
	if err != nil || len(r.served) == 0 {
		return err
	}
	done, err := service.Stop(context.WithoutCancel(ctx), s, r.served)
	for _, result := range done {
		r.Record.Unit(result)
	}
	return err
}
