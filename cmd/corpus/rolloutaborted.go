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
	"github.com/corpus-agent/corpus-agent/agent/hostrecord"
	hosts "github.com/corpus-agent/corpus-agent/agent/rollout"
	"github.com/corpus-agent/corpus-agent/artifact"
	"github.com/corpus-agent/corpus-agent/artifact/store"
	"github.com/corpus-agent/corpus-agent/artifact/trust"
	"github.com/corpus-agent/corpus-agent/state/diag"
)

// goingBack counts the hosts of a rollout that was aborted, by their records.
type goingBack struct {
	Hosts   int      `json:"hosts"`   // of the rollout
	Back    int      `json:"back"`    // number of hosts that reported since the abort, and do not have the release
	Still   []string `json:"still"`   // hosts that have the release, and are neither held nor failing
	Held    []string `json:"held"`    // hosts that have the release, and that a person holds there
	Failing []string `json:"failing"` // hosts whose newest run could not begin, or failed with the release
	Unknown []string `json:"unknown"` // hosts that have not reported since the abort with the key of the roster
	// Untaken is true if no host had taken the release, by the results and records of all hosts: none has to go back.
	Untaken bool `json:"no_host_took_it"`
}

// addBack adds the number of hosts that are back from the release of a rollout that was aborted. known are the hosts of
// the project; nil if they could not be read. A record from before the abort does not show that a host is back: it may
// have taken the release since. holders are hosts that may deploy it now.
func (u *activeRollout) addBack(r *rolloutStatus, known []fleet.Host, holders []hosts.Holder) {
	start := u.rollout.Start
	if !start.Aborted || known == nil {
		return
	}
	since := start.At
	if n := len(start.Moves); n > 0 { // no move follows an abort
		since = start.Moves[n-1].At
	}
	if since.After(u.now) { // the publisher's clock was ahead of the store's
		since = u.now
	}
	byName := map[string]fleet.Host{}
	for _, h := range known {
		byName[h.Host] = h
	}
	back := goingBack{Hosts: len(u.rollout.Roster.Hosts), Still: []string{}, Held: []string{}, Failing: []string{},
		Unknown: []string{}, Untaken: len(u.seen.Results)+len(holders) == 0}
	for _, m := range u.rollout.Roster.Hosts {
		h, there := byName[m.Name]
		seen := there && h.Signed
		has := seen && u.placeOf(h).Is(artifact.Digest(start.Release))
		back.Untaken = back.Untaken && !has && !(seen && u.failedOn(h))
		switch {
		case seen && h.Unbegun && !h.Seen.Before(since), has && h.State == fleet.Failed:
			back.Failing = append(back.Failing, m.Name) // what a run that could not begin left is not known
		case has && h.Held:
			back.Held = append(back.Held, m.Name)
		case has:
			back.Still = append(back.Still, m.Name)
		case seen && !h.Seen.Before(since):
			back.Back++
		default:
			back.Unknown = append(back.Unknown, m.Name)
		}
	}
	r.Back, r.Next = &back, back.text(r.Version)
}

// placeOf returns the release that a host has of the project of a rollout.
func (u *activeRollout) placeOf(h fleet.Host) *hostrecord.Place {
	if u.ref.Project == artifact.Base {
		return h.Base
	}
	return h.Service
}

// text returns what comes next after an abort that leads back to a version.
func (b goingBack) text(version string) string {
	switch {
	case b.Untaken:
		return fmt.Sprintf("nothing: no host had taken the release, as the results and records of %s show",
			diag.Count(b.Hosts, "host"))
	case b.Back == b.Hosts:
		return fmt.Sprintf("nothing: all hosts are back, and none of %s has the release", diag.Count(b.Hosts, "host"))
	}
	text := fmt.Sprintf("hosts that took the release go back to %s; of %s, back: %d, still with the release: %d",
		trust.Printable(version), diag.Count(b.Hosts, "host"), b.Back, len(b.Still))
	if n := len(b.Held); n > 0 {
		text += fmt.Sprintf(", held with the release: %d", n)
	}
	if n := len(b.Failing); n > 0 {
		text += fmt.Sprintf(", failing: %d", n)
	}
	return text + fmt.Sprintf(", no report since the abort: %d", len(b.Unknown))
}

// writeBack writes the hosts of an aborted rollout that are not back.
func (r rolloutStatus) writeBack(w io.Writer) {
	if r.Back == nil || r.Back.Untaken {
		return
	}
	for _, list := range []struct {
		what  string
		names []string
		so    string
	}{
		{"still with the release", r.Back.Still, "a host goes back at its next run (corpus host show NAME)"},
		{"held with the release", r.Back.Held, "a host goes back at its next run after `corpus-agent unhold` there"},
		{"failing", r.Back.Failing, "a host goes back once a run succeeds there (corpus host show NAME has the error)"},
		{"no report since the abort", r.Back.Unknown, "a host reports within reports.heartbeat (30 minutes by default)"},
	} {
		if len(list.names) > 0 {
			fmt.Fprintf(w, "  %s: %s; %s\n", list.what, named(list.names, mostNamed), list.so)
		}
	}
}

// keyReplaced is the problem of a host for which another key was registered than the roster has, and that has no record
// with it yet: the first run of a machine that replaced another one has failed, or has not ended.
const keyReplaced = "another key than the rollout has for it is registered for it, as of a machine that replaced it, " +
	"and has signed no record yet"

// nameRenamed sets the present names of the hosts without a record whose keys are registered for other names. It lists
// the keys of all hosts if there is a host without a record.
func (u *activeRollout) nameRenamed(ctx context.Context, s store.Store, r *rolloutStatus) {
	var renaming *hostkey.Renaming
	keys := u.rollout.Roster.Keys()
	for i := range r.WaitsFor {
		h := &r.WaitsFor[i]
		if h.Why != noRecord {
			continue
		}
		if renaming == nil {
			all, err := hostkey.List(ctx, s)
			if err != nil {
				return // the rest of the status is still right
			}
			renaming = &hostkey.Renaming{Store: s, Keys: all, Requests: mostRequests,
				Reported: func(string, hostkey.Public) bool { return false }}
		}
		now, err := renaming.Now(ctx, h.Host, keys[h.Host])
		if err == nil && now != "" {
			h.Now, h.Why = now, "it was renamed, and keeps its place as "+now
		}
	}
}

// mostRequests bounds the requests by which a status finds out which of the hosts that it names were renamed.
const mostRequests = 8 * mostWaiting

// nameReplaced sets keyReplaced for the hosts that a status names and for which another machine registered a key after
// their current record. It lists the keys of these hosts, at most mostWaiting, and reads the registration of each newer
// key. known are the hosts by their records; nil if they could not be read.
func (u *activeRollout) nameReplaced(ctx context.Context, s store.Store, r *rolloutStatus, known []fleet.Host) {
	if known == nil {
		return
	}
	seen, first := map[string]time.Time{}, u.rollout.Roster.Keys()
	for _, h := range known {
		seen[h.Host] = h.Seen
	}
	for i := range r.WaitsFor {
		h := &r.WaitsFor[i]
		if h.Why == signedByOther {
			continue
		}
		if replacedSince(ctx, s, h.Host, first[h.Host], seen[h.Host]) {
			h.Why = keyReplaced
		}
	}
}

// replacedSince reports whether a machine with another key than the first registered for a host after a time.
func replacedSince(ctx context.Context, s store.Store, host string, first hostkey.Public, since time.Time) bool {
	keys, err := hostkey.Of(ctx, s, host)
	return err == nil && slices.ContainsFunc(keys, func(k hostkey.Registered) bool {
		if k.Key == first || !k.Since.After(since) {
			return false
		}
		proven, err := k.Key.Registers(ctx, s, host)
		return err == nil && proven
	})
}

// signedByOther is the problem of a host whose record another key signed than the roster has.
const signedByOther = "its record is signed with another key than the rollout has for it"

// forgetOld returns what to do about a host that signs with another key than the roster has, as a machine that replaced
// another one. over says that the rollout has arrived.
func forgetOld(ref artifact.Ref, version, host string, over bool) string {
	text := fmt.Sprintf("`corpus host show %s` shows the keys; if the machine was replaced: `corpus host forget %s` if "+
		"the key of the old machine is still registered, ", host, host)
	if over {
		return text + "and the next rollout counts it"
	}
	return text + fmt.Sprintf("and once the new machine has reported `corpus point %s %s %s`, which starts the rollout "+
		"again with its key", ref.Project, ref.Channel, trust.Printable(version))
}

// writeOtherKeys writes the hosts that recorded results with the key of the roster, and sign with another key since.
func (r rolloutStatus) writeOtherKeys(w io.Writer) {
	if n := len(r.Replaced); n > 0 {
		fmt.Fprintf(w, "  results of %s count, whose records another key signs than the rollout has (corpus host show "+
			"NAME): %s\n", diag.Count(n, "host"), strings.Join(r.Replaced[:min(n, mostNamed)], ", "))
	}
}
