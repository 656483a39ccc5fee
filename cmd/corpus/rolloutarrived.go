package main

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/corpus-agent/corpus-agent/agent/exit"
	"github.com/corpus-agent/corpus-agent/agent/hostkey"
	hosts "github.com/corpus-agent/corpus-agent/agent/rollout"
	"github.com/corpus-agent/corpus-agent/artifact"
	"github.com/corpus-agent/corpus-agent/artifact/publish"
	"github.com/corpus-agent/corpus-agent/artifact/store"
	"github.com/corpus-agent/corpus-agent/artifact/trust"
	"github.com/corpus-agent/corpus-agent/state/diag"
)

// reached returns the rollout of a channel if it has arrived; nil for any other, and where the results of its hosts
// cannot be read: a person may always stop such a rollout.
func reached(ctx context.Context, publisher *publish.Publisher, ref artifact.Ref) *activeRollout {
	u, err := publisherRollout(ctx, publisher, ref)
	if err != nil || u.rollout.Start.Aborted || !u.isOver() {
		return nil
	}
	return u
}

// waiting returns the number of hosts without a result.
func (u *activeRollout) waiting() int { return len(u.rollout.Roster.Hosts) - len(u.seen.Results) }

// failures returns the results of the hosts on which the release failed.
func (u *activeRollout) failures() (all []hosts.Entry) {
	for _, said := range u.seen.Results {
		if said.Outcome != hosts.Healthy {
			all = append(all, said)
		}
	}
	return all
}

// failed returns the number of hosts on which the release failed.
func (u *activeRollout) failed() int { return len(u.failures()) }

// over returns the error for a move of a rollout that has arrived.
func (u *activeRollout) over(so, more string) error {
	return exit.WithCode(exit.Usage, diag.Rollout.Hint(
		fmt.Errorf("the rollout of %s to %s has arrived, so %s", trust.Printable(u.version), u.ref, so),
		"`corpus rollout back %s %s` goes back in waves%s", u.ref.Project, u.ref.Channel, more))
}

// wayBack returns the command that leads back from the release of a rollout.
func (u *activeRollout) wayBack() string {
	text := "`corpus rollout abort %s %s` points the channel back"
	if u.isOver() {
		text = "`corpus rollout back %s %s` points the channel back"
	}
	return fmt.Sprintf(text, u.ref.Project, u.ref.Channel)
}

// isOver reports whether a rollout has arrived on hosts. One without hosts has arrived nowhere.
func (u *activeRollout) isOver() bool { return len(u.seen.Results) > 0 && u.arrived() }

// stale reports whether a rollout waits for hosts whose keys are no longer registered, as of machines that were
// replaced, or its roster is damaged. One that a person paused, or that failures stop, does not start again by that.
func (s *starter) stale(ctx context.Context, b publish.Beginning) (bool, error) {
	s.gone = nil
	u, err := s.last(ctx, b)
	if errors.Is(err, store.ErrForbidden) {
		return false, nil // this publisher may not read rollouts
	}
	if errors.Is(err, hosts.ErrDamaged) {
		return true, nil // as if the store had lost it
	}
	if err != nil || b.Earlier.Paused || u.arrived() || !u.stopsAt().IsZero() {
		return false, err
	}
	known, err := hostkey.ListKeeping(ctx, s.store, u.rollout.Roster.Keys())
	if err != nil {
		return false, fmt.Errorf("reading the keys of the hosts: %w", err)
	}
	for _, m := range u.rollout.Roster.Hosts {
		if !slices.ContainsFunc(known[m.Name], func(k hostkey.Registered) bool { return k.Key == m.Key }) {
			s.gone = append(s.gone, m.Name)
		}
	}
	return len(s.gone) > 0, nil
}
