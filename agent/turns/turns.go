// Package turns decides whether a host takes a release of a rollout in a run, and records the host's result.
//
// Whether a wave has begun follows from what is signed: the plan, the start and the time. Whether it may go on follows
// from the results of other hosts, which are read from the store. The ledger keeps the turn of the host in the rollout
// of each channel that it follows.
package turns

import (
	"cmp"
	"context"
	"slices"
	"time"

	"github.com/corpus-agent/corpus-agent/agent/hostkey"
	"github.com/corpus-agent/corpus-agent/agent/ledger"
	"github.com/corpus-agent/corpus-agent/agent/report"
	"github.com/corpus-agent/corpus-agent/agent/rollout"
	"github.com/corpus-agent/corpus-agent/agent/site"
	"github.com/corpus-agent/corpus-agent/artifact"
	plans "github.com/corpus-agent/corpus-agent/artifact/rollout"
	"github.com/corpus-agent/corpus-agent/artifact/store"
	"github.com/corpus-agent/corpus-agent/artifact/trust"
	"github.com/corpus-agent/corpus-agent/grains"
	"github.com/corpus-agent/corpus-agent/state/diag"
)

// Run is the turn of the host in the rollouts of its channels, in one run of the agent.
type Run struct {
	Site     *site.Site
	ID       string
	Test     bool
	Ledger   *ledger.Ledger
	Record   *report.Builder
	Host     string // its name in reports
	Identity *grains.Identity

	Open func() (store.Store, error) // opens the store itself: a mirror may not have the newest results
	Save func() error                // writes the ledger

	// LockWait bounds how long a result waits while another writer holds a lock of the store.
	LockWait time.Duration
	// Ahead makes the host take what the channels name, regardless of their rollouts.
	Ahead bool

	waiting []artifact.Release // that channels name, and that wait for the turn of this host
	aborted *artifact.Release  // of a rollout that was aborted: the host goes back from it
	leases  []*rollout.Lease
	read    []artifact.Ref // channels whose rollouts this run has read: it has seen the last resume
	key     *hostkey.Key   // the key of this host, once it was read
}

// lateFailure is how long after a rollout reached a host the host still records that the release failed after all.
const lateFailure = 7 * 24 * time.Hour

// Choose returns the release of a channel that this host runs: the release that the channel names once it is the
// host's turn, and until then what the host has, or what the channel named before.
func (r *Run) Choose(ctx context.Context, client *trust.Client, ref artifact.Ref, release artifact.Release,
	has *artifact.Release) (artifact.Release, error) {
	plan, start, err := client.RolloutOf(ctx, ref)
	if err != nil {
		return release, err
	}
	if start != nil && start.Aborted && has != nil && string(has.Digest) == start.Release && !has.Is(release) {
		left := *has
		r.aborted = &left
		r.Record.Note("the rollout of %s is aborted; this host goes back to %s", left, release.Version)
	}
	if plan == nil || start == nil || start.Aborted || start.Release != string(release.Digest) {
		if r.Ledger.EndTurn(ref) {
			return release, r.Save()
		}
		return release, nil
	}
	t, err := r.update(ctx, client, rollout.Rollout{Ref: ref, Plan: *plan, Start: *start}, release, has)
	switch {
	case err != nil:
		return release, err
	case t.Waits():
		return r.instead(ctx, client, *start, *t, has)
	case has != nil && slices.Contains(start.Left, string(has.Digest)) && r.triedBefore(release):
		// It went back to a release whose rollout was aborted, since the next one failed.
		if keeps, err := r.keeps(ctx, client, *start, ref, has); err != nil || keeps != nil {
			return *cmp.Or(keeps, &release), err
		}
	}
	return release, nil
}

// Withdraw records in the turn of the host that the release which the channel names is withdrawn.
func (r *Run) Withdraw(ref artifact.Ref, release artifact.Release) error {
	t := r.Ledger.TurnOf(ref)
	switch {
	case t == nil || !t.Waits():
		return nil
	case !t.Release.Is(release):
		r.Ledger.EndTurn(ref)
	case t.Reason == ledger.ReasonWithdrawn:
		return nil
	default:
		t.Reason, t.Why, t.Not = ledger.ReasonWithdrawn, "the release is withdrawn", nil
	}
	return r.Save()
}

// update determines the turn of the host in a rollout that is in progress, and records it in the ledger.
func (r *Run) update(ctx context.Context, client *trust.Client, of rollout.Rollout, release artifact.Release,
	has *artifact.Release) (*ledger.Turn, error) {
	before := r.Ledger.TurnOf(of.Ref)
	if before != nil {
		kept := *before
		before = &kept
	}
	t := r.Ledger.Enter(of.Ref, of.Start.ID, release, client.StoreTime())
	if t.Until == nil {
		until := client.StoreTime().Add(lateFailure)
		t.Until = &until
	}
	r.read = append(r.read, of.Ref)
	repeatResult(t, of.Start)
	if !r.decided(t, release, has) {
		r.settle(t, r.ask(ctx, client, of, t))
	}
	if before != nil && *before == *t {
		return t, nil
	}
	return t, r.Save()
}

// repeatResult makes a healthy host record its result again after a person has resumed the rollout, since the store may
// have lost the first record. Of several equal results the first one counts, so the wave does not begin again. A
// failure is repeated until then and not after it, since it would count as a new one.
func repeatResult(t *ledger.Turn, start plans.Start) {
	resumed := ""
	if at := lastEpoch(start); !at.IsZero() {
		resumed = at.UTC().Format(time.RFC3339)
	}
	if t.Resumed == resumed {
		return
	}
	t.Resumed, t.FailedRun, t.Forgiven = resumed, "", 0
	if !start.Resumed.IsZero() {
		t.Forgiven = start.Resumed.Unix()
	}
	if t.Recorded == string(rollout.Healthy) {
		t.Recorded = ""
	}
}

// decided reports whether the host needs no evidence about a release: it has it, or tried it. An interrupted deploy
// is no reason: other hosts may have failed meanwhile, and a person may have stopped the rollout.
func (r *Run) decided(t *ledger.Turn, release artifact.Release, has *artifact.Release) bool {
	switch {
	case has != nil && has.Is(release), r.Ledger.Failing != nil && r.Ledger.Failing.Has(release):
	case r.triedBefore(release):
	default:
		return false
	}
	t.Reason, t.Why, t.Not, t.Took = "", "", nil, cmp.Or(t.Took, r.ID)
	r.nameUnlisted(t)
	return true
}

// nameUnlisted sets the name of a turn to the host's own name if the roster was not read. If the roster does not have
// the name, the host's results do not count.
func (r *Run) nameUnlisted(t *ledger.Turn) {
	if t.Name == "" && r.Site.Config.UploadReports {
		t.Name = r.Host
	}
}

// triedBefore reports whether a release is in quarantine, which keeps it away without a rollout.
func (r *Run) triedBefore(release artifact.Release) bool {
	return r.Ledger.Runs() != nil && slices.ContainsFunc(r.Ledger.Bad, func(b ledger.Bad) bool { return b.Is(release) })
}

// settle records the answer in the turn of the host.
func (r *Run) settle(t *ledger.Turn, a answer) {
	t.Name, t.Wave = cmp.Or(a.name, t.Name), a.wave
	if a.take || r.Ahead {
		if !a.take {
			r.Record.Note("%s is taken ahead of the rollout, since --ahead was given: %s", t.Release, a.why)
		}
		t.Reason, t.Why, t.Not, t.Took = "", "", nil, r.ID
		if r.Ahead {
			r.nameUnlisted(t)
		}
		return
	}
	t.Took = ""
	t.Reason, t.Why, t.Not = string(a.reason), a.why, nil
	if (a.reason == plans.Waits || a.reason == plans.Closed) && !a.not.IsZero() {
		not := a.not.UTC()
		t.Not = &not
	}
}

// instead returns what a host that waits runs until its turn.
func (r *Run) instead(ctx context.Context, client *trust.Client, start plans.Start, t ledger.Turn,
	has *artifact.Release) (artifact.Release, error) {
	keeps, err := r.keeps(ctx, client, start, t.Channel, has)
	if err != nil || keeps == nil {
		return t.Release, err // without an error, there is nothing else that it could run
	}
	r.waiting = append(r.waiting, t.Release)
	again := "it asks again at its next run"
	if t.Not != nil {
		again = "it asks again after " + diag.Stamp(*t.Not)
	}
	r.Record.Note("%s waits for the turn of this host in rollout %s: %s; until then it runs %s, and %s", t.Release,
		t.Rollout, t.Why, keeps.Version, again)
	return *keeps, nil
}

// keeps returns what a host runs until its turn: the release that it has or, if it has none or one of an aborted
// rollout, the release that the channel named before. If there is no such release, it returns the one that the host
// has; nil if it has none.
func (r *Run) keeps(ctx context.Context, client *trust.Client, start plans.Start, ref artifact.Ref,
	has *artifact.Release) (*artifact.Release, error) {
	left := has != nil && slices.Contains(start.Left, string(has.Digest))
	if has != nil && !left {
		return has, nil
	}
	before, err := before(ctx, client, ref, start)
	if err != nil || before == nil {
		return has, err
	}
	if left {
		aborted := *has
		r.aborted = &aborted
		r.Record.Note("the rollout of %s was aborted; this host goes back to %s", aborted, before.Version)
	}
	return before, nil
}

// before returns the release that a channel named before a rollout; nil where there is none that a host may run.
func before(ctx context.Context, client *trust.Client, ref artifact.Ref, start plans.Start) (*artifact.Release, error) {
	if start.Before == nil {
		return nil, nil
	}
	release, signed, err := client.Signed(ctx, ref.Project, start.Before.Version, start.Before.Digest)
	if err != nil || !signed {
		return nil, err
	}
	if w, err := client.Withdrawn(ctx, release); err != nil || w != nil {
		return nil, err
	}
	return &release, nil
}

// Resume returns the pair that a host deploys whose deploy was interrupted and that could not ask the store. If a
// rollout brings a release of that pair, Resume returns what the host had before: whether the rollout continues is not
// known.
func (r *Run) Resume(cut ledger.Pair) ledger.Pair {
	good := r.Ledger.Good
	if good == nil || r.Ahead || !r.Site.Held().Has(good.Releases()...) {
		return cut
	}
	for i := range r.Ledger.Turns {
		t := &r.Ledger.Turns[i]
		if t.Waits() || t.Took == r.ID || !cut.Has(t.Release) || good.Has(t.Release) {
			continue
		}
		t.Took, t.Reason, t.Not = "", string(noEvidence), nil
		t.Why = "its deploy was interrupted, and the store could not be asked whether the rollout continues"
		r.Record.Note("%s waits for the turn of this host in rollout %s: %s; until then it runs %s, and it asks again at "+
			"its next run",
			t.Release, t.Rollout, t.Why, good)
		return *good
	}
	return cut
}

// Waiting returns a pair with the releases that wait for the turn of this host in the place of what the host runs until
// then; false if none waits.
func (r *Run) Waiting(pair ledger.Pair) (named ledger.Pair, waits bool) {
	named = pair
	for _, release := range r.waiting {
		if named.Base != nil && named.Base.Project == release.Project {
			base := release
			named.Base = &base
			continue
		}
		named = named.With(release)
	}
	return named, len(r.waiting) > 0
}

// Aborted reports whether a release is of a rollout that was aborted, so that the host goes back from it.
func (r *Run) Aborted(release artifact.Release) bool {
	return r.aborted != nil && r.aborted.Is(release)
}

// GoesBack reports whether a pair is what the host goes back to from the release of an aborted rollout.
func (r *Run) GoesBack(pair ledger.Pair) bool {
	left, good := r.aborted, r.Ledger.Good
	return left != nil && good != nil && good.Has(*left) && !pair.Has(*left) && r.Ledger.Running == nil &&
		!pair.BaseAlone()
}
