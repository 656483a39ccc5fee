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

// ledgerCopy is the file of the ledger's copy.
func (rs *Records) ledgerCopy() string {
	if rs.Alone != "" {
		return rs.Layout.ProjectLedgerCopy(rs.Alone)
	}
	return rs.Layout.LedgerCopy()
}

// SaveLedger writes the ledger and its copy. The copy comes first: whatever is written is about to be true,
// and a copy from before it would not know of a deploy that is under way. uncopied is why there is no copy, as on a
// full disk: that alone stops no run, and the copy of before is removed.
func (rs *Records) SaveLedger(book *ledger.Ledger) (uncopied string, err error) {
	book.Saved++
	err = rs.carryOutRequests(book, func() error {
		if err := rs.saveCopy(book); err != nil {
			uncopied = rs.copyless(err)
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

// copyless removes a copy that could not be replaced and is out of date, and says so.
func (rs *Records) copyless(cause error) string {
	text := fmt.Sprintf("the ledger has no copy: %v", cause)
	if hint := diag.HintOf(site.ExplainDisk(cause)); hint != "" {
		text += "; " + hint
	}
	if err := durable.Remove(rs.ledgerCopy()); err != nil {
		text += fmt.Sprintf("; the one of before could not be removed: %v", err)
	}
	return text
}

// saveCopy writes the copy where there are projects.
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
		return []string{rs.copyless(err)}
	}
	if unreadable {
		return []string{fmt.Sprintf("the ledger's copy %s could not be read and was written again",
			rs.Layout.Inside(rs.ledgerCopy()))}
	}
	return nil
}
