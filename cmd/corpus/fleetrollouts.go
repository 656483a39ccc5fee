package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/corpus-agent/corpus-agent/agent/fleet"
	"github.com/corpus-agent/corpus-agent/agent/fleet/pages"
	hosts "github.com/corpus-agent/corpus-agent/agent/rollout"
	"github.com/corpus-agent/corpus-agent/artifact"
	"github.com/corpus-agent/corpus-agent/artifact/store"
	"github.com/corpus-agent/corpus-agent/artifact/trust"
	"github.com/corpus-agent/corpus-agent/state/diag"
)

// stoppedRollouts returns the rollouts that only a person can continue or end. It reads the rollouts of channels with
// hosts that do not run the current release, or with hosts without a record; in other channels, every host runs it, and
// only the roster is read. It also returns the hosts whose results such a rollout lacks and, if the view has all hosts,
// those that are not in the store any more. If the store stops answering, it returns that error: each further request
// would wait as long.
func stoppedRollouts(ctx context.Context, client *trust.Client, s store.Store, v *fleet.View,
	all bool) (found []fleet.Attention, err error) {
	seen := map[artifact.Ref]bool{}
	for _, row := range v.Rows {
		if seen[row.Ref] {
			continue
		}
		seen[row.Ref] = true
		if a, older := olderAgents(client, v, row.Ref); older {
			found = append(found, a)
		}
		u, err := needed(ctx, client, s, row.Ref, v, all)
		var e *store.Error
		switch {
		case errors.As(err, &e) && e.Passing():
			return nil, err
		case errors.Is(err, errNoRollout), errors.Is(err, errNoPlan), errors.Is(err, trust.ErrNoChannel):
		case err != nil:
			found = append(found, fleet.Attention{What: fleet.Unseen, Project: row.Project, Channel: row.Channel,
				Hosts: []string{}, Why: fmt.Sprintf("%s: %v", row.Ref, err), Hint: diag.HintOf(err)})
		case u != nil:
			u.others = v.OtherKeys()
			if a, stopped := u.stopped(); stopped {
				found = append(found, a)
			}
			if a, lacks := u.lacksResults(v.Hosts); lacks {
				found = append(found, a)
			}
			a, missing, err := u.missing(ctx, v, all)
			if err != nil {
				return nil, err
			}
			if missing {
				found = append(found, a)
			}
		}
	}
	return found, nil
}

// needed reads the rollout of a channel with hosts that are behind, or with hosts that a view of all hosts lacks. Of
// another channel it reads the roster alone, without which hosts that come later take no release, and returns nil.
func needed(ctx context.Context, client *trust.Client, s store.Store, ref artifact.Ref,
	v *fleet.View, all bool) (*activeRollout, error) {
	if slices.ContainsFunc(v.Rows, func(r fleet.Row) bool { return r.Ref == ref && r.Behind > 0 }) {
		return loadRollout(ctx, client, s, ref)
	}
	plan, start, err := client.RolloutOf(ctx, ref)
	var withdrawn *trust.Withdrawn
	if plan == nil || start == nil || start.Aborted || errors.As(err, &withdrawn) {
		return nil, nil
	}
	var roster hosts.Roster
	if err == nil {
		roster, _, err = hosts.FetchRoster(ctx, s, ref, *start)
	}
	if err == nil && all && lacksHosts(v, roster) {
		return loadRollout(ctx, client, s, ref)
	}
	if errors.Is(err, store.ErrForbidden) {
		return nil, nil // this viewer may not read rollouts
	}
	return nil, err
}

// lacksHosts reports whether a view has no record of a host of a roster.
func lacksHosts(v *fleet.View, roster hosts.Roster) bool {
	there := map[string]bool{}
	for _, h := range v.Hosts {
		there[h.Host] = true
	}
	return slices.ContainsFunc(roster.Hosts, func(m hosts.Member) bool { return !there[m.Name] })
}

// unreadable returns the projects whose metadata cannot be read. Without it, their rows do not show which hosts are
// behind.
func unreadable(list []trust.Listing, project string) (found []fleet.Attention) {
	for _, l := range list {
		if l.Err != nil && (project == "" || project == l.Project) {
			found = append(found, fleet.Attention{What: fleet.Unreadable, Project: l.Project, Hosts: []string{},
				Why:  fmt.Sprintf("%s: %v", trust.Printable(l.Project), l.Err),
				Hint: cmp.Or(diag.HintOf(l.Err), "corpus verify shows what the store has")})
		}
	}
	return found
}

// stopped returns the entry for a rollout that is halted, stuck, paused or withdrawn; false for any other.
func (u *activeRollout) stopped() (fleet.Attention, bool) {
	state, next := u.next(u.waiting(), u.failed())
	what := map[string]string{"halted": fleet.Halted, "paused": fleet.Paused, "stuck": fleet.Stuck,
		"withdrawn": fleet.WithdrawnRollout}[state]
	if what == "" {
		return fleet.Attention{}, false
	}
	a := fleet.Attention{What: what, Project: u.ref.Project, Channel: u.ref.Channel, Version: u.version, Hosts: []string{},
		Since: u.since(state), Why: fmt.Sprintf("%s: %s", u.ref, next),
		Hint: fmt.Sprintf("corpus rollout status %s %s", u.ref.Project, u.ref.Channel)}
	for _, said := range u.failures() {
		a.Hosts = append(a.Hosts, said.Host)
	}
	return a, true
}

// lacksResults returns the entry for hosts of which the store has no result although they have the release; false if
// there are none. The waves after them wait for these results.
func (u *activeRollout) lacksResults(all []fleet.Host) (fleet.Attention, bool) {
	a := fleet.Attention{What: fleet.NoResult, Project: u.ref.Project, Channel: u.ref.Channel, Version: u.version,
		Since: u.rollout.Start.At,
		Why: fmt.Sprintf("%s: they have the release, or it failed there, and the store has no result of them, for which "+
			"the rollout waits", u.ref),
		Hint: recordAgain(u.ref, u.version, u.isOver()), Hosts: u.withoutResult(all)}
	return a, len(a.Hosts) > 0
}

// shownRollouts returns the rollouts of all channels for the pages. v is the view of the hosts that the options select.
func shownRollouts(ctx context.Context, client *trust.Client, s store.Store, list []trust.Listing,
	v *fleet.View, o fleetOptions) (all []pages.Rollout, err error) {
	for _, l := range list {
		for _, name := range slices.Sorted(maps.Keys(l.Channels)) {
			if l.Channels[name].Rollout == nil {
				continue
			}
			ref := artifact.Ref{Project: l.Project, Channel: name}
			u, err := shownRolloutOf(ctx, client, s, ref)
			switch {
			case errors.Is(err, errNoRollout), errors.Is(err, errNoPlan), errors.Is(err, trust.ErrNoChannel):
			case ctx.Err() != nil:
				return nil, ctx.Err()
			case err != nil:
				all = append(all, pages.Rollout{Ref: ref, Version: l.Channels[name].Version, State: "unknown", Unread: err.Error(),
					Next: diag.HintOf(err)})
			default:
				u.others = v.OtherKeys()
				all = append(all, shownRollout(u.status(ctx, s, o.allOf(l.Project, v.Hosts))))
			}
		}
	}
	return all, nil
}

func shownRollout(r rolloutStatus) pages.Rollout {
	shown := pages.Rollout{Ref: r.Ref, Version: r.rolledOut(), State: r.State, Next: r.Next, Urgent: r.Start.Urgent}
	for _, w := range r.Waves {
		shown.Waves = append(shown.Waves, pages.Wave{Name: w.Name, Share: w.Share.String(), Hosts: w.Hosts,
			Healthy: w.Healthy, Failed: w.Failed, Open: w.Open, Why: w.Why})
	}
	for _, h := range r.Halts {
		shown.Halts = append(shown.Halts, pages.Halt{Host: h.Host, At: h.At, Why: h.why()})
	}
	return shown
}

// missing returns the entry for hosts of a rollout that are not in the store any more; false if there are none, if the
// view does not have all hosts, or if the rollout has arrived without them or was aborted. Waves may wait for them in
// vain. A host that was renamed is not missing.
func (u *activeRollout) missing(ctx context.Context, v *fleet.View, all bool) (a fleet.Attention, missing bool,
	err error) {
	if !all || u.isOver() || u.rollout.Start.Aborted {
		return a, false, nil
	}
	a = fleet.Attention{What: fleet.Missing, Project: u.ref.Project, Channel: u.ref.Channel, Version: u.version,
		Since: u.rollout.Start.At, Hint: startWithout(u.ref, u.version),
		Why: fmt.Sprintf("%s: they belong to the rollout, and the store has no record of them, as after `corpus host forget`",
			u.ref)}
	a.Hosts, err = u.goneFor(ctx, v)
	if state, _ := u.next(u.waiting(), u.failed()); state == "halted" || state == "paused" {
		a.Hint = "once the rollout is resumed, " + a.Hint
	}
	return a, len(a.Hosts) > 0, err
}

// goneFor returns the hosts of the roster that are not in the store any more, without those of which the view knows
// that they were renamed.
func (u *activeRollout) goneFor(ctx context.Context, v *fleet.View) (names []string, err error) {
	keys := u.rollout.Roster.Keys()
	for _, host := range u.gone(v.Hosts) {
		now, err := v.Renamed(ctx, host, keys[host])
		if err != nil {
			return nil, err
		}
		if now == "" {
			names = append(names, host)
		}
	}
	return names, nil
}
