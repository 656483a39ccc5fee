package agent

import (
	"context"
	"time"

	"github.com/corpus-agent/corpus-agent/agent/exit"
	"github.com/corpus-agent/corpus-agent/agent/ledger"
	"github.com/corpus-agent/corpus-agent/agent/rollout"
	plans "github.com/corpus-agent/corpus-agent/artifact/rollout"
	"github.com/corpus-agent/corpus-agent/artifact/store"
)

// lateFailure is how long after a rollout came to a host it says that the release fails after all.
const lateFailure = 7 * 24 * time.Hour

// endTurns gives back the places of a run among the hosts that deploy at the same time, and records how this host fared in
// the rollouts of its channels, where that is news. What the store does not take now, a later run records.
func (r *run) endTurns(ctx context.Context, result error) {
	if r.test {
		return
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), tellTime)
	defer cancel()
	changed := false
	for i := range r.ledger.Turns {
		t := &r.ledger.Turns[i]
		word := r.word(*t, result)
		if word == "" || string(word) == t.Said || t.Said != "" && t.Until != nil && r.Time().After(*t.Until) {
			continue
		}
		if err := r.say(ctx, *t, word); err != nil {
			r.record.Note("%v; the next run records it", err)
			continue
		}
		t.Said, changed = string(word), true
	}
	if changed {
		if err := r.save(); err != nil {
			r.record.Note("the next run records once more how this host fared in a rollout: %v", err)
		}
	}
	// The word comes first: a host that takes the place sees how this one fared.
	for _, lease := range r.turns.leases {
		if err := lease.Release(ctx); err != nil {
			r.record.Note("%v; it is free after %s", err, plans.Duration(rollout.LeaseTime))
		}
	}
	r.turns.leases = nil
}

// say records in the store how this host fared.
func (r *run) say(ctx context.Context, t ledger.Turn, word rollout.Outcome) error {
	s, err := r.OpenStore(r.storeURL())
	if err != nil {
		return err
	}
	key, err := r.hostKey()
	if err != nil {
		return err
	}
	of := rollout.Rollout{Ref: t.Channel, Start: plans.Start{ID: t.Rollout, Release: string(t.Release.Digest)}}
	return of.Record(store.LockWait(ctx, uploadLockWait), s, *key, t.Name, word, r.id)
}

// word is how this host fares with the release of a rollout; empty where the run does not tell.
func (r *run) word(t ledger.Turn, result error) rollout.Outcome {
	if t.Waits() || t.Name == "" {
		return ""
	}
	has := func(p *ledger.Pair) bool { return p != nil && p.Has(t.Release) }
	code := exit.Code(result)
	tried := r.acted && has(r.report.To)
	switch good := r.ledger.Good; {
	case tried && (code == exit.RolledBack || code == exit.RollbackFailed), r.triedBefore(t.Release):
		return rollout.RolledBack
	case code == exit.Failed && (tried || has(good)), has(r.ledger.Failing):
		return rollout.Failed
	case has(good) && r.ledger.Running == nil && result == nil:
		return rollout.Healthy
	}
	return ""
}
