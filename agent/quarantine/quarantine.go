// Package quarantine keeps releases that failed from being deployed again: it records them in the ledger, and replaces
// them in the pairs that the channels name.
package quarantine

import (
	"strings"

	"github.com/corpus-agent/corpus-agent/agent/failure"
	"github.com/corpus-agent/corpus-agent/agent/fault"
	"github.com/corpus-agent/corpus-agent/agent/inspect"
	"github.com/corpus-agent/corpus-agent/agent/ledger"
	"github.com/corpus-agent/corpus-agent/agent/report"
	"github.com/corpus-agent/corpus-agent/agent/turns"
	"github.com/corpus-agent/corpus-agent/artifact"
	"github.com/corpus-agent/corpus-agent/artifact/structsort"
	"github.com/corpus-agent/corpus-agent/state/diag"
)

// Run is the quarantine in one run of the agent. All of its exported fields have to be set.
type Run struct {
	Host   *inspect.Host
	ID     string
	Ledger *ledger.Ledger
	Record *report.Builder
	Turns  *turns.Run
	// Save writes the ledger.
	Save func() error

	// postponed is the postponed deploy of the ledger before Settle quarantined a release; nil if there was none
	postponed *ledger.Postponed
}

// Add quarantines a release after a run of a pair. run is the ID of that run.
func (r *Run) Add(pair ledger.Pair, release artifact.Release, run, reason string) {
	r.Ledger.Quarantine(ledger.Bad{Pair: pair, Release: &release, Reason: reason, Run: run, At: r.Host.Time().UTC()})
}

// Settle records the consequence of a fault in the ledger: the release is quarantined, or the deploy is postponed.
func (r *Run) Settle(pair ledger.Pair, f fault.Fault) {
	recorded := &report.Fault{Of: f.Of, Release: f.Release}
	switch {
	case f.Of == report.FaultOfHost:
		p := r.Ledger.Postpone(pair, firstLine(f.Cause), r.ID, r.Host.Time().UTC(), failure.Killed(f.Cause))
		recorded.Retry = &p.Next
		r.Record.Note("the host is at fault, and not the release: %s", nextTry(p))
	case f.Release != nil:
		r.postponed = r.Ledger.Postponed
		r.Add(pair, *f.Release, r.ID, firstLine(f.Cause))
	}
	r.Record.Complete(func(rep *report.Report) { rep.Fault = recorded })
}

// Release takes a release of this run out of quarantine, since the rollback has failed in the same way: the host is at
// fault. The failure counts together with those that postponed the deploy before, which Settle dropped.
func (r *Run) Release(pair ledger.Pair, cause error) error {
	r.Ledger.Bad = structsort.Without(r.Ledger.Bad, func(b ledger.Bad) bool { return b.Run == r.ID && b.Covers(pair) })
	if r.Ledger.Postponed == nil {
		r.Ledger.Postponed = r.postponed
	}
	r.Settle(pair, fault.Fault{Of: report.FaultOfHost, Cause: cause})
	return r.Save()
}

// firstLine returns the first line of an error.
func firstLine(err error) string {
	line, _, _ := strings.Cut(err.Error(), "\n")
	return line
}

// nextTry describes when a deploy that failed because of the host is retried.
func nextTry(p ledger.Postponed) string {
	if p.Next.Equal(p.At) {
		return "the next run tries it again"
	}
	return "it is tried again from " + diag.Stamp(p.Next) + " on; at once: " + p.AtOnce()
}

// NoteLeft adds to the reason in the quarantine of a pair that not all of its changes were undone.
func (r *Run) NoteLeft(pair ledger.Pair) {
	r.Ledger.Amend(pair, "not all that it changed was undone")
}

// Leave quarantines those releases of a pair that a rollback by hand has replaced.
func (r *Run) Leave(left ledger.Pair) {
	for _, release := range left.Releases() {
		if !r.Turns.Aborted(release) && (r.Ledger.Good == nil || !r.Ledger.Good.Has(release)) {
			r.Add(left, release, r.ID, ledger.ByHand)
		}
	}
	r.Ledger.Previous = nil
	r.Ledger.Previous = r.Host.LastKeptOf(r.Ledger)
}

// AddByHand quarantines those releases of a pair that are not part of the good pair, after a rollback by hand.
func (r *Run) AddByHand(pair ledger.Pair) {
	for _, release := range pair.Releases() {
		if !r.Ledger.Good.Has(release) {
			r.Add(pair, release, r.ID, ledger.ByHand)
		}
	}
}

// Replace replaces each quarantined release of a pair with the deployed release of its project, so that the other
// release is still updated. A host without base stays without base while its first base is in quarantine.
func (r *Run) Replace(pair *ledger.Pair) {
	good := r.Ledger.Runs()
	if good == nil {
		return
	}
	for _, release := range pair.Releases() {
		for _, b := range r.Ledger.Bad {
			if b.Is(release) {
				r.Record.Note("%s is %s", release, ledger.QuarantinedSince(b.Run, b.Reason))
				*pair = standIn(*pair, release, *good)
				break
			}
		}
	}
}

// standIn returns a pair with the deployed release in place of one of its releases.
func standIn(pair ledger.Pair, release artifact.Release, good ledger.Pair) ledger.Pair {
	if release.Project == artifact.Base && good.Base == nil {
		pair.Base = nil
		return pair
	}
	for _, runs := range good.Releases() {
		if runs.Project == release.Project {
			return pair.With(runs)
		}
	}
	return pair
}
