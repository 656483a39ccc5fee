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

// Start is a rollout that is under way. It is signed with the channel's pointer, and so are the moves that change it:
// pause, resume, skip-wave and abort.
type Start struct {
	ID      string    `json:"id"`      // names what hosts say of it in the store
	Release string    `json:"release"` // digest of what hosts are to take
	At      time.Time `json:"at"`
	Before  *Before   `json:"before,omitempty"` // what the channel named before; nil for a channel that was new
	Roster  string    `json:"roster"`           // digest of the list of the hosts that the channel had; see RosterKey
	Agent   string    `json:"agent,omitempty"`  // the version of the agent that it takes
	Cuts    []uint32  `json:"cuts"`             // see Plan.Cut
	Hosts   []int     `json:"hosts"`            // of each wave, when it started
	Urgent  bool      `json:"urgent,omitempty"`
	Paused  bool      `json:"paused,omitempty"`
	Aborted bool      `json:"aborted,omitempty"`
	Skipped int       `json:"skipped,omitempty"` // waves that are not waited for any more
	Resumed time.Time `json:"resumed,omitzero"`  // failures and halts before do not count any more
	Moves   []Move    `json:"moves,omitempty"`   // what people did to it, the oldest first
}

// Move is what a person did to a rollout, or how a channel came to name its release.
type Move struct {
	// start, urgent, pause, resume, skip-wave or abort; of a channel promote, point, publish or abort
	What string    `json:"what"`
	At   time.Time `json:"at"`
	By   []string  `json:"by,omitempty"` // IDs of the keys at hand that may sign the project
	// the person, as the publisher was given the name; empty in moves of older programs
	Who string `json:"who,omitempty"`
}

// Is reports whether two records are of the same move.
func (m Move) Is(other Move) bool {
	return m.What == other.What && m.At.Equal(other.At) && m.Who == other.Who && slices.Equal(m.By, other.By)
}

// String returns a move in one line, for people who sign it.
func (m Move) String() string {
	text := m.What + " at " + m.At.UTC().Format(time.RFC3339)
	if m.Who != "" {
		text += " by " + m.Who
	}
	return text
}

// maxMoves is how many moves a start keeps.
const maxMoves = 50

// Note adds a move to a rollout. Beyond the limit the oldest one goes.
func (s *Start) Note(m Move) {
	s.Moves = append(slices.Clone(s.Moves), m)
	s.Moves = s.Moves[max(0, len(s.Moves)-maxMoves):]
}

// Before is the release that a channel named before a rollout: what its hosts keep until their turn, and where an
// abort points the channel.
type Before struct {
	Version string          `json:"version"`
	Digest  artifact.Digest `json:"digest"`
}

// NewStart begins a rollout of a release to the hosts that are known.
func (p Plan) NewStart(id, release string, at time.Time, hosts []Host) Start {
	cuts, counts := p.Cut(release, hosts)
	return Start{ID: id, Release: release, At: at.UTC().Truncate(time.Second), Agent: p.Agent, Cuts: cuts, Hosts: counts}
}

// maxID is the length of the longest ID of a rollout: it is a segment of keys in the store.
const maxID = 64

// Check returns every mistake in a start, which a project's key signed.
func (s Start) Check() error {
	errs := []error{checkID(s.ID), checkDigest("release", s.Release), checkDigest("roster", s.Roster)}
	if s.At.IsZero() {
		errs = append(errs, errors.New("the rollout has no time"))
	}
	if s.Before != nil {
		errs = append(errs, artifact.CheckVersion(s.Before.Version), checkDigest("release before", string(s.Before.Digest)))
	}
	if len(s.Hosts) > maxWaves || len(s.Cuts) > maxWaves || s.Skipped < 0 || s.Skipped > maxWaves {
		errs = append(errs, fmt.Errorf("the rollout has more than %d waves", maxWaves))
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
	if s.Skipped > 0 {
		text += fmt.Sprintf(", does not wait for the first %s", diag.Count(s.Skipped, "wave"))
	}
	return text
}

// Older reports whether a version of the agent is older than one that a rollout takes. A version that is not a release
// of the agent, such as dev, is as new as any; an agent that does not say its version is older than all.
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
