package records

import (
	"fmt"

	"github.com/corpus-agent/corpus-agent/agent/ledger"
)

// newerCopy is the ledger's copy if it was saved more often than the ledger itself, as after the state directory was
// restored from an earlier snapshot: what was quarantined or held since is in the copy alone. nil is for a copy that is
// no newer, or that is another host's.
func (rs *Records) newerCopy(book *ledger.Ledger) *ledger.Ledger {
	other, err := ledger.Load(rs.ledgerCopy())
	if err != nil || !known(other) || other.Newer() || other.Saved <= book.Saved {
		return nil
	}
	if mine, theirs := book.As, other.As; mine != nil && theirs != nil &&
		(mine.Service != theirs.Service || mine.Instance != theirs.Instance || mine.Machine != theirs.Machine) {
		return nil
	}
	return other
}

// fromNewer is the note of a ledger that was replaced by its copy.
func (rs *Records) fromNewer(copied *ledger.Ledger) string {
	text := fmt.Sprintf(
		"the ledger %s was older than its copy %s, as after a restored snapshot; this host continues with the copy: %s, %d "+
			"in quarantine",
		rs.Layout.Inside(rs.LedgerPath()), rs.Layout.Inside(rs.ledgerCopy()), whatIsDeployed(copied), len(copied.Bad))
	if copied.Hold != nil {
		text += ", and held"
	}
	return text
}
