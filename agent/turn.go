package agent

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"slices"
	"time"

	"github.com/corpus-agent/corpus-agent/agent/balance"
	"github.com/corpus-agent/corpus-agent/agent/exit"
	"github.com/corpus-agent/corpus-agent/agent/hostkey"
	"github.com/corpus-agent/corpus-agent/agent/ledger"
	"github.com/corpus-agent/corpus-agent/agent/rollout"
	"github.com/corpus-agent/corpus-agent/artifact"
	"github.com/corpus-agent/corpus-agent/artifact/durable"
	plans "github.com/corpus-agent/corpus-agent/artifact/rollout"
	"github.com/corpus-agent/corpus-agent/artifact/store"
	"github.com/corpus-agent/corpus-agent/artifact/trust"
	"github.com/corpus-agent/corpus-agent/artifact/walk"
	"github.com/corpus-agent/corpus-agent/state/diag"
)

// turns is what rollouts say of a run.
type turns struct {
	ahead   bool               // a person wants what the channels name, whatever the rollout says
	waits   []artifact.Release // that channels name, and that wait for the turn of this host
	aborted *artifact.Release  // of a rollout that was aborted: the host goes back from it
	leases  []*rollout.Lease
}

// Why a host waits for reasons that are not those of plans.
const (
	noPlace    plans.Reason = "places"      // among the hosts of its cluster that deploy at the same time
	noEvidence plans.Reason = "no evidence" // the store did not show the results of other hosts
	oldAgent   plans.Reason = "old agent"
	heldHere   plans.Reason = "held"
)

// answer is whether a host takes a release now.
type answer struct {
	take   bool
	reason plans.Reason
	why    string
	wave   string
	not    time.Time
	name   string // of the host in the roster; empty if it is not in it
}

// inTurn is what a channel gives this host: the release that it names once it is the host's turn, and until then what
// the host has, or what the channel named before.
func (r *run) inTurn(ctx context.Context, client *trust.Client, ref artifact.Ref, release artifact.Release,
	has *artifact.Release) (artifact.Release, error) {
	plan, start, err := client.RolloutOf(ctx, ref)
	if err != nil {
		return release, err
	}
	if start != nil && start.Aborted && has != nil && string(has.Digest) == start.Release && !has.Is(release) {
		left := *has
		r.turns.aborted = &left
		r.record.Note("the rollout of %s is aborted; this host goes back to %s", left, release.Version)
	}
	if plan == nil || start == nil || start.Aborted || start.Release != string(release.Digest) {
		if r.ledger.EndTurn(ref) {
			return release, r.save()
		}
		return release, nil
	}
	before := r.ledger.TurnOf(ref)
	if before != nil {
		kept := *before
		before = &kept
	}
	t := r.ledger.Enter(ref, start.ID, release, client.StoreTime())
	if t.Until == nil {
		until := client.StoreTime().Add(lateFailure)
		t.Until = &until
	}
	sayAgain(t, *start)
	if !r.decided(t, release, has) {
		r.settleTurn(t, r.ask(ctx, client, rollout.Rollout{Ref: ref, Plan: *plan, Start: *start}, t))
	}
	if before == nil || *before != *t {
		if err := r.save(); err != nil {
			return release, err
		}
	}
	if !t.Waits() {
		return release, nil
	}
	return r.untilTurn(ctx, client, *start, *t, has)
}

// sayAgain lets a host that is healthy say so once more after a person has resumed the rollout: the store may have lost
// what it said. Of several words alike the first one counts, so nothing begins again. A failure is not repeated, since
// it would count as a new one.
func sayAgain(t *ledger.Turn, start plans.Start) {
	resumed := ""
	for _, m := range start.Moves {
		if m.What == "resume" {
			resumed = m.At.UTC().Format(time.RFC3339)
		}
	}
	if t.Resumed != resumed && t.Said == string(rollout.Healthy) {
		t.Said = ""
	}
	t.Resumed = resumed
}

// decided reports whether the host needs no evidence about a release: it has it, or tried it. An interrupted deploy
// is no reason: other hosts may have failed meanwhile, and a person may have stopped the rollout.
func (r *run) decided(t *ledger.Turn, release artifact.Release, has *artifact.Release) bool {
	switch {
	case has != nil && has.Is(release), r.ledger.Failing != nil && r.ledger.Failing.Has(release):
	case r.triedBefore(release):
	default:
		return false
	}
	t.Reason, t.Why, t.Not, t.Took = "", "", nil, cmp.Or(t.Took, r.id)
	r.unasked(t)
	return true
}

// takesUp is the pair to which a host goes that could not ask the store, and whose deploy was interrupted. Where a
// rollout brings a release of it, that is what the host had before: whether the rollout continues is not known.
func (r *run) takesUp(cut ledger.Pair) ledger.Pair {
	good := r.ledger.Good
	if good == nil || r.turns.ahead || !r.Held().Has(good.Releases()...) {
		return cut
	}
	for i := range r.ledger.Turns {
		t := &r.ledger.Turns[i]
		if t.Waits() || t.Took == r.id || !cut.Has(t.Release) || good.Has(t.Release) {
			continue
		}
		t.Took, t.Reason, t.Not = "", string(noEvidence), nil
		t.Why = "its deploy was interrupted, and the store could not be asked whether the rollout continues"
		r.record.Note("%s waits for the turn of this host in rollout %s: %s; until then it runs %s, and it asks again at "+
			"its next run",
			t.Release, t.Rollout, t.Why, good)
		return *good
	}
	return cut
}

// unasked lets a host that did not read the roster record its result under its own name. If the roster does not have
// it, that counts for nothing.
func (r *run) unasked(t *ledger.Turn) {
	if t.Name == "" && r.Config.UploadReports {
		t.Name = r.report.Host
	}
}

// triedBefore reports whether a release is in quarantine, which keeps it away without a rollout.
func (r *run) triedBefore(release artifact.Release) bool {
	return r.ledger.Runs() != nil && slices.ContainsFunc(r.ledger.Bad, func(b ledger.Bad) bool { return b.Is(release) })
}

// settleTurn keeps what was found about the turn of the host.
func (r *run) settleTurn(t *ledger.Turn, a answer) {
	t.Name, t.Wave = cmp.Or(a.name, t.Name), a.wave
	if a.take || r.turns.ahead {
		if !a.take {
			r.record.Note("%s is taken ahead of the rollout, since --ahead was given: %s", t.Release, a.why)
		}
		t.Reason, t.Why, t.Not, t.Took = "", "", nil, r.id
		if r.turns.ahead {
			r.unasked(t)
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

// untilTurn is what a host runs that waits.
func (r *run) untilTurn(ctx context.Context, client *trust.Client, start plans.Start, t ledger.Turn,
	has *artifact.Release) (artifact.Release, error) {
	keeps := has
	if keeps == nil {
		before, err := r.before(ctx, client, t.Channel, start)
		if err != nil {
			return t.Release, err
		}
		if before == nil {
			return t.Release, nil // there is nothing else that it could run
		}
		keeps = before
	}
	r.turns.waits = append(r.turns.waits, t.Release)
	again := "it asks again at its next run"
	if t.Not != nil {
		again = "it asks again after " + t.Not.Format("2006-01-02 15:04 MST")
	}
	r.record.Note("%s waits for the turn of this host in rollout %s: %s; until then it runs %s, and %s", t.Release,
		t.Rollout, t.Why, keeps.Version, again)
	return *keeps, nil
}

// before is the release that a channel named before a rollout; nil where there is none that a host may run.
func (r *run) before(ctx context.Context, client *trust.Client, ref artifact.Ref,
	start plans.Start) (*artifact.Release, error) {
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

// ask finds out whether it is the turn of this host. Nothing is asked of the store before the turn may have come, and
// then one listing. The rollout is as it is signed, without its roster.
func (r *run) ask(ctx context.Context, client *trust.Client, of rollout.Rollout, t *ledger.Turn) answer {
	plan, start := of.Plan, of.Start
	now, me := client.StoreTime(), r.place()
	known := me
	known.Name = cmp.Or(t.Name, me.Name) // the roster's, once the host has read it
	basis := basisOf(plan, start)
	early := answer{take: true, wave: t.Wave}
	if rollout.Divided(plan, start) {
		wave := plan.Wave(start.Release, known, start.Cuts)
		early = answerOf(plan.Early(start, wave, now), plan.WaveName(wave))
	}
	switch {
	case plans.Older(r.Version, start.Agent):
		return answer{reason: oldAgent, wave: early.wave,
			why: fmt.Sprintf("it takes agent %s, and this one is %s", start.Agent,
				r.Version)}
	case r.ledger.Hold != nil && r.ledger.Runs() != nil:
		return answer{reason: heldHere, wave: early.wave,
			why: "this host is held since " + r.ledger.Hold.Since.Format("2006-01-02 15:04 MST")}
	case r.turns.ahead:
		return answer{reason: plans.Waits, wave: early.wave, why: "the store was not asked"}
	case !early.take:
		early.name = t.Name
		return early
	case t.Basis == basis && t.Not != nil && now.Before(*t.Not):
		return answer{reason: plans.Reason(t.Reason), why: t.Why, wave: t.Wave, not: *t.Not, name: t.Name}
	}
	a, err := r.askStore(ctx, of, now, me)
	if err != nil {
		text := err.Error()
		if hint := diag.HintOf(err); hint != "" {
			text += " (" + hint + ")"
		}
		return answer{reason: noEvidence, wave: early.wave, why: r.record.Show(text)}
	}
	t.Basis = basis
	return a
}

func answerOf(v plans.Verdict, wave string) answer {
	return answer{take: v.Take, reason: v.Reason, why: v.String(), wave: wave, not: v.Not}
}

// basisOf is a digest of what is signed about a rollout.
func basisOf(plan plans.Plan, start plans.Start) string {
	data, err := json.Marshal([]any{plan, start})
	if err != nil {
		return ""
	}
	sum := sha256.Sum256(data)
	return hex.EncodeToString(sum[:8])
}

// place is who this host is to a plan.
func (r *run) place() plans.Host {
	return plans.Host{Name: r.report.Host, Region: r.identity.Region, Cluster: r.identity.Cluster()}
}

// askStore reads the results of other hosts and decides. It records a halt that this host is the first to find, and
// takes a place among the hosts that deploy at the same time.
func (r *run) askStore(ctx context.Context, of rollout.Rollout, now time.Time, me plans.Host) (answer, error) {
	s, err := r.OpenStore(r.storeURL()) // no mirror: it may not have the newest words
	if err != nil {
		return answer{}, err
	}
	roster, err := r.roster(ctx, s, of.Ref, of.Start)
	if err != nil {
		return answer{}, err
	}
	of = rollout.New(of.Ref, of.Plan, of.Start, roster)
	key, err := r.hostKey()
	if err != nil {
		return answer{}, err
	}
	who, member := me, false
	if key != nil {
		who, member = of.Who(key.Public(), me)
	}
	e, err := of.Read(ctx, s, now)
	if err != nil {
		return answer{}, err
	}
	v := of.Decide(who, e, now)
	a := answerOf(v, of.Plan.WaveName(of.Wave(who)))
	if member {
		a.name = who.Name
	}
	switch {
	case v.Reason == plans.Stops && member && !r.test:
		if err := of.RecordHalt(ctx, s, *key, who.Name, r.id, e, now); err != nil {
			r.record.Note("%v", err)
		}
	case v.Take && !r.test:
		return r.takePlace(ctx, claim{s, of, key, who, e, now}, a)
	}
	return a, nil
}

// claim is what a host knows when it takes a place among those that deploy at the same time.
type claim struct {
	store store.Store
	of    rollout.Rollout
	key   *hostkey.Key // nil in a dry run of a host without one
	who   plans.Host
	seen  rollout.Evidence
	now   time.Time
}

// takePlace takes a place among the hosts of a cluster that deploy at the same time, where the plan limits them.
func (r *run) takePlace(ctx context.Context, c claim, a answer) (answer, error) {
	places := c.of.Places(c.who)
	if places == 0 || c.key == nil {
		return a, nil
	}
	lease, err := c.of.Acquire(ctx, c.store, *c.key, c.who, r.id, c.seen, c.now)
	switch {
	case errors.Is(err, store.ErrReadOnly):
		r.record.Note("this host takes no place among those that deploy at the same time, since its store is read-only")
		return a, nil
	case err != nil:
		return answer{}, diag.WithHint(err, "give this host the right to write below rollouts/%s/ in the store",
			c.of.Ref.Project)
	case lease == nil:
		a.take, a.reason = false, noPlace
		a.why = fmt.Sprintf("%s of its cluster may deploy at the same time, and no place is free", diag.Count(places, "host"))
		return a, nil
	}
	lease.Keep(context.WithoutCancel(ctx), rollout.RenewEvery)
	r.turns.leases = append(r.turns.leases, lease)
	return a, nil
}

// hostKey is the key of this host. A dry run makes none: it is nil where there is none yet.
func (r *run) hostKey() (*hostkey.Key, error) {
	if r.test {
		if there, err := walk.Exists(r.Layout.HostKey()); err != nil || !there {
			return nil, err
		}
	}
	key, damaged, err := hostkey.Open(r.Layout.HostKey())
	if damaged != nil {
		r.record.Note("%v", damaged)
	}
	return &key, err
}

// roster is the roster of a rollout: the one that the host has kept, or the store's.
func (r *run) roster(ctx context.Context, s store.Store, ref artifact.Ref,
	start plans.Start) (rollout.Roster, error) {
	path := r.Layout.Roster(ref.Project)
	data, err := walk.ReadFile(path)
	switch {
	case err == nil:
		if kept, err := rollout.ParseRoster(data, start.Roster); err == nil {
			return kept, nil
		}
	case !errors.Is(err, fs.ErrNotExist):
		r.record.Note("the roster that this host kept cannot be read, so it is read again: %v", err)
	}
	roster, data, err := rollout.FetchRoster(ctx, s, ref, start)
	if err != nil || r.test {
		return roster, err
	}
	err = durable.MkdirAll(filepath.Dir(path), 0o700)
	if err == nil {
		err = durable.WriteFile(path, data, 0o600)
	}
	if err != nil {
		r.record.Note("the roster of the rollout was not kept, so the next run reads it again: %v", err)
	}
	return roster, nil
}

// withholdTurns records that what the channels name waits for the turn of this host, which the run is not about.
func (r *run) withholdTurns(pair ledger.Pair) {
	if len(r.turns.waits) == 0 || r.report.Withheld != nil && !r.report.Withheld.Same(pair) {
		return
	}
	named := pair
	for _, release := range r.turns.waits {
		if named.Base != nil && named.Base.Project == release.Project {
			base := release
			named.Base = &base
			continue
		}
		named = named.With(release)
	}
	r.report.Withheld = &named
}

// leavesAborted reports whether a pair is what the host goes back to from the release of an aborted rollout.
func (r *run) leavesAborted(pair ledger.Pair) bool {
	left, good := r.turns.aborted, r.ledger.Good
	return left != nil && good != nil && good.Has(*left) && !pair.Has(*left) && r.ledger.Running == nil &&
		!pair.BaseAlone()
}

// leaveAborted goes back from the release of an aborted rollout, and undoes what its states changed. No quarantine
// keeps the release away: the channel does not name it any more, and another rollout may bring it.
func (r *run) leaveAborted(ctx context.Context, pair ledger.Pair) error {
	left := *r.ledger.Good
	err := r.goBackConverged(ctx, wayBackTo(left, pair))
	r.report.Leaves = nil // no person went back from it
	return err
}

// lateFailure is how long after a rollout came to a host it says that the release fails after all.
const lateFailure = 7 * 24 * time.Hour

// endTurns releases the places of a run among the hosts that deploy at the same time, and records the result of this
// host in the rollouts of its channels, where that is news. What the store does not take now, a later run records.
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
			r.record.Note("the next run records the result of this host in a rollout again: %v", err)
		}
	}
	// The result comes first: a host that takes the place sees it.
	for _, lease := range r.turns.leases {
		if err := lease.Release(ctx); err != nil {
			r.record.Note("%v; it is free after %s", err, plans.Duration(rollout.LeaseTime))
		}
	}
	r.turns.leases = nil
}

// say records the result of this host in the store.
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

// word is the result of this host with the release of a rollout; empty if the run has none.
func (r *run) word(t ledger.Turn, result error) rollout.Outcome {
	var kept *balance.NotLeft
	if t.Waits() || t.Name == "" || errors.As(result, &kept) {
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
