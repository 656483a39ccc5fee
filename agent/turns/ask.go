package turns

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
	"strings"
	"time"

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

// Why a host waits for reasons that are not those of plans.
const (
	noLease    plans.Reason = "places"                // among the hosts of its cluster that deploy at the same time
	noEvidence plans.Reason = ledger.ReasonNoEvidence // the store did not show the results of other hosts
	oldAgent   plans.Reason = "old agent"
	onHold     plans.Reason = "held"
)

// answer says whether a host takes a release now, and why not.
type answer struct {
	take   bool
	reason plans.Reason
	why    string
	wave   string
	not    time.Time
	name   string // of the host in the roster; empty if it is not in it
}

// ask finds out whether it is the turn of this host. It sends the store no request before the turn may have come, and
// then one listing. The rollout is as it is signed, without its roster.
func (r *Run) ask(ctx context.Context, client *trust.Client, of rollout.Rollout, t *ledger.Turn) answer {
	now, me := client.StoreTime(), r.place()
	basis := basisOf(of.Plan, of.Start)
	if a, final := r.withoutStore(of, t, now, me, basis); final {
		return a
	}
	a, err := r.askStore(ctx, of, now, me, t)
	if err != nil {
		text := err.Error()
		if hint := diag.HintOf(err); hint != "" {
			text += " (" + hint + ")"
		}
		return answer{reason: noEvidence, wave: r.early(of, t, now, me).wave, why: r.Record.Show(text)}
	}
	t.Basis = basis
	return a
}

// withoutStore returns the answer that follows from what is signed, from the host, and from what the store said before;
// final reports whether there is one. basis is the digest of what is signed about the rollout.
func (r *Run) withoutStore(of rollout.Rollout, t *ledger.Turn, now time.Time, me plans.Host,
	basis string) (a answer, final bool) {
	early := r.early(of, t, now, me)
	switch {
	case plans.Older(r.Site.Version, of.Start.Agent):
		return answer{reason: oldAgent, wave: early.wave,
			why: fmt.Sprintf("it takes agent %s, and this one is %s", of.Start.Agent, r.Site.Version)}, true
	case r.Ledger.Hold != nil && r.Ledger.Runs() != nil:
		return answer{reason: onHold, wave: early.wave,
			why: "this host is held since " + diag.Stamp(r.Ledger.Hold.Since)}, true
	case r.Ahead:
		return answer{reason: plans.Waits, wave: early.wave, why: "the store was not asked"}, true
	case !early.take:
		early.name = t.Name
		return early, true
	case t.Basis == basis && t.Not != nil && now.Before(*t.Not) && !isTooLate(of.Plan, t, now):
		return answer{reason: plans.Reason(t.Reason), why: t.Why, wave: t.Wave, not: *t.Not, name: t.Name}, true
	}
	return early, false
}

// isTooLate reports whether the time until which a host waits for its wave is later than any that can follow from the
// present time: the store's clock was ahead when the host asked.
func isTooLate(p plans.Plan, t *ledger.Turn, now time.Time) bool {
	return t.Reason == string(plans.Waits) && t.Not.After(now.Add(p.Least()))
}

// early returns what the plan and the time say of the host's wave, without the results of other hosts.
func (r *Run) early(of rollout.Rollout, t *ledger.Turn, now time.Time, me plans.Host) answer {
	me.Name = cmp.Or(t.Name, me.Name) // the roster's, once the host has read it
	if !rollout.Divided(of.Plan, of.Start) {
		return answer{take: true, wave: t.Wave}
	}
	wave := of.Wave(me)
	return answerOf(of.Plan.Early(of.Start, wave, now), of.Plan.WaveName(wave))
}

func answerOf(v plans.Verdict, wave string) answer {
	return answer{take: v.Take, reason: v.Reason, why: v.String(), wave: wave, not: v.Not}
}

// Unseeing returns why the store did not show this host the results of others in a rollout for which it waits; "" if it
// waits for none without evidence.
func Unseeing(l *ledger.Ledger) string {
	for _, t := range l.Turns {
		if t.Waits() && t.Reason == string(noEvidence) {
			return t.Why
		}
	}
	return ""
}

// basisOf returns a digest of what is signed about a rollout.
func basisOf(plan plans.Plan, start plans.Start) string {
	data, err := json.Marshal([]any{plan, start})
	if err != nil {
		return ""
	}
	sum := sha256.Sum256(data)
	return hex.EncodeToString(sum[:8])
}

// place returns this host as plans see it.
func (r *Run) place() plans.Host {
	return plans.Host{Name: r.Host, Region: r.Identity.Region, Cluster: r.Identity.Cluster()}
}

// remembered applies the halt that the host remembers to a verdict, and remembers a halt that the verdict shows. lost
// reports that the store has lost the record of the halt.
func remembered(of rollout.Rollout, t *ledger.Turn, v plans.Verdict, member bool) (_ plans.Verdict, lost bool) {
	epoch := epochOf(of.Start)
	if lost = v.Take && t.Halted == epoch; lost {
		v = plans.Verdict{Reason: plans.Halted}
	}
	if v.Reason == plans.Halted || v.Reason == plans.Stops && member {
		t.Halted = epoch
	}
	return v, lost
}

// epochOf returns the time from which halts count, as the ledger has it: that of the last resume, or the time up to
// which failures are forgiven if that is later.
func epochOf(start plans.Start) string { return lastEpoch(start).UTC().Format(time.RFC3339) }

// lastEpoch returns the time of epochOf; the zero time if no person has resumed the rollout.
func lastEpoch(start plans.Start) time.Time {
	if last := start.LastResume(); last.After(start.Resumed) {
		return last
	}
	return start.Resumed
}

// askStore reads the results of other hosts and decides. It records a halt that this host is the first to find, and
// takes a lease among the hosts that deploy at the same time.
func (r *Run) askStore(ctx context.Context, of rollout.Rollout, now time.Time, me plans.Host,
	t *ledger.Turn) (answer, error) {
	s, err := r.Open()
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
		r.noteOtherKey(of, *key)
	}
	e, err := of.Read(ctx, s, now)
	if err != nil {
		return answer{}, err
	}
	v, lost := remembered(of, t, of.Decide(who, e, now), member)
	if latest := now.Add(of.Plan.Least()); v.Reason == plans.Waits && v.Not.After(latest) {
		v.Not = latest // the store's times were ahead
	}
	a := answerOf(v, of.Plan.WaveName(of.Wave(who)))
	if member {
		a.name = who.Name
	}
	switch {
	case (v.Reason == plans.Stops || lost) && member && !r.Test:
		if err := of.RecordHalt(ctx, s, *key, who.Name, r.ID, e, now); err != nil {
			r.Record.Note("%v", err)
		}
	case v.Take && !r.Test:
		return r.acquire(ctx, leaseRequest{s, of, key, who, e, now}, a)
	}
	return a, nil
}

// noteOtherKey notes that the roster of a rollout has another key for this host, as of a machine that was replaced.
func (r *Run) noteOtherKey(of rollout.Rollout, key hostkey.Key) {
	if other := of.Roster.Keys()[r.Host]; other != "" && other != key.Public() {
		r.Record.Note("the rollout has another key for this host (%s), so its results count for nothing; if this machine "+
			"replaced another one: `corpus host forget %s`, and once this machine has reported: `corpus point %s %s VERSION` "+
			"with the version under way, which starts the rollout again", other, r.Host, of.Ref.Project, of.Ref.Channel)
	}
}

// leaseRequest is what a host needs to take a lease among the hosts that deploy at the same time.
type leaseRequest struct {
	store    store.Store
	of       rollout.Rollout
	key      *hostkey.Key // nil in a dry run of a host without one
	who      plans.Host
	evidence rollout.Evidence
	now      time.Time
}

// acquire takes a lease among the hosts of a cluster that deploy at the same time, if the plan limits them.
func (r *Run) acquire(ctx context.Context, q leaseRequest, a answer) (answer, error) {
	places := q.of.Places(q.who)
	if places == 0 || q.key == nil {
		return a, nil
	}
	lease, taken, err := q.of.Acquire(ctx, q.store, *q.key, q.who, r.ID, q.evidence, q.now)
	switch {
	case errors.Is(err, store.ErrReadOnly):
		r.Record.Note("this host takes no place among those that deploy at the same time, since its store is read-only")
		return a, nil
	case errors.Is(err, store.ErrForbidden):
		return answer{}, diag.Credentials.Hint(err, "give this host the right to write below rollouts/%s/ in the store",
			q.of.Ref.Project)
	case err != nil:
		a.take, a.reason, a.why = false, noLease, r.Record.Show(err.Error())
		return a, nil
	case lease == nil:
		a.take, a.reason = false, noLease
		a.why = fmt.Sprintf("%s of its cluster may deploy at the same time, and no place is free: %s",
			diag.Count(places, "host"), r.heldBy(q.of.Ref, taken))
		return a, nil
	}
	lease.Keep(context.WithoutCancel(ctx), rollout.RenewEvery)
	r.leases = append(r.leases, lease)
	return a, nil
}

// heldBy returns which hosts hold the places among the hosts of a cluster that deploy at the same time, and until when.
func (r *Run) heldBy(ref artifact.Ref, taken []rollout.Holder) string {
	const most = 3
	var names []string
	for _, h := range taken[:min(len(taken), most)] {
		names = append(names, fmt.Sprintf("%s until its deploy ends, and until %s if it has died", r.Record.Show(h.Host),
			diag.Stamp(h.Until)))
	}
	all := fmt.Sprintf("corpus rollout status %s %s names all hosts that hold them", ref.Project, ref.Channel)
	if len(names) == 0 {
		return all // others took them meanwhile
	}
	text := "held by " + strings.Join(names, "; ")
	if len(taken) > most {
		text += " (" + all + ")"
	}
	return text
}

// Key returns the key of this host if this run has read it; nil if not.
func (r *Run) Key() *hostkey.Key { return r.key }

// hostKey returns the key of this host. A dry run creates none: it returns nil if there is none yet.
func (r *Run) hostKey() (*hostkey.Key, error) {
	if r.key != nil {
		return r.key, nil
	}
	if r.Test {
		if there, err := walk.Exists(r.Site.Layout.HostKey()); err != nil || !there {
			return nil, err
		}
	}
	key, err := hostkey.OpenFor(r.Host, r.Site.Layout.HostKey(), r.Record.Note)
	if err != nil {
		return nil, err
	}
	r.key = &key
	return r.key, nil
}

// roster returns the roster of a rollout: the copy that the host has kept, or the store's.
func (r *Run) roster(ctx context.Context, s store.Store, ref artifact.Ref, start plans.Start) (rollout.Roster, error) {
	path := r.Site.Layout.Roster(ref.Project)
	data, err := walk.ReadFile(path)
	switch {
	case err == nil:
		if kept, err := rollout.ParseRoster(data, start.Roster); err == nil {
			return kept, nil
		}
	case !errors.Is(err, fs.ErrNotExist):
		r.Record.Note("the roster that this host kept cannot be read, so it is read again: %v", err)
	}
	roster, data, err := rollout.FetchRoster(ctx, s, ref, start)
	if err != nil || r.Test {
		return roster, err
	}
	err = durable.MkdirAll(filepath.Dir(path), 0o700)
	if err == nil {
		err = durable.WriteFile(path, data, 0o600)
	}
	if err != nil {
		r.Record.Note("the roster of the rollout was not kept, so the next run reads it again: %v", err)
	}
	return roster, nil
}
