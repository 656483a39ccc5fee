package rollout

import (
	"encoding/hex"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/corpus-agent/corpus-agent/artifact"
	"github.com/corpus-agent/corpus-agent/state/diag"
)

// Start is the signed state of a rollout. It is signed with the channel's pointer, and so are the moves that change it:
// pause, resume, skip-wave and abort.
type Start struct {
	ID      string    `json:"id"`      // part of the keys of its results in the store
	Release string    `json:"release"` // digest of the release
	At      time.Time `json:"at"`
	Before  *Before   `json:"before,omitempty"` // previous release of the channel; nil if the channel is new
	Roster  string    `json:"roster"`           // digest of the list of the channel's hosts; see RosterKey
	Agent   string    `json:"agent,omitempty"`  // version of the agent that it requires
	Cuts    []uint32  `json:"cuts"`             // see Plan.Cut
	Hosts   []int     `json:"hosts"`            // of each wave, when it started
	Order   *Order    `json:"order,omitempty"`  // of the plan, when it started; nil in starts of older programs
	Limits  *Limits   `json:"limits,omitempty"` // likewise; see Plan.Within
	Urgent  bool      `json:"urgent,omitempty"`
	Paused  bool      `json:"paused,omitempty"`
	Aborted bool      `json:"aborted,omitempty"`
	Skipped int       `json:"skipped,omitempty"` // number of waves that are not waited for
	Resumed time.Time `json:"resumed,omitzero"`  // failures and halts before this time do not count
	Moves   []Move    `json:"moves,omitempty"`   // moves of people, the oldest first
	// Left has digests of releases whose rollouts were aborted before this one. A host that still has one of them goes
	// back to Before until its turn.
	Left []string `json:"left,omitempty"`
	// Back is set if a person went back from Before, which is then no release to go back to.
	Back bool `json:"back,omitempty"`
	// Earlier has the releases that arrived on the channel before Before, the newest first; see Trail.
	Earlier []Before `json:"earlier,omitempty"`
	// Stops has the halts and aborts of rollouts of the channel before this one, the newest last; see StopsOf.
	Stops []Stop `json:"stops,omitempty"`
}

// Move is a change of a rollout by a person, or the change by which a channel names its release.
type Move struct {
	// start, urgent, pause, resume, skip-wave or abort; of a channel promote, point, publish, back or abort
	What string    `json:"what"`
	Wave int       `json:"wave,omitempty"` // of skip-wave: the number of the wave that began, from 1
	At   time.Time `json:"at"`
	By   []string  `json:"by,omitempty"` // IDs of the available keys that may sign the project
	// the person's name as given to the publisher; empty in moves of older programs
	Who string `json:"who,omitempty"`
}

// Is reports whether two records are of the same move.
func (m Move) Is(other Move) bool {
	return m.What == other.What && m.Wave == other.Wave && m.At.Equal(other.At) && m.Who == other.Who &&
		slices.Equal(m.By, other.By)
}

// String returns a move in one line, for people who sign it.
func (m Move) String() string {
	text := m.Text() + " at " + m.At.UTC().Format(time.RFC3339)
	if m.Who != "" {
		text += " by " + m.Who
	}
	return text
}

// Text returns what a move is, with its wave.
func (m Move) Text() string {
	if m.Wave > 0 {
		return fmt.Sprintf("%s to wave %d", m.What, m.Wave)
	}
	return m.What
}

// maxMoves is the maximum number of moves that a start keeps.
const maxMoves = 50

// Note adds a move to a rollout. At the limit, the oldest one is removed.
func (s *Start) Note(m Move) {
	s.Moves = append(slices.Clone(s.Moves), m)
	s.Moves = s.Moves[max(0, len(s.Moves)-maxMoves):]
}

// LastResume returns when a person last resumed the rollout; the zero time for never.
func (s Start) LastResume() (at time.Time) {
	for _, m := range s.Moves {
		if m.What == "resume" {
			at = m.At
		}
	}
	return at
}

// Before is the release that a channel named before a rollout. Its hosts stay on it until their turn, and an abort
// points the channel at it.
type Before struct {
	Version string          `json:"version"`
	Digest  artifact.Digest `json:"digest"`
}

// NewStart returns the start of a rollout of a release to the known hosts.
func (p Plan) NewStart(id, release string, at time.Time, hosts []Host) Start {
	cuts, counts := p.Cut(release, hosts)
	return Start{ID: id, Release: release, At: at.UTC().Truncate(time.Second), Agent: p.Agent, Cuts: cuts, Hosts: counts,
		Order: p.order(), Limits: p.limits()}
}

// maxLeft is the maximum number of aborted releases that a start keeps.
const maxLeft = 8

// LeftBy returns the releases for Start.Left of the next rollout of the channel. s may be nil.
func (s *Start) LeftBy(next Start) (left []string) {
	if s == nil {
		return nil
	}
	all := slices.Clone(s.Left)
	if s.Aborted {
		all = append(all, s.Release)
	}
	for i, digest := range all {
		names := digest == next.Release || next.Before != nil && digest == string(next.Before.Digest)
		if !names && !slices.Contains(all[i+1:], digest) {
			left = append(left, digest)
		}
	}
	return left[max(0, len(left)-maxLeft):]
}

// maxID is the maximum length of the ID of a rollout, which is a segment of keys in the store.
const maxID = 64

// Check returns every mistake in a start.
func (s Start) Check() error {
	errs := []error{checkID(s.ID), checkDigest("release", s.Release), checkDigest("roster", s.Roster), s.checkStops()}
	if s.Order != nil {
		errs = append(errs, s.Order.check())
	}
	if s.Limits != nil {
		errs = append(errs, s.Limits.check())
	}
	if s.At.IsZero() {
		errs = append(errs, errors.New("the rollout has no time"))
	}
	before := slices.Clone(s.Earlier)
	if s.Before != nil {
		before = append(before, *s.Before)
	}
	for _, b := range before {
		errs = append(errs, artifact.CheckVersion(b.Version), checkDigest("release before", string(b.Digest)))
	}
	if len(s.Hosts) > maxWaves || len(s.Cuts) > maxWaves || s.Skipped < 0 || s.Skipped > maxWaves {
		errs = append(errs, fmt.Errorf("the rollout has more than %d waves", maxWaves))
	}
	for _, digest := range s.Left {
		errs = append(errs, checkDigest("aborted release", digest))
	}
	if len(s.Left) > maxLeft {
		errs = append(errs, fmt.Errorf("the rollout has more than %d aborted releases", maxLeft))
	}
	if len(s.Earlier) > maxEarlier {
		errs = append(errs, fmt.Errorf("the rollout has more than %d earlier releases", maxEarlier))
	}
	if len(s.Moves) > maxMoves {
		errs = append(errs, fmt.Errorf("the rollout has more than %d moves", maxMoves))
	}
	for _, n := range s.Hosts {
		if n < 0 {
			errs = append(errs, fmt.Errorf("a wave of the rollout has %s", diag.Count(n, "host")))
		}
	}
	return errors.Join(errs...)
}

// String returns a start in one line, for people who sign it.
func (s Start) String() string {
	hosts := 0
	for _, n := range s.Hosts {
		hosts += n
	}
	text := fmt.Sprintf("rollout %s of %s to %s, hosts of each wave %v", s.ID, s.At.Format(time.RFC3339),
		diag.Count(hosts, "host"), s.Hosts)
	if s.Before != nil {
		text += ", before it " + s.Before.Version
	}
	for _, flag := range []struct {
		is   bool
		word string
	}{{s.Urgent, "urgent"}, {s.Paused, "paused"}, {s.Aborted, "aborted"}} {
		if flag.is {
			text += ", " + flag.word
		}
	}
	if n := len(s.Moves); n > 0 {
		text += ", last move " + s.Moves[n-1].String()
	}
	if stopped := s.Stopped(); len(stopped) > 0 {
		text += ", an earlier rollout of this release: " + stopped[len(stopped)-1].String()
	}
	if s.Skipped > 0 {
		text += fmt.Sprintf(", does not wait for the first %s", diag.Count(s.Skipped, "wave"))
	}
	return text
}

// Older reports whether a version of the agent is older than the one that a rollout requires. A version that is not a
// release of the agent, such as dev, is as new as any; an agent that does not report its version is older than all.
func Older(version, takes string) bool {
	released := func(v string) bool { return v != "" && v[0] >= '0' && v[0] <= '9' && !strings.HasPrefix(v, "0.0.0") }
	version, takes = strings.TrimPrefix(version, "v"), strings.TrimPrefix(takes, "v")
	if version == "" {
		return takes != ""
	}
	return released(version) && released(takes) && artifact.CompareVersions(version, takes) < 0
}

func checkID(id string) error {
	plain := func(r rune) bool { return r < '0' || r > '9' && r < 'a' || r > 'z' }
	if id == "" || len(id) > maxID || strings.ContainsFunc(strings.ReplaceAll(id, "-", ""), plain) || id[0] == '-' {
		return fmt.Errorf("%q is not an ID of a rollout", id)
	}
	return nil
}

func checkDigest(what, text string) error {
	sum, ok := strings.CutPrefix(text, "sha256:")
	if data, err := hex.DecodeString(sum); !ok || err != nil || len(data) != 32 {
		return fmt.Errorf("the rollout's %s %q is not a digest", what, text)
	}
	return nil
}

// Prefix returns the prefix of the keys of a rollout in the store.
func Prefix(ref artifact.Ref, id string) string {
	return "rollouts/" + ref.Project + "/" + ref.Channel + "/" + id + "/"
}

// RosterKey returns the key of the list of the hosts that a channel had when a rollout of it started.
func RosterKey(ref artifact.Ref, id string) string { return Prefix(ref, id) + "roster.json" }
