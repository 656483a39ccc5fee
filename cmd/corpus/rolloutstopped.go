package main

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/corpus-agent/corpus-agent/agent/fleet"
	"github.com/corpus-agent/corpus-agent/agent/hostrecord"
	"github.com/corpus-agent/corpus-agent/artifact/publish"
	"github.com/corpus-agent/corpus-agent/artifact/rollout"
	"github.com/corpus-agent/corpus-agent/artifact/store"
	"github.com/corpus-agent/corpus-agent/artifact/trust"
	"github.com/corpus-agent/corpus-agent/state/diag"
)

// last returns the last rollout of a channel with the results of its hosts. It reads each rollout once.
func (s *starter) last(ctx context.Context, b publish.Beginning) (*activeRollout, error) {
	if u := s.read[b.Earlier.ID]; u != nil {
		return u, nil
	}
	u := &activeRollout{ref: b.Ref, version: b.Release.Version, plan: b.Plan, now: b.Now}
	if err := u.read(ctx, s.store, *b.Earlier); err != nil {
		return nil, err
	}
	s.read[b.Earlier.ID] = u
	return u, nil
}

// halts returns the halt that stops the last rollout of a channel, or that did so before a person resumed or aborted
// it; none if it has arrived since, or if its results cannot be read.
func (s *starter) halts(ctx context.Context, b publish.Beginning) []rollout.Stop {
	if b.Earlier == nil {
		return nil
	}
	u, err := s.last(ctx, b)
	if err != nil {
		return nil
	}
	return u.halt(ctx, s.store)
}

// halt returns the halt of a rollout as the start of the next one keeps it; none if it did not halt, or has arrived
// since then.
func (u *activeRollout) halt(ctx context.Context, s store.Store) []rollout.Stop {
	stop := rollout.Stop{Release: u.rollout.Start.Release, What: "halt"}
	all := u.seen.Halts
	if n := len(u.seen.Past); len(all) == 0 && n > 0 && !u.isOver() {
		all = u.seen.Past[n-1:]
	}
	v := u.verdict(len(u.plan.Waves) - 1)
	switch {
	case len(all) > 0:
		first, _ := u.halts(ctx, s, all[:1])
		stop.At, stop.By, stop.Why = first[0].At, first[0].Host, first[0].grounds()
	case v.Reason == rollout.Stops: // no host has recorded it yet
		stop.At, stop.Why = u.since("halted"), v.String()
	default:
		return nil
	}
	return []rollout.Stop{stop}
}

// stoppedBefore returns the warnings that earlier rollouts of a release to a channel halted or were aborted. halts are
// those of the last rollout.
func stoppedBefore(b publish.Beginning, halts []rollout.Stop) (texts []string) {
	next := rollout.Start{Release: string(b.Release.Digest), Stops: b.Earlier.StopsOf(halts)}
	last := map[string]rollout.Stop{}
	for _, stop := range next.Stopped() {
		last[stop.What] = stop
	}
	named := trust.Printable(b.Release.Version)
	if len(b.Same) > 0 { // the earlier rollout may have been of one of them
		named += fmt.Sprintf(" (the same bytes as %s)", trust.Printable(strings.Join(b.Same, ", ")))
	}
	if stop, halted := last["halt"]; halted {
		version := trust.Printable(b.Release.Version)
		texts = append(texts, fmt.Sprintf("an earlier rollout of %s to %s halted%s\nhint: hosts on which it failed take it "+
			"again only after `corpus-agent unquarantine %s` there, as after a repair; if the release is at fault: `corpus "+
			"rollout abort %s %s`, and publish a corrected version", named, b.Ref, whenStopped(stop), version,
			b.Ref.Project, b.Ref.Channel))
	}
	earlier, stop := b.Earlier, last["abort"]
	switch {
	case earlier == nil:
	case earlier.Aborted && earlier.Release == next.Release && len(earlier.Moves) > 0:
		move := earlier.Moves[len(earlier.Moves)-1] // no move follows an abort
		texts = append(texts, fmt.Sprintf("the rollout of %s to %s was aborted, and starts again: %s", named, b.Ref,
			trust.Printable(move.String())))
	case stop.What != "":
		texts = append(texts, fmt.Sprintf("an earlier rollout of %s to %s was aborted%s", named, b.Ref, whenStopped(stop)))
	case slices.Contains(earlier.Left, next.Release): // from an older program
		texts = append(texts, fmt.Sprintf("an earlier rollout of %s to %s was aborted: corpus history %s %s",
			named, b.Ref, b.Ref.Project, b.Ref.Channel))
	}
	return texts
}

// whenStopped returns the time of a stop, and by whom and why it was, as far as these are known.
func whenStopped(stop rollout.Stop) string {
	text := " at " + diag.Stamp(stop.At)
	if stop.By != "" {
		text += " by " + trust.Printable(stop.By)
	}
	switch {
	case stop.Why == "":
	case stop.What == "halt" && stop.By != "": // the words of that host
		text += ", which says " + trust.Printable(fleet.Quoted(hostrecord.Shortened(stop.Why, longestGrounds)))
	default:
		text += ": " + trust.Printable(stop.Why)
	}
	return text
}

// warnOfContinued warns of a rollout that goes on as it was, and that a promotion does not let continue.
func (s *starter) warnOfContinued(ctx context.Context, same *rollout.Start) {
	u := s.read[same.ID]
	if u == nil {
		return
	}
	state, next := u.next(u.waiting(), u.failed())
	switch state {
	case "halted":
		at := ""
		if halts := u.halt(ctx, s.store); len(halts) > 0 {
			at = whenStopped(halts[0])
		}
		fmt.Fprintf(s.program.Err, "warning: the rollout of %s to %s halted%s\nhint: promoting or pointing again does not "+
			"continue it; %s\n", trust.Printable(u.version), u.ref, at, next)
	case "paused", "stuck", "withdrawn":
		fmt.Fprintf(s.program.Err, "warning: the rollout of %s to %s is %s\nhint: promoting or pointing again does not "+
			"continue it; %s\n", trust.Printable(u.version), u.ref, state, next)
	}
}
