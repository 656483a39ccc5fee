package agent

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/corpus-agent/corpus-agent/agent/exit"
	"github.com/corpus-agent/corpus-agent/agent/inspect"
	"github.com/corpus-agent/corpus-agent/agent/ledger"
	"github.com/corpus-agent/corpus-agent/agent/procedure"
	"github.com/corpus-agent/corpus-agent/agent/report"
	"github.com/corpus-agent/corpus-agent/agent/site"
	"github.com/corpus-agent/corpus-agent/artifact/trust"
	"github.com/corpus-agent/corpus-agent/grains"
	"github.com/corpus-agent/corpus-agent/state/diag"
)

// resolveTimeout bounds how long the store may take to name the releases to run.
const resolveTimeout = 5 * time.Minute

// Deploy brings the host to the releases that its channels name, or converges what is current when
// there is nothing new. With test it changes nothing. Names that no host can have, and files that cannot be read, are
// refused before there is a lock or a report.
func (a *Agent) Deploy(ctx context.Context, given Given, test bool) (*report.Report, error) {
	if err := (grains.Request{Given: given.Identity}).Check(); err != nil {
		return nil, exit.WithCode(exit.Usage, err)
	}
	if err := given.readRoot(); err != nil {
		return nil, exit.WithCode(exit.Usage, err)
	}
	return a.pass(ctx, "deploy", test, func(r *run) error { return r.orBlocker(r.deploy(ctx, given)) })
}

func (r *run) deploy(ctx context.Context, given Given) error {
	r.only, r.project.Settings, r.turns.Ahead = given.Only, given.Settings, given.Ahead
	if hold := r.ledger.Hold; given.Ahead && hold != nil && r.ledger.Runs() != nil {
		return exit.WithCode(exit.Usage, diag.Held.Hint(
			fmt.Errorf("this host is held since %s, so it takes no release ahead of its rollout",
				diag.Stamp(hold.Since)), "corpus-agent unhold, and run the command again"))
	}
	if err := r.introduce(ctx, given); err != nil {
		return err
	}
	refused := r.settleInterrupted(ctx)
	if refused != nil && !r.deploysBaseWithout(refused) {
		return r.baseWithout(ctx, refused)
	}
	if cut := r.ledger.Running; cut != nil && cut.Leaves != nil && !r.test {
		return r.goBack(ctx, cut.Pair, *cut.Leaves) // a rollback that a user asked for comes first
	}
	if !r.only.Has(procedure.ReleaseSync) {
		return r.named(ctx)
	}
	var client *trust.Client
	var pair ledger.Pair
	err := r.record.Stage("resolve", r.identity.String(), func() (err error) {
		// Without a timeout, a store that sends a byte now and then would block the run indefinitely.
		return r.connection.Within(ctx, min(resolveTimeout, r.Config.FetchTimeout), func(ctx context.Context) (err error) {
			if client, err = r.connection.Open(ctx, given.forStore()); err == nil {
				pair, err = r.resolve(ctx, client)
			}
			if err == nil && refused != nil {
				pair, err = r.baseOf(pair, refused)
			}
			return err
		})
	})
	if err != nil {
		if refused != nil && !errors.Is(err, refused) {
			r.record.Note("%v", refused)
		}
		return r.without(ctx, err)
	}
	return r.orUnresolved(r.carryOut(ctx, client, pair))
}

// carryOut deploys a pair, or converges the deployed pair if there is nothing new.
func (r *run) carryOut(ctx context.Context, client *trust.Client, pair ledger.Pair) error {
	if pair.BaseAlone() {
		r.report.Instead = &pair
	} else {
		r.report.To = &pair
	}
	keep, err := r.stay(&pair)
	r.reportWaiting(pair)
	err = errors.Join(err, r.linking.SetAside(site.ProjectsOf(pair)))
	switch {
	case err != nil:
		return err
	case keep && !r.only.All():
		return r.named(ctx)
	case keep:
		return r.keepServing(ctx)
	}
	held := r.releases.OnDisk(pair)
	if err := r.releases.Fetch(ctx, client, pair); err != nil {
		return r.withoutOne(ctx, client, pair, err)
	}
	if r.heldMeanwhile(pair) {
		return r.fetchDamagedAndConverge(ctx, r.convergeGood(ctx))
	}
	if err := r.releases.CheckRequirements(pair); err != nil {
		return r.withoutOne(ctx, client, pair, err)
	}
	if err := r.releases.RepairBefore(ctx, pair, held); err != nil {
		return err
	}
	r.releases.NoteUnread(pair)
	if runs := r.ledger.Runs(); runs != nil && !runs.Same(pair) {
		r.releases.RestoreKept(ctx, r.remembered())
	}
	if r.test {
		return r.rehearse(ctx, pair)
	}
	if !r.only.Has(procedure.Converge) && !r.only.Has(procedure.Install) {
		r.record.Note("%s is fetched; converge and install were not asked for, so it is not made current", pair)
		return nil
	}
	if err := r.project.Archive(ctx, pair); err != nil {
		return r.without(ctx, err)
	}
	if r.turns.GoesBack(pair) {
		return r.leaveAborted(ctx, pair)
	}
	return r.apply(ctx, pair)
}

// reportWaiting records in the report the pair that the channels name, if it waits for this host's turn in a rollout.
func (r *run) reportWaiting(pair ledger.Pair) {
	if named, waits := r.turns.Waiting(pair); waits && (r.report.Withheld == nil || r.report.Withheld.Same(pair)) {
		r.report.Withheld = &named
	}
}

// leaveAborted rolls back from the release of an aborted rollout, and undoes what its states changed. The release is
// not quarantined: its channel no longer names it, and another rollout may deploy it.
func (r *run) leaveAborted(ctx context.Context, pair ledger.Pair) error {
	left := *r.ledger.Good
	err := r.goBackConverged(ctx, r.wayBackTo(left, pair))
	r.report.Leaves = nil // this is not a rollback by hand
	return err
}

// rehearse performs the dry run of a deploy: it shows what states would change, moves no link and runs no hook.
func (r *run) rehearse(ctx context.Context, pair ledger.Pair) error {
	if runs := r.ledger.Runs(); runs == nil || !runs.Same(pair) {
		r.record.Note("would deploy %s", pair)
		r.showActs(ctx, pair)
		r.releases.NoteInterpreters(pair)
	}
	return r.converge(ctx, pair)
}

// named runs the steps that were named on the command line on the deployed pair. It moves no link, so there is nothing
// to roll back: a failed step ends the run.
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
		return exit.WithCode(exit.Usage, diag.Usage.Hint(errors.New("steps by name have no dry run"),
			"`corpus-agent deploy --test` shows what states would change"))
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
