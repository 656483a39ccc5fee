package main

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/corpus-agent/corpus-agent/agent/exit"
	"github.com/corpus-agent/corpus-agent/agent/fleet"
	"github.com/corpus-agent/corpus-agent/agent/hostkey"
	hosts "github.com/corpus-agent/corpus-agent/agent/rollout"
	"github.com/corpus-agent/corpus-agent/artifact/publish"
	"github.com/corpus-agent/corpus-agent/artifact/rollout"
	"github.com/corpus-agent/corpus-agent/artifact/store"
	"github.com/corpus-agent/corpus-agent/state/diag"
)

// inRoster is the maximum age of the newest report of a host that is put into a wave, since a wave waits for its hosts.
// mayAgain is the maximum age for hosts whose agent version is checked, since a silent host may run again.
const (
	inRoster = 24 * time.Hour
	mayAgain = 7 * 24 * time.Hour
)

// starter prepares rollouts for a publisher. A change that is tried again continues with the same rollout.
type starter struct {
	program   *program
	publisher *publish.Publisher
	store     store.Store
	flags     startFlags
	begun     map[string]*begun         // by channel and digest
	read      map[string]*activeRollout // rollouts before, with the results of their hosts, by ID
	gone      []string                  // hosts of the rollout under way whose keys are no longer registered
}

type begun struct {
	start    rollout.Start
	roster   hosts.Roster
	kept     bool
	ends     string   // version whose rollout ends before it is complete; "" for none
	unproven string   // version that the channel named before, of which no host has shown that it is healthy; "" for none
	taken    []string // hosts with another registered key besides that of the last roster
	idle     []string // patterns of the plan that match none of the hosts
	others   []string // hosts of the channel whose reports are not signed
	gone     []string // hosts of the earlier rollout of the same release whose keys are no longer registered
	ahead    []string // hosts with older agents than the plan requires, which --exempt names; they are not in the roster
	added    []string // hosts that the channel's last rollout did not have
	again    []string // warnings that rollouts of the release halted or were aborted before

	unlimited string // warning that the limit of failed hosts never applies; "" if it may
}

// starts makes a publisher start rollouts.
func (p *program) starts(publisher *publish.Publisher, flags startFlags) *starter {
	s := &starter{program: p, publisher: publisher, store: publisher.Store, flags: flags, begun: map[string]*begun{},
		read: map[string]*activeRollout{}}
	publisher.Start, publisher.Stale, publisher.Urgent = s.begin, s.stale, flags.urgent
	return s
}

func (s *starter) begin(ctx context.Context, b publish.Beginning) (*rollout.Start, func(context.Context) error, error) {
	of := b.Ref.String() + " " + string(b.Release.Digest)
	if s.begun[of] == nil {
		made, err := s.prepare(ctx, b)
		if err != nil {
			return nil, nil, err
		}
		s.begun[of] = made
	}
	made := s.begun[of]
	if b.Before == nil && len(made.roster.Hosts) == 0 {
		return nil, nil, nil // the first release of the channel: there are no hosts that it could harm
	}
	made.start.Before, made.start.Urgent, made.ends, made.unproven = b.Before, b.Urgent, "", ""
	switch earlier := b.Earlier; {
	case b.Before == nil, earlier != nil && (earlier.Aborted || earlier.Back && b.Before.Digest != b.Release.Digest):
	case earlier == nil && !s.proven(ctx, b):
		made.start.Before, made.unproven = nil, b.Before.Version
	case earlier != nil && !s.arrived(ctx, b):
		made.start.Before, made.ends = earlier.Before, b.Before.Version
	}
	made.start.Stops = s.halts(ctx, b)
	made.again = stoppedBefore(b, made.start.Stops)
	if len(s.gone) > 0 {
		made.gone, made.ends, made.start.Urgent = s.gone, "", b.Urgent || b.Earlier.Urgent
	}
	start := made.start
	keep := func(ctx context.Context) error {
		if made.kept {
			return nil
		}
		_, err := hosts.WriteRoster(ctx, s.store, b.Ref, start.ID, made.roster)
		made.kept = err == nil
		return err
	}
	return &start, keep, nil
}

// arrived reports whether the rollout of the release that a channel names is complete: enough hosts of each wave are
// healthy, and nothing stops it. Only such a release is one to return to. If the rollout knew no hosts, one that has
// the release now has to be healthy. arrived returns false if the results cannot be read.
func (s *starter) arrived(ctx context.Context, b publish.Beginning) bool {
	u, err := s.last(ctx, b)
	return err == nil && u.arrived() && (len(u.rollout.Roster.Hosts) > 0 || s.proven(ctx, b))
}

// proven reports whether a host shows that the release that a channel names is healthy.
func (s *starter) proven(ctx context.Context, b publish.Beginning) bool {
	ok, err := fleet.Proven(ctx, s.store, hostkey.List, fleet.Question{Channel: b.Ref, Digest: b.Before.Digest,
		Since: b.Now.Add(-mayAgain), Until: b.Now.Add(inRoster)})
	return ok && err == nil
}

// prepare divides the hosts that follow a channel into waves.
func (s *starter) prepare(ctx context.Context, b publish.Beginning) (*begun, error) {
	now := b.Now
	last := s.lastRoster(ctx, b)
	var known hostkey.Registry
	keys := func(ctx context.Context, from store.Store) (_ hostkey.Registry, err error) {
		known, err = hostkey.ListKeeping(ctx, from, last)
		known.Prefer(last)
		return known, err
	}
	all, err := fleet.Followers(ctx, s.store, keys, b.Ref, now.Add(-mayAgain))
	if err != nil {
		hint := "a rollout takes the right to list the store, and to read below reports/ and hosts/"
		if !errors.Is(err, store.ErrForbidden) {
			hint = "nothing was changed; try again when the store answers (corpus verify)"
		}
		return nil, diag.Evidence.Hint(fmt.Errorf("which hosts follow %s is not known: %w", b.Ref, err), "%s", hint)
	}
	all, ahead, err := s.flags.withoutExempt(b, all)
	if err != nil {
		return nil, err
	}
	made := newBegun(all, now.Add(-inRoster))
	made.ahead = ahead
	if len(made.roster.Hosts) == 0 && (b.Before != nil || len(all) > 0) && !b.Urgent {
		return nil, exit.WithCode(exit.Refused, diag.Evidence.Hint(
			fmt.Errorf("%s has no host that signed a report in the last %s, so nothing would stop the rollout", b.Ref,
				rollout.Duration(inRoster)),
			"see whether `corpus host ls` and `corpus fleet` show its hosts and whether this machine's clock is right, and "+
				"let hosts upload reports (reports.upload in agent.yaml); a forgotten key is registered again within a day\n"+
				"only where the channel has no hosts: --urgent"))
	}
	id, err := newRolloutID(now)
	if err != nil {
		return nil, err
	}
	made.unlimited = neverHalts(b.Ref, b.Plan.Halt, len(made.roster.Hosts))
	made.added = addedTo(made.roster, last)
	made.taken, made.idle = disputed(last, known), b.Plan.Idle(made.roster.Places())
	made.start = b.Plan.NewStart(id, string(b.Release.Digest), now, made.roster.Places())
	_, made.start.Roster, err = made.roster.Content()
	return made, err
}

// lastRoster returns the keys of the hosts of the last rollout of a channel, by host; nil if there was none or its
// roster does not exist. The order of registrations follows the store's times, which users who may write there can
// change; a roster is signed. If a machine was replaced, a person forgets the old key, and the new key becomes valid.
func (s *starter) lastRoster(ctx context.Context, b publish.Beginning) map[string]hostkey.Public {
	if b.Earlier == nil {
		return nil
	}
	last, _, err := hosts.FetchRoster(ctx, s.store, b.Ref, *b.Earlier)
	if err != nil {
		return nil // the rollout is long over, or never began: there is no roster to compare with
	}
	return last.Keys()
}

// disputed returns the hosts of the last roster for whose names another key is registered beside the roster's.
func disputed(last map[string]hostkey.Public, known hostkey.Registry) (names []string) {
	for host, key := range last {
		if keys := known[host]; len(keys) > 1 && keys[0].Key == key {
			names = append(names, host)
		}
	}
	slices.Sort(names)
	return names
}

// newBegun makes a roster of the hosts that signed a report after the given time. If a host was renamed, its key has
// signed for several names, and the newest name counts.
func newBegun(all []fleet.Follower, since time.Time) *begun {
	made, byKey := &begun{}, map[hostkey.Public]fleet.Follower{}
	for _, f := range all {
		if f.Key == "" {
			if !f.At.Before(since) {
				made.others = append(made.others, f.Host)
			}
		} else if last, there := byKey[f.Key]; !f.At.Before(since) && (!there || f.At.After(last.At)) {
			byKey[f.Key] = f
		}
	}
	for _, f := range byKey {
		made.roster.Hosts = append(made.roster.Hosts, hosts.Member{Name: f.Host, Region: f.Region, Cluster: f.Cluster,
			Key: f.Key})
	}
	slices.SortFunc(made.roster.Hosts, func(a, b hosts.Member) int { return strings.Compare(a.Name, b.Name) })
	return made
}

// newRolloutID returns an ID that no other rollout has.
func newRolloutID(now time.Time) (string, error) {
	chance := make([]byte, 4)
	if _, err := rand.Read(chance); err != nil {
		return "", err
	}
	return now.UTC().Format("20060102t150405") + "-" + hex.EncodeToString(chance), nil
}
