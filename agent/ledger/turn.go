package ledger

import (
	"fmt"
	"slices"
	"time"

	"github.com/corpus-agent/corpus-agent/artifact"
	"github.com/corpus-agent/corpus-agent/artifact/structsort"
	"github.com/corpus-agent/corpus-agent/state/diag"
)

// Turn is the position of a host in the rollout of a channel that it follows.
type Turn struct {
	Channel artifact.Ref     `json:"channel"`
	Rollout string           `json:"rollout"` // its ID
	Release artifact.Release `json:"release"` // the release that it brings
	Since   time.Time        `json:"since"`   // when this host first saw it
	Wave    string           `json:"wave,omitempty"`
	// Reason is why the host waits, in a word of artifact/rollout or "places", "old agent", "held", ReasonNoEvidence or
	// ReasonWithdrawn; empty once it has taken the release.
	Reason string `json:"reason,omitempty"`
	Why    string `json:"why,omitempty"` // the same as a sentence
	// Not is the earliest time at which the host checks the rollout again, by the store's clock; nil for its next run.
	Not *time.Time `json:"not_before,omitempty"`
	// Basis is a digest of the plan and the start from which Not follows.
	Basis    string `json:"basis,omitempty"`
	Took     string `json:"took,omitempty"` // the run that took the release or found it deployed
	Name     string `json:"name,omitempty"` // of the host in the roster of the rollout; empty if it is not in it
	Recorded string `json:"said,omitempty"` // the result that the host recorded last
	// FailedRun is the run whose failure the host recorded last, which it records again under the same name, since the
	// store may lose it; empty after the host was healthy or a person has resumed the rollout.
	FailedRun string `json:"failed_run,omitempty"`
	// Resumed is the time when a person last resumed the rollout, after which a host reports again that it is healthy;
	// empty for never.
	Resumed string `json:"resumed,omitempty"`
	// Forgiven is the time in Unix seconds up to which a person has forgiven failures, which the host signs with its own
	// failures; 0 for never.
	Forgiven int64 `json:"forgiven,omitempty"`
	// Halted is the time from which halts counted when this host saw that the rollout was halted; empty for never. While
	// that time is the same, the host stays halted even if the store has lost the record.
	Halted string `json:"halted,omitempty"`
	// Until is when the host stops recording a late failure of the release.
	Until *time.Time `json:"until,omitempty"`
}

// ReasonNoEvidence is the reason of a turn while the store does not show the results of other hosts.
const ReasonNoEvidence = "no evidence"

// ReasonWithdrawn is the reason of a turn that does not come unless the withdrawal of its release is undone.
const ReasonWithdrawn = "withdrawn"

// Waits reports whether the host does not have the release yet.
func (t Turn) Waits() bool { return t.Took == "" }

// Comes reports whether the host waits for a turn that will come: its release is not withdrawn.
func (t Turn) Comes() bool { return t.Waits() && t.Reason != ReasonWithdrawn }

// String returns the reason why the host waits, and the time of its next check.
func (t Turn) String() string {
	text := fmt.Sprintf("it waits for its turn in rollout %s since %s", t.Rollout, diag.Stamp(t.Since))
	if t.Wave != "" {
		text += ", in wave " + t.Wave
	}
	text += ": " + t.Why + "; it asks again "
	if t.Not != nil {
		return text + "after " + diag.Stamp(*t.Not)
	}
	return text + "at its next run"
}

// TurnOf returns the position of the host in the rollout of a channel; nil if the ledger has none.
func (l *Ledger) TurnOf(channel artifact.Ref) *Turn {
	i := slices.IndexFunc(l.Turns, func(t Turn) bool { return t.Channel == channel })
	if i < 0 {
		return nil
	}
	return &l.Turns[i]
}

// Enter returns the turn of the host in a rollout that is in progress. If the ledger does not have it, it replaces the
// previous one of the channel.
func (l *Ledger) Enter(channel artifact.Ref, rollout string, release artifact.Release, now time.Time) *Turn {
	if t := l.TurnOf(channel); t != nil && t.Rollout == rollout && t.Release.Is(release) {
		return t
	}
	l.EndTurn(channel)
	l.Turns = append(l.Turns, Turn{Channel: channel, Rollout: rollout, Release: release, Since: now})
	return &l.Turns[len(l.Turns)-1]
}

// EndTurn removes the turn in the rollout of a channel, and reports whether there was one.
func (l *Ledger) EndTurn(channel artifact.Ref) bool {
	n := len(l.Turns)
	l.Turns = structsort.Without(l.Turns, func(t Turn) bool { return t.Channel == channel })
	return len(l.Turns) < n
}
