package quarantine

import (
	"slices"
	"strings"

	"github.com/corpus-agent/corpus-agent/agent/ledger"
	"github.com/corpus-agent/corpus-agent/agent/report"
	"github.com/corpus-agent/corpus-agent/artifact"
)

// Has reports whether a release of a pair is in quarantine.
func (r *Run) Has(pair ledger.Pair) bool {
	_, bad := r.Ledger.IsBad(pair)
	return bad
}

// List returns the quarantined releases, for the report.
func (r *Run) List() []report.Quarantined {
	var all []report.Quarantined
	for _, b := range r.Ledger.Bad {
		if b.Release != nil {
			all = append(all, report.Quarantined{Release: *b.Release, Reason: r.Record.Show(strings.TrimSpace(b.Reason)),
				Run: b.Run})
		}
	}
	return all
}

// FailedBefore reports whether a release is in quarantine because it failed, and not because of a rollback by hand.
func (r *Run) FailedBefore(release artifact.Release) bool {
	return slices.ContainsFunc(r.Ledger.Bad, func(b ledger.Bad) bool { return b.Is(release) && !byHand(b) })
}

// byHand reports whether a release is in quarantine because of a rollback by hand.
func byHand(b ledger.Bad) bool { return strings.HasPrefix(b.Reason, ledger.ByHand) }

// Show notes which releases a rollback by hand from a pair to another would quarantine.
func (r *Run) Show(left, target ledger.Pair) {
	for _, release := range left.Releases() {
		if !target.Has(release) {
			r.Record.Note("would quarantine %s", release)
		}
	}
}
