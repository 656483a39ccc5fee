package agent

import (
	"context"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/corpus-agent/corpus-agent/agent/delivery"
	"github.com/corpus-agent/corpus-agent/agent/exit"
	"github.com/corpus-agent/corpus-agent/agent/records"
	"github.com/corpus-agent/corpus-agent/agent/report"
	"github.com/corpus-agent/corpus-agent/agent/self"
	"github.com/corpus-agent/corpus-agent/agent/site"
	"github.com/corpus-agent/corpus-agent/artifact/trust"
	"github.com/corpus-agent/corpus-agent/state/diag"
	"github.com/corpus-agent/corpus-agent/state/host"
	"github.com/corpus-agent/corpus-agent/state/host/units"
)

// redacted returns err with the secrets removed from its text. The exit code stays.
func (r *run) redacted(err error) error {
	if err == nil {
		return nil
	}
	return exit.WithCode(exit.Code(err), r.Redactor.Error(err))
}

// finish completes the report, saves it, and delivers it. A dry run saves no report and sends no notification, since it
// changed nothing.
func (r *run) finish(ctx context.Context, err error) {
	r.serving.RepeatUnserved(ctx)
	r.notePassed()
	r.record.Complete(func(rep *report.Report) {
		rep.Ended = r.Time().UTC()
		rep.Service, rep.Instance = r.identity.Service, r.identity.Instance
		rep.Agent, rep.Form = r.Version, trust.NewestForm
		rep.Exit = exit.Code(err)
		rep.Outcome = outcome(ctx, rep.Exit)
		if rep.Command == "rollback" && !r.acted && (rep.Exit == exit.Usage || rep.Exit == exit.Refused) {
			rep.Outcome = report.Refused
		}
		rep.Left, rep.BaseAlone, rep.Channels, rep.Remembered = r.ledger.Good, r.ledger.Alone, r.ledger.Channels,
			&r.ledger.Host
		rep.Quarantined, rep.Proves = r.quarantine.List(), true
		rep.Expires, rep.Expiring = r.Expiries(r.identity.Service)
		if r.ledger.Proven.Proves(r.ledger.Good) {
			rep.Proven = r.ledger.Proven
		}
		if err != nil {
			rep.Error, rep.Hint = exit.Text(err), strings.Join(diag.AllHints(err), "\n")
			rep.Code = diag.CodesOf(rep.Hint)
		}
	})
	if !r.test {
		// Kept before it is sent: the power can fail while it is sent.
		r.keepReport()
		notes := len(r.report.Notes)
		if r.deliver(ctx); len(r.report.Notes) > notes {
			r.keepReport()
		}
	}
	r.record.End()
}

func (r *run) keepReport() {
	if err := r.Reports().Save(r.report, r.Config.KeepReports); err != nil {
		r.record.Note("the report was not kept: %v", err)
	}
	for _, dir := range r.retention.Archives {
		if err := (report.Archive{Dir: dir}).Beside(r.report); err != nil {
			r.record.Note("%v", err)
		}
	}
}

// deliveryTime bounds how long a run that is over waits for its receivers.
const deliveryTime = 2 * time.Minute

// deliver hands the complete report, which is kept by then, to all other receivers. It does so in a run that a signal
// ended as well, so it does not use the cancellation of ctx.
func (r *run) deliver(ctx context.Context) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), deliveryTime)
	defer cancel()
	if r.acted {
		r.project.Notify(ctx, r.report.To)
	}
	r.delivery.Send(ctx, r.acted)
}

// unbegun writes to the store that a run could not begin, and returns the reason. A run that another one excludes has
// not failed.
func (a *Agent) unbegun(ctx context.Context, test bool, cause error) error {
	excluded := []int{exit.Locked, exit.Starved, exit.Interrupted}
	if test || !a.Config.UploadReports || a.Within != "" || slices.Contains(excluded, exit.Code(cause)) {
		return cause
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), deliveryTime)
	defer cancel()
	if err := delivery.Unbegun(ctx, &a.Site, a.OpenStore, a.Redactor.Error(cause)); err != nil {
		return withAlso(cause, a.Redactor.Error(err))
	}
	return cause
}

func outcome(ctx context.Context, code int) report.Outcome {
	switch code {
	case exit.OK:
		return report.Converged
	case exit.RolledBack:
		return report.RolledBack
	case exit.RollbackFailed:
		return report.Stuck
	case exit.Interrupted:
		return report.Interrupted
	}
	if stopped(ctx) {
		return report.Interrupted
	}
	return report.Failed
}

// save writes the ledger. It redacts the reasons of quarantined releases, as in the report.
func (r *run) save() error {
	if r.test {
		return nil
	}
	for i := range r.ledger.Bad {
		r.ledger.Bad[i].Reason = r.record.Show(r.ledger.Bad[i].Reason)
	}
	uncopied, err := r.SaveLedger(r.ledger)
	if uncopied != "" && !slices.Contains(r.report.Notes, uncopied) {
		r.record.Note("%s", uncopied)
	}
	return err
}

// deferUnitActions returns a copy of the agent whose states do not act on the agent's own unit at once, as
// service.running with a watch on agent.yaml would. after performs the deferred action; it is called after the lock is
// released.
func (a *Agent) deferUnitActions(ctx context.Context) (during *Agent, after func()) {
	own := *a
	own.Failures = &site.FailedOutput{}
	own.OwnUnit = &host.OwnUnit{Name: records.ServiceUnit}
	return &own, func() {
		verb := own.OwnUnit.Pending()
		if verb == "" || a.Layout.Relocated() || a.ShuttingDown(ctx) {
			return
		}
		// The report is complete by now, so only systemd's journal shows the result.
		_, _ = site.Systemctl(context.WithoutCancel(ctx), 30*time.Second, "--no-block", string(verb), records.ServiceUnit)
	}
}

// notePassed notes the units that were started although they are ordered after the unit in which this run is in
// progress.
func (r *run) notePassed() {
	for _, unit := range r.OwnUnit.AllPassed() {
		r.record.Note("%s was started without waiting for the end of this run, behind which systemd had put it: see After= "+
			"and Before= of the unit (systemctl show -p After %s)", unit, unit)
	}
}

// freeWaiters ends programs of this run's states that wait for the end of the run (systemctl stop corpus-agent), once
// the run is asked to end. Otherwise each would wait for the other. done ends the search.
func (r *run) freeWaiters(ctx context.Context) (done func()) {
	over := make(chan struct{})
	stop := context.AfterFunc(ctx, func() {
		for {
			for _, pid := range self.Waiters(records.ServiceUnit) {
				r.ownStop.Store(true)
				_ = syscall.Kill(pid, syscall.SIGTERM)
			}
			select {
			case <-over:
				return
			case <-time.After(time.Second):
			}
		}
	})
	return func() { stop(); close(over) }
}

// freeEvery is how often a run looks for programs that wait for units.
const freeEvery = 5 * time.Second

// freeAwaited lets units start that a hook or command of this run waits for (systemctl restart) and whose start waits
// for the end of the run, since they are ordered after the unit of the run. Otherwise each would wait for the other.
// done ends the search.
func (r *run) freeAwaited(ctx context.Context) (done func()) {
	if r.test || r.Layout.Relocated() || units.Own() == "" {
		return func() {}
	}
	ctx, cancel := context.WithCancel(context.WithoutCancel(ctx)) // a run that was asked to end may wait as well
	go func() {
		for {
			select {
			case <-ctx.Done():
				return
			case <-time.After(freeEvery):
			}
			if names := self.Awaited(); len(names) > 0 {
				_ = units.FreeAll(ctx, names, r.OwnUnit) // without systemd nothing waits for it
			}
		}
	}()
	return cancel
}
