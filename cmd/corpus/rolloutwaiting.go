package main

import (
	"context"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/corpus-agent/corpus-agent/agent/fleet"
	"github.com/corpus-agent/corpus-agent/agent/hostkey"
	"github.com/corpus-agent/corpus-agent/artifact"
	"github.com/corpus-agent/corpus-agent/artifact/store"
	"github.com/corpus-agent/corpus-agent/artifact/trust"
	"github.com/corpus-agent/corpus-agent/state/diag"
)

// waitingHost is a host that may take the release of a rollout and has not finished.
type waitingHost struct {
	Host string `json:"host"`
	Wave string `json:"wave"`
	Why  string `json:"why,omitempty"` // problem that its record shows; empty if it shows none
	Now  string `json:"now,omitempty"` // its present name, if it was renamed
}

// mostWaiting is the maximum number of waiting hosts that a status names.
const mostWaiting = 6

// resultDelay is how long after the start of a rollout, or after a resume, a host that had the release before may take
// to record its result: its next run records it.
const resultDelay = 10 * time.Minute

// readRecords reads the records of the hosts of a rollout that has not finished, was aborted or failed on hosts, in one
// request for a thousand hosts. Only records that are signed with the keys of the roster count; u.others has the hosts
// with other ones. It returns none if the store does not show them.
func (u *activeRollout) readRecords(ctx context.Context, s store.Store) []fleet.Host {
	if !u.rollout.Start.Aborted && u.waiting()+u.failed() == 0 {
		return nil
	}
	known := hostkey.Registry{}
	for host, key := range u.rollout.Roster.Keys() {
		known[host] = []hostkey.Registered{{Key: key}}
	}
	q := fleet.Query{Store: s, Now: u.now, Viewer: time.Now(), SilentAfter: silentAfter, Known: known,
		Keys: func(context.Context, store.Store) (hostkey.Registry, error) { return known, nil }}
	if u.ref.Project != artifact.Base {
		q.Project = u.ref.Project
	}
	v, err := fleet.Look(ctx, q)
	if err != nil {
		return nil // without the records, the rest of the status is still right
	}
	u.others = v.OtherKeys()
	return v.Hosts
}

// withoutResult returns the hosts of which the store has no result although their records say that they have the
// release of a rollout and are healthy, or that it failed there. A run writes its result before its record, so a record
// of a run since the start, or since the last resume, shows at once that the result is missing. Hosts that had the
// release before have resultDelay for it. After a resume, hosts on which the release failed before are not among them,
// since earlier failures do not count.
func (u *activeRollout) withoutResult(known []fleet.Host) (names []string) {
	if u.rollout.Start.Aborted {
		return nil
	}
	keys, recorded, since := u.rollout.Roster.Keys(), u.recorded(), u.rollout.Start.At
	resumed := u.rollout.Start.LastResume()
	if resumed.After(since) {
		since = resumed
	}
	for _, h := range known {
		_, member := keys[h.Host]
		due := h.Started().After(since) && h.Seen.After(since) || u.now.Sub(since) > resultDelay
		if member && h.Signed && !recorded[h.Host] && due && (u.runs(h) || resumed.IsZero() && u.failedOn(h)) {
			names = append(names, h.Host)
		}
	}
	return names
}

// runs reports whether a host has the release of the rollout and is healthy, by its record.
func (u *activeRollout) runs(h fleet.Host) bool {
	place := h.Service
	if u.ref.Project == artifact.Base {
		place = h.Base
	}
	return h.Outcome == "converged" && (h.State == fleet.Healthy || h.State == fleet.Drifted) &&
		place.Is(artifact.Digest(u.rollout.Start.Release))
}

// failedOn reports whether the release of the rollout failed on a host, by its record.
func (u *activeRollout) failedOn(h fleet.Host) bool {
	place := h.Wanted
	if u.ref.Project == artifact.Base {
		place = h.WantedBase
	}
	return (h.State == fleet.RolledBack || h.State == fleet.Quarantined) && !u.otherFailedOn(h) &&
		place.Is(artifact.Digest(u.rollout.Start.Release))
}

// otherFailedOn reports whether a host's record says that the other release of its pair failed there: base, or in a
// rollout of base the service. Such a failure is no result of this rollout.
func (u *activeRollout) otherFailedOn(h fleet.Host) bool {
	if u.ref.Project != artifact.Base {
		return h.OfBase
	}
	return h.Project != artifact.Base && h.Wanted != nil && !h.OfBase && !h.AlsoBase
}

// recorded returns the hosts of which the store has a result.
func (u *activeRollout) recorded() map[string]bool {
	all := map[string]bool{}
	for _, r := range u.seen.Results {
		all[r.Host] = true
	}
	return all
}

// recordAgain returns what to do if the store has no result of hosts that have the release, in a rollout that is over
// or not.
func recordAgain(ref artifact.Ref, version string, over bool) string {
	again := "and the next rollout counts it"
	if !over {
		again = fmt.Sprintf("and `corpus point %s %s %s`, which starts the rollout again", ref.Project, ref.Channel,
			trust.Printable(version))
	}
	return fmt.Sprintf("if a machine was replaced: `corpus host forget` with its name, %[3]s; if the store has lost "+
		"objects: `corpus rollout pause %[1]s %[2]s` and `corpus rollout resume %[1]s %[2]s`, after which "+
		"healthy hosts record their results again; otherwise let hosts write below rollouts/ (docs/buckets.md)",
		ref.Project, ref.Channel, again)
}

// addWaiting adds the hosts without results in waves that are open: those that have the release, and the others.
func (u *activeRollout) addWaiting(r *rolloutStatus, known []fleet.Host) {
	r.NoResult = u.withoutResult(known)
	byName, recorded, lacking := map[string]fleet.Host{}, u.recorded(), map[string]bool{}
	for _, h := range known {
		byName[h.Host] = h
	}
	for _, name := range r.NoResult {
		lacking[name] = true
	}
	for _, member := range u.rollout.Roster.Places() {
		wave := &r.Waves[u.rollout.Wave(member)]
		switch {
		case recorded[member.Name]:
		case lacking[member.Name]:
			wave.Lacking++
		case wave.Open:
			h := waitingHost{Host: member.Name, Wave: wave.Name}
			switch {
			case u.others[member.Name]:
				h.Why = signedByOther
			case known != nil:
				h.Why = u.problemOf(byName[member.Name])
			}
			r.WaitsFor = append(r.WaitsFor, h)
		}
	}
	slices.SortStableFunc(r.WaitsFor, func(a, b waitingHost) int { return min(1, len(b.Why)) - min(1, len(a.Why)) })
	more := r.WaitsFor[min(len(r.WaitsFor), mostWaiting):]
	r.WaitsFor = r.WaitsFor[:len(r.WaitsFor)-len(more)]
	r.WaitsForMore, r.behind = len(more), slices.ContainsFunc(more, func(h waitingHost) bool {
		host, there := byName[h.Host]
		return known == nil || there && !u.placeOf(host).Is(artifact.Digest(u.rollout.Start.Release))
	})
}

// noRecord is the problem of a host that is not in the store any more, as after `corpus host forget`.
const noRecord = "the store has no record of it"

// startWithout returns what to do about hosts of a rollout that are not in the store any more.
func startWithout(ref artifact.Ref, version string) string {
	return fmt.Sprintf("if the machine is gone: `corpus host forget` with its name, while `corpus host ls` lists its "+
		"key, and then `corpus point %s %s %s`, which starts the rollout again without it", ref.Project, ref.Channel,
		trust.Printable(version))
}

// gone returns the hosts of the roster without a result that are not in the store any more.
func (u *activeRollout) gone(known []fleet.Host) []string {
	return slices.DeleteFunc(u.absent(known), func(name string) bool { return u.others[name] })
}

// absent returns the hosts of the roster without a result and without a record that the key of the roster signed.
func (u *activeRollout) absent(known []fleet.Host) (names []string) {
	there, recorded := map[string]bool{}, u.recorded()
	for _, h := range known {
		there[h.Host] = true
	}
	for _, member := range u.rollout.Roster.Places() {
		if !there[member.Name] && !recorded[member.Name] {
			names = append(names, member.Name)
		}
	}
	return names
}

// arrivedWithout makes the status of a rollout finished if it has arrived, and the store has no record of any host that
// it waits for.
func (u *activeRollout) arrivedWithout(r *rolloutStatus, waiting int, known []fleet.Host) {
	if !r.over || r.State != "running" || known == nil {
		return
	}
	if gone := u.absent(known); len(gone) == waiting {
		r.State, r.WaitsFor, r.WaitsForMore = "finished", nil, 0
		lacks := "the store has no record of"
		if slices.ContainsFunc(gone, func(name string) bool { return u.others[name] }) {
			lacks = "the store has no record that the key of the rollout signed of"
		}
		r.Next = fmt.Sprintf("it has arrived: enough hosts of each wave are healthy, and %s %s: %s", lacks,
			diag.Count(len(gone), "other host"), strings.Join(gone[:min(len(gone), mostNamed)], ", "))
	}
}

// problemOf returns why a host may not take a release, by its record; "" if that shows no problem.
func (u *activeRollout) problemOf(h fleet.Host) string {
	switch {
	case h.Host == "":
		return noRecord
	case u.failedOn(h):
		return "this release failed there before, which its next run records"
	case h.Ahead():
		return fmt.Sprintf("its clock was %s at its newest run (timedatectl there)", h.AheadBy())
	case h.Silent && h.Seen.After(u.now):
		return "its record has a time in the future: look at its clock, and at that of the store"
	case h.Silent:
		return "it has not reported since " + diag.Stamp(h.Seen)
	case h.Unbegun:
		return "its newest run could not begin"
	case h.State == fleet.Failed:
		return fmt.Sprintf("its newest run failed (exit code %d)", h.Exit)
	case u.otherFailedOn(h) && (h.State == fleet.RolledBack || h.State == fleet.Quarantined):
		return otherFailed(h) + " failed there, and not this release, which it takes at its next run"
	case h.State == fleet.RolledBack:
		return "its newest run rolled back" + rolledBackFrom(h)
	case h.State == fleet.Quarantined:
		return "a release that failed there is quarantined, and it takes another one at its next run"
	case h.State == fleet.Held:
		return "it is held"
	}
	return ""
}

// otherFailed returns the release that failed on a host in the place of that of a rollout.
func otherFailed(h fleet.Host) string {
	switch {
	case !h.OfBase:
		return h.Project + " " + trust.Printable(h.Wanted.Version)
	case h.WantedBase != nil:
		return "base " + trust.Printable(h.WantedBase.Version)
	}
	return "base"
}

// rolledBackFrom returns the release from which the newest run of a host rolled back, with a preposition; "" if its
// record does not name it.
func rolledBackFrom(h fleet.Host) string {
	switch {
	case h.Wanted != nil:
		return " from " + trust.Printable(h.Wanted.Version)
	case h.WantedBase != nil:
		return " from base " + trust.Printable(h.WantedBase.Version)
	}
	return ""
}

// nextWithoutResults returns what comes next in a rollout in which every wave is open, and in which some of the waiting
// hosts have the release already.
func nextWithoutResults(waiting, lacking int) string {
	if waiting == lacking {
		return fmt.Sprintf("it waits for the results of %s with the release", diag.Count(lacking, "host"))
	}
	return fmt.Sprintf("%s may take the release at the next look, and it waits for the results of %d with it",
		diag.Count(waiting-lacking, "host"), lacking)
}

// writeWaiting writes the hosts for which a rollout waits.
func (r rolloutStatus) writeWaiting(w io.Writer) {
	for _, h := range r.WaitsFor {
		why := ""
		if h.Why != "" {
			why = fmt.Sprintf(": %s: corpus host show %s", h.Why, h.Host)
			switch {
			case h.Why == signedByOther, h.Why == keyReplaced:
				why = fmt.Sprintf(": %s: %s", h.Why, forgetOld(r.Ref, r.Version, h.Host, r.over))
			case h.Now != "":
				why = fmt.Sprintf(": %s: corpus host show %s", h.Why, h.Now)
			case h.Why == noRecord && r.over:
				why = fmt.Sprintf(": %s; the rollout has arrived without it", h.Why)
			case h.Why == noRecord:
				why = fmt.Sprintf(": %s: %s", h.Why, startWithout(r.Ref, r.Version))
			}
		}
		fmt.Fprintf(w, "  waits for %s in wave %s%s\n", h.Host, trust.Printable(h.Wave), why)
	}
	if r.WaitsForMore > 0 {
		list := ""
		if r.behind {
			list = ": corpus fleet --behind"
		}
		fmt.Fprintf(w, "  and for %d more%s\n", r.WaitsForMore, list)
	}
	if len(r.NoResult) > 0 {
		shown := r.NoResult[:min(len(r.NoResult), mostNamed)]
		have := "have"
		if len(r.NoResult) == 1 {
			have = "has"
		}
		fmt.Fprintf(w, "  no result of %s that %s the release, or on which it failed: %s\n",
			diag.Count(len(r.NoResult), "host"), have,
			strings.Join(shown, ", "))
		fmt.Fprintf(w, "    %s\n", recordAgain(r.Ref, r.Version, r.over))
	}
}

// names reports whether the status has a line about a host that says that another key signed its record.
func (r rolloutStatus) names(host string) bool {
	return slices.ContainsFunc(r.WaitsFor, func(h waitingHost) bool { return h.Host == host && h.Why == signedByOther })
}
