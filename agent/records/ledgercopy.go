package records

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"

	"github.com/corpus-agent/corpus-agent/agent/ledger"
	"github.com/corpus-agent/corpus-agent/agent/site"
	"github.com/corpus-agent/corpus-agent/artifact/durable"
	"github.com/corpus-agent/corpus-agent/artifact/walk"
	"github.com/corpus-agent/corpus-agent/state/diag"
)

// ledgerCopy returns the path of the ledger's copy.
func (rs *Records) ledgerCopy() string {
	if rs.Alone != "" {
		return rs.Layout.ProjectLedgerCopy(rs.Alone)
	}
	return rs.Layout.LedgerCopy()
}

// SaveLedger writes the ledger and its copy. It writes the copy first: the ledger describes what is about to happen,
// and an older copy would lack a deploy that is in progress. uncopied is the reason why there is no copy, such
// as a full disk. A missing copy does not stop a run; the outdated copy is removed.
func (rs *Records) SaveLedger(book *ledger.Ledger) (uncopied string, err error) {
	book.Saved++
	err = rs.carryOutRequests(book, func() error {
		if err := rs.saveCopy(book); err != nil {
			uncopied = rs.removeOldCopy(err)
		}
		if err := rs.saveWho(book); err != nil && uncopied == "" {
			uncopied = fmt.Sprintf("the identity of this host was not saved beside its releases: %v", err)
		}
		return book.Save(rs.LedgerPath())
	})
	return uncopied, err
}

// saveRestored writes a restored ledger, and returns it with the notes about the loss.
func (rs *Records) saveRestored(book *ledger.Ledger, note string) (*ledger.Ledger, []string, error) {
	lost := []string{note}
	uncopied, err := rs.SaveLedger(book)
	if uncopied != "" {
		lost = append(lost, uncopied)
	}
	return book, lost, err
}

// removeOldCopy removes an outdated copy that could not be replaced, and returns a note about it.
func (rs *Records) removeOldCopy(cause error) string {
	text := fmt.Sprintf("the ledger has no copy: %v", cause)
	if hint := diag.HintOf(site.ExplainDisk(cause)); hint != "" {
		text += "; " + hint
	}
	if err := durable.Remove(rs.ledgerCopy()); err != nil {
		text += fmt.Sprintf("; the previous copy could not be removed: %v", err)
	}
	return text
}

// saveCopy writes the copy if the directory of projects exists.
func (rs *Records) saveCopy(book *ledger.Ledger) error {
	if found, err := walk.Exists(rs.Layout.Projects()); err != nil || !found {
		return err
	}
	return book.Save(rs.ledgerCopy())
}

// refreshCopy writes the copy of the ledger again if it differs. It returns a note if the copy was lost.
func (rs *Records) refreshCopy(book *ledger.Ledger) []string {
	want, err := book.Content()
	if err != nil {
		return nil
	}
	have, err := walk.ReadFile(rs.ledgerCopy())
	if err == nil && bytes.Equal(have, want) {
		return nil
	}
	unreadable := err != nil && !errors.Is(err, fs.ErrNotExist)
	if _, err := ledger.Load(rs.ledgerCopy()); err != nil {
		unreadable = true
	}
	if err := rs.saveCopy(book); err != nil {
		return []string{rs.removeOldCopy(err)}
	}
	if unreadable {
		return []string{fmt.Sprintf("the ledger's copy %s could not be read and was written again",
			rs.Layout.Inside(rs.ledgerCopy()))}
	}
	return nil
}
