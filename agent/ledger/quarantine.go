package ledger

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/corpus-agent/corpus-agent/artifact"
	"github.com/corpus-agent/corpus-agent/artifact/structsort"
	"github.com/corpus-agent/corpus-agent/state/diag"
)

// ByHand is the reason of the quarantine of a release that a person rolled back.
const ByHand = "rolled back by hand"

// Bad is a release in quarantine: no deploy tries it again, with any other release.
type Bad struct {
	// Pair is the pair of the deploy in which the release failed. Agents that do not read Release compare it.
	Pair Pair `json:"pair"`
	// Release is the release at fault. It is nil in entries of agents that quarantined pairs.
	Release *artifact.Release `json:"release,omitempty"`
	Reason  string            `json:"reason"`
	Run     string            `json:"run"`
	At      time.Time         `json:"at"`
	// Again is the number of times the pair failed because of the host's disk. Only older agents write it, and such
	// a pair is not in quarantine.
	Again int `json:"again,omitempty"`
}

// QuarantinedSince describes a quarantine by the run that began it, and the reason.
func QuarantinedSince(run, reason string) string {
	return fmt.Sprintf("quarantined since run %s: %s", run, reason)
}

// Covers reports whether the entry prevents the deploy of a pair.
func (b Bad) Covers(p Pair) bool {
	if b.Release == nil {
		return b.Pair.Same(p)
	}
	return p.Has(*b.Release)
}

// Is reports whether the entry is about a release.
func (b Bad) Is(release artifact.Release) bool {
	return b.Release != nil && b.Release.Is(release)
}

// Under returns the version under which a pair has the release in quarantine, if it is another one than that which
// failed: its bytes are the same. Otherwise it returns "".
func (b Bad) Under(p *Pair) string {
	if p == nil || b.Release == nil {
		return ""
	}
	for _, r := range p.Releases() {
		if b.Is(r) && r.Version != b.Release.Version {
			return r.Version
		}
	}
	return ""
}

// What returns the release in quarantine, or the pair in entries of older agents.
func (b Bad) What() string {
	if b.Release == nil {
		return b.Pair.String()
	}
	return b.Release.String()
}

// names reports whether a version or a release directory is that of this entry.
func (b Bad) names(version string) bool {
	if b.Release == nil {
		return b.Pair.Is(version)
	}
	return b.Release.Version == version || b.Release.Dir() == version
}

// Has reports whether a pair has a release, by its bytes.
func (p Pair) Has(release artifact.Release) bool {
	return slices.ContainsFunc(p.Releases(), func(r artifact.Release) bool {
		return r.Is(release)
	})
}

// With returns the pair with its release of the same project replaced by release.
func (p Pair) With(release artifact.Release) Pair {
	if release.Project == p.Service.Project {
		p.Service = release
		return p
	}
	p.Base = &release
	return p
}

// dropHostFailures removes entries that an older agent made for failures of the host.
func (l *Ledger) dropHostFailures() {
	l.Bad = structsort.Without(l.Bad, func(b Bad) bool { return b.Again > 0 })
}

// IsBad reports whether a pair, or a release of it, is in quarantine, and why.
func (l *Ledger) IsBad(p Pair) (Bad, bool) {
	for _, b := range l.Bad {
		if b.Covers(p) {
			return b, true
		}
	}
	return Bad{}, false
}

// keepBad bounds the entries of the quarantine. A channel that has moved on does not return to the oldest releases.
const keepBad = 50

// Quarantine adds an entry. A release that is in quarantine already keeps its first reason. A postponed deploy of the
// release is not retried.
func (l *Ledger) Quarantine(b Bad) {
	if l.Postponed != nil && l.Postponed.Pair.Has(Release(b)) {
		l.Postponed = nil
	}
	if slices.ContainsFunc(l.Bad, func(known Bad) bool { return known.Is(Release(b)) }) {
		return
	}
	l.Bad = append(l.Bad, b)
	l.Bad = l.Bad[max(0, len(l.Bad)-keepBad):]
}

// Release returns the release that an entry is about.
func Release(b Bad) artifact.Release {
	if b.Release == nil {
		return b.Pair.Service
	}
	return *b.Release
}

// Amend adds to the reason of the quarantined releases of a pair.
func (l *Ledger) Amend(p Pair, more string) {
	for i, b := range l.Bad {
		if b.Covers(p) && !strings.HasSuffix(b.Reason, more) {
			l.Bad[i].Reason += "; " + more
		}
	}
}

// Forgive removes a pair and its releases from the quarantine.
func (l *Ledger) Forgive(p Pair) {
	l.Bad = structsort.Without(l.Bad, func(b Bad) bool { return b.Covers(p) })
}

// Unquarantine removes entries from the quarantine, and returns them: those of a version or a release directory, or all
// for "". named are releases that the channels of the host name: a version of them releases the entry with the same
// bytes. A deploy that was postponed because of the host becomes due at once.
func (l *Ledger) Unquarantine(version string, named ...artifact.Release) []Bad {
	for _, t := range l.Turns {
		named = append(named, t.Release)
	}
	same := func(b Bad) bool {
		return slices.ContainsFunc(named, func(r artifact.Release) bool { return r.Version == version && b.Is(r) })
	}
	var released []Bad
	l.Bad = structsort.Without(l.Bad, func(b Bad) bool {
		if version != "" && !b.names(version) && !same(b) {
			return false
		}
		released = append(released, b)
		return true
	})
	if p := l.Postponed; p != nil && (version == "" || p.Pair.Own().Version == version || p.Pair.Is(version)) {
		released = append(released, Bad{Pair: p.Pair, Reason: p.Reason, Run: p.Run, At: p.At})
		l.Postponed = nil
	}
	return released
}

// Postponed is a deploy that failed because of the host, such as a full or failing disk or a busy package manager. It
// is retried at growing intervals, since the release is not at fault.
type Postponed struct {
	Pair     Pair      `json:"pair"`
	Reason   string    `json:"reason"`
	Run      string    `json:"run"` // the last run that failed
	At       time.Time `json:"at"`  // when that was
	Failures int       `json:"failures"`
	Kills    int       `json:"kills,omitempty"` // the last failures in a row in which a python3 or a script was killed
	Next     time.Time `json:"next"`            // the earliest time of the next retry
}

// The first retry is due at the next run. The wait before each later one is twice the one before, from firstDelay to
// longestDelay.
const (
	firstDelay   = 10 * time.Minute
	longestDelay = 4 * time.Hour
)

// Postpone records another failure of a pair because of the host, and the time of the next retry. killed says that a
// module's python3 was killed.
func (l *Ledger) Postpone(p Pair, reason, run string, at time.Time, killed bool) Postponed {
	next := Postponed{Pair: p, Reason: reason, Run: run, At: at, Next: at}
	known := Postponed{}
	if l.Postponed != nil && l.Postponed.Pair.Same(p) {
		known = *l.Postponed
	}
	next.Failures = known.Failures + 1
	if killed {
		next.Kills = known.Kills + 1
	}
	if n := next.Failures - 2; n >= 0 {
		next.Next = at.Add(min(firstDelay<<min(n, 10), longestDelay))
	}
	l.Postponed = &next
	return next
}

// When describes when the deploy is retried; if the time has passed, at the next run.
func (p Postponed) When(now time.Time) string {
	if !now.Before(p.Next) {
		return "at the next run"
	}
	return "from " + diag.Stamp(p.Next) + " on"
}

// AtOnce returns the commands that retry the deploy now.
func (p Postponed) AtOnce() string {
	return "corpus-agent unquarantine " + p.Pair.Own().Version + " && corpus-agent deploy"
}

// Waits reports whether the retry of a pair is not due yet. It is due if the clock was set back.
func (l *Ledger) Waits(p Pair, now time.Time) (Postponed, bool) {
	w := l.Postponed
	if w == nil || !w.Pair.Same(p) {
		return Postponed{}, false
	}
	return *w, now.Before(w.Next) && !now.Before(w.At)
}
