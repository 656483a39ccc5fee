package records

import (
	"fmt"

	"github.com/corpus-agent/corpus-agent/agent/ledger"
)

// newerCopy returns the ledger's copy if it was saved more often than the ledger itself, such as after the state
// directory was restored from an earlier snapshot: only the copy has what was quarantined or held since. It returns nil
// if the copy is not newer, or belongs to another host.
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

// fromNewer returns the note about a ledger that was replaced by its copy.
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
