package main

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/corpus-agent/corpus-agent/agent/hostkey"
	hosts "github.com/corpus-agent/corpus-agent/agent/rollout"
	"github.com/corpus-agent/corpus-agent/artifact"
	"github.com/corpus-agent/corpus-agent/artifact/rollout"
	"github.com/corpus-agent/corpus-agent/artifact/trust"
	"github.com/corpus-agent/corpus-agent/state/diag"
)

// placed is a release that a channel names, and its rollout.
type placed struct {
	artifact.Release
	Rollout *rollout.Start `json:"rollout,omitempty"`
	Added   []string       `json:"new_hosts,omitempty"` // hosts that the channel's last rollout did not have
}

// answer prints what a person should know of the rollout that was started, and the text. If the move is a draft, it
// prints a summary of the draft instead of the text.
func (s *starter) answer(ctx context.Context, ref artifact.Ref, release artifact.Release, text string) error {
	made := s.kept(ref, release)
	s.warnings(ctx, ref, made)
	switch same := s.publisher.Continued; {
	case s.program.drafted != nil:
		return s.program.answerDraft()
	case made != nil:
		return s.program.answer(placed{release, &made.start, made.added}, "%s\n%s", text, made.text(ref))
	case same != nil && !same.Aborted:
		text += fmt.Sprintf("\nit named this release before, and its rollout is the same%s: corpus rollout status %s %s",
			skips(s.publisher.Urgent), ref.Project, ref.Channel)
	}
	return s.program.answer(placed{Release: release}, "%s", text)
}

// kept returns the rollout of a release that was started; nil if there is none.
func (s *starter) kept(ref artifact.Ref, release artifact.Release) *begun {
	if made := s.begun[ref.String()+" "+string(release.Digest)]; made != nil && made.kept {
		return made
	}
	return nil
}

// warnings prints what a person should know of the rollout that was started, or that goes on as it was if made is nil.
func (s *starter) warnings(ctx context.Context, ref artifact.Ref, made *begun) {
	if made != nil {
		s.warn(ref, made)
	} else if same := s.publisher.Continued; same != nil && !same.Aborted {
		s.warnOfContinued(ctx, same)
	}
}

// text returns the lines that say that a rollout has started.
func (b *begun) text(ref artifact.Ref) string {
	sizes := []string{}
	for _, n := range b.start.Hosts {
		sizes = append(sizes, fmt.Sprint(n))
	}
	return fmt.Sprintf("its rollout to %s in %s (%s) has started: corpus rollout status %s %s%s",
		diag.Count(len(b.roster.Hosts), "host"), diag.Count(len(sizes), "wave"), strings.Join(sizes, ", "), ref.Project,
		ref.Channel, b.addedText())
}

// mostAdded is the number of hosts that a move names as new since the last rollout.
const mostAdded = 10

// addedText returns a line that names the hosts that the channel's last rollout did not have; "" if there are none.
func (b *begun) addedText() string {
	if len(b.added) == 0 {
		return ""
	}
	return fmt.Sprintf("\n%s, %d of them new since the last rollout: %s", diag.Count(len(b.roster.Hosts), "host"),
		len(b.added), named(b.added, mostAdded))
}

// addedTo returns the hosts of a roster that the last one of the channel did not have. It returns none if there was no
// last one.
func addedTo(roster hosts.Roster, last map[string]hostkey.Public) (names []string) {
	for _, m := range roster.Hosts {
		if _, before := last[m.Name]; last != nil && !before {
			names = append(names, m.Name)
		}
	}
	return names
}

// skips returns what an urgent promotion changes in a rollout that is under way.
func skips(urgent bool) string {
	if urgent {
		return ", and waits for no waves and windows from now on"
	}
	return ""
}

// warn prints what a person should know of a rollout that has started.
func (s *starter) warn(ref artifact.Ref, made *begun) {
	if len(made.gone) > 0 {
		fmt.Fprintf(s.program.Err, "warning: the rollout starts again, since the store no longer has the keys of %s in its "+
			"roster: %s\n", diag.Count(len(made.gone), "host"),
			strings.Join(made.gone[:min(len(made.gone), mostOnLine)], ", "))
	}
	for _, text := range s.exemptions(made) {
		fmt.Fprintf(s.program.Err, "warning: %s\n", text)
	}
	for _, text := range made.again {
		fmt.Fprintf(s.program.Err, "warning: %s\n", text)
	}
	if len(made.others) > 0 {
		slices.Sort(made.others)
		fmt.Fprintf(s.program.Err, "warning: reports of %s of %s are not signed with a registered key (corpus host ls): "+
			"such hosts wait with the others, and count for nothing; one that no longer exists is left out a day after its "+
			"last report: %s\n", diag.Count(len(made.others), "host"), ref,
			trust.Printable(strings.Join(made.others[:min(len(made.others), mostOnLine)], ", ")))
	}
	if len(made.taken) > 0 {
		fmt.Fprintf(s.program.Err, "warning: %s of %s registered another key besides that of its last rollout: %s; only "+
			"what the key of the last rollout signed counts (corpus host ls --conflicts). If a machine was replaced: corpus "+
			"host forget NAME\n",
			diag.Count(len(made.taken), "host"), ref, strings.Join(made.taken[:min(len(made.taken), mostOnLine)], ", "))
	}
	if len(made.idle) > 0 {
		fmt.Fprintf(s.program.Err, "warning: no host of the rollout matches %s of the plan (--canary, --last)\n",
			trust.Printable(strings.Join(made.idle, ", ")))
	}
	if made.unlimited != "" {
		fmt.Fprintf(s.program.Err, "warning: %s\n", made.unlimited)
	}
	if made.unproven != "" {
		fmt.Fprintf(s.program.Err, "warning: no host has shown that %s, which %s named before, is healthy, so abort and "+
			"back have nothing to go back to\n", trust.Printable(made.unproven), ref)
	}
	if made.ends != "" {
		back := "and nothing arrived before it, so abort and back have nothing to go back to"
		if made.start.Before != nil {
			back = "and ends: abort leads back to " + trust.Printable(made.start.Before.Version)
		}
		fmt.Fprintf(s.program.Err, "warning: the rollout of %s to %s had not arrived, %s\n", trust.Printable(made.ends), ref,
			back)
	}
}
