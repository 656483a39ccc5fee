package turns

import (
	"context"
	"errors"
	"slices"

	"github.com/corpus-agent/corpus-agent/agent/balance"
	"github.com/corpus-agent/corpus-agent/agent/exit"
	"github.com/corpus-agent/corpus-agent/agent/ledger"
	"github.com/corpus-agent/corpus-agent/agent/rollout"
	"github.com/corpus-agent/corpus-agent/artifact"
	plans "github.com/corpus-agent/corpus-agent/artifact/rollout"
	"github.com/corpus-agent/corpus-agent/artifact/store"
)

// End records the result of this host in the rollouts of its channels, where it is not recorded yet, and releases the
// host's leases. tried is the pair that the run deployed, or tried to; nil if it tried none. What the store does not
// take now, a later run records.
func (r *Run) End(ctx context.Context, tried *ledger.Pair, result error) {
	if r.Test {
		return
	}
	changed := false
	for i := range r.Ledger.Turns {
		t := &r.Ledger.Turns[i]
		recorded, err := r.recordResult(ctx, t, r.outcome(*t, tried, result))
		if err != nil {
			r.Record.Note("%v; the next run records it", err)
		}
		changed = changed || recorded
	}
	if changed {
		if err := r.Save(); err != nil {
			r.Record.Note("the next run records the result of this host in a rollout again: %v", err)
		}
	}
	// The result comes first: a host that takes the lease sees it.
	for _, lease := range r.leases {
		if err := lease.Release(ctx); err != nil {
			r.Record.Note("%v; it is free after %s", err, plans.Duration(rollout.LeaseTime))
		}
	}
	r.leases = nil
}

// recordResult writes the result of this host into the store if it is a new one. It writes a failure in each run, under
// the same name, since other hosts would take the release if the store has lost it. changed reports whether the turn
// changed.
func (r *Run) recordResult(ctx context.Context, t *ledger.Turn, outcome rollout.Outcome) (changed bool, err error) {
	late := t.Recorded != "" && t.Until != nil && r.Site.Time().After(*t.Until)
	switch {
	case outcome == "" || late:
		return false, nil
	case string(outcome) == t.Recorded:
		if t.FailedRun == "" || !slices.Contains(r.read, t.Channel) {
			return false, nil
		}
		return false, r.put(ctx, *t, outcome, t.FailedRun)
	}
	run, failed := r.ID, ""
	if outcome != rollout.Healthy {
		failed = rollout.FailureRun(r.failedRun(t.Release, outcome), t.Forgiven)
		run = failed
	}
	if err := r.put(ctx, *t, outcome, run); err != nil {
		return false, err
	}
	t.Recorded, t.FailedRun = string(outcome), failed
	return true, nil
}

// put writes the result of this host in a run into the store.
func (r *Run) put(ctx context.Context, t ledger.Turn, outcome rollout.Outcome, run string) error {
	s, err := r.Open()
	if err != nil {
		return err
	}
	key, err := r.hostKey()
	if err != nil {
		return err
	}
	of := rollout.Rollout{Ref: t.Channel, Start: plans.Start{ID: t.Rollout, Release: string(t.Release.Digest)}}
	return of.Record(store.LockWait(ctx, r.LockWait), s, *key, t.Name, outcome, run)
}

// outcome returns the result of this host with the release of a rollout; empty if the run has none.
func (r *Run) outcome(t ledger.Turn, tried *ledger.Pair, result error) rollout.Outcome {
	var kept *balance.NotLeft
	if t.Waits() || t.Name == "" || errors.As(result, &kept) {
		return ""
	}
	has := func(p *ledger.Pair) bool { return p != nil && p.Has(t.Release) }
	tries := has(tried) && !r.failedElsewhere(t.Release, *tried)
	code := exit.Code(result)
	switch good := r.Ledger.Good; {
	case tries && (code == exit.RolledBack || code == exit.RollbackFailed), r.triedBefore(t.Release):
		return rollout.RolledBack
	case code == exit.Failed && (tries || has(good)),
		has(r.Ledger.Failing) && !r.failedElsewhere(t.Release, *r.Ledger.Failing):
		return rollout.Failed
	case has(good) && r.Ledger.Running == nil && result == nil:
		return rollout.Healthy
	}
	return ""
}

// failedRun returns the run in which a release failed: that which put it into quarantine, if it was rolled back then
// and not in this run.
func (r *Run) failedRun(release artifact.Release, outcome rollout.Outcome) string {
	for _, b := range r.Ledger.Bad {
		if outcome == rollout.RolledBack && b.Is(release) && rollout.IsRun(b.Run) {
			return b.Run
		}
	}
	return r.ID
}

// failedElsewhere reports whether a pair with a release failed because of a release of another project in it: that one
// is in quarantine, and the release is not.
func (r *Run) failedElsewhere(release artifact.Release, pair ledger.Pair) bool {
	is := func(other artifact.Release) func(ledger.Bad) bool {
		return func(b ledger.Bad) bool { return b.Is(other) }
	}
	return !slices.ContainsFunc(r.Ledger.Bad, is(release)) &&
		slices.ContainsFunc(pair.Releases(), func(other artifact.Release) bool {
			return other.Project != release.Project && slices.ContainsFunc(r.Ledger.Bad, is(other))
		})
}
