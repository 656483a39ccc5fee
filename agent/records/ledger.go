// Package records reads and writes the agent's own files on a host: the ledger with its copy, the registry of projects,
// a hold, the runs that the lock refused, and the lock itself. It restores lost files and renames damaged ones.
package records

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"
	"strings"

	"github.com/corpus-agent/corpus-agent/agent/exit"
	"github.com/corpus-agent/corpus-agent/agent/ledger"
	"github.com/corpus-agent/corpus-agent/agent/report"
	"github.com/corpus-agent/corpus-agent/agent/site"
	"github.com/corpus-agent/corpus-agent/artifact"
	"github.com/corpus-agent/corpus-agent/artifact/durable"
	"github.com/corpus-agent/corpus-agent/artifact/trust"
	"github.com/corpus-agent/corpus-agent/artifact/walk"
)

// Records reads and writes what the agent stores on one host.
type Records struct {
	site.Site

	// CheckedRoot is the root of trust whose signatures the repair of this run has verified; nil before the repair.
	CheckedRoot *trust.CheckedRoot
}

// LedgerPath returns the path of the ledger.
func (rs *Records) LedgerPath() string {
	if rs.Alone != "" {
		return rs.Layout.ProjectLedger(rs.Alone)
	}
	return rs.Layout.Ledger()
}

// OpenLedger reads the ledger for a run that holds the lock. A ledger that is lost, or cannot be read, is restored from
// its copy, or else from reports and links; lost then describes that. A requested hold is included.
func (rs *Records) OpenLedger() (book *ledger.Ledger, lost []string, err error) {
	book, lost, err = rs.savedBook()
	if err != nil {
		return nil, nil, err
	}
	_ = rs.Requested(book) // a request that cannot be read was set aside and reported
	return book, lost, nil
}

func (rs *Records) savedBook() (book *ledger.Ledger, lost []string, err error) {
	path := rs.LedgerPath()
	book, err = ledger.Load(path)
	switch {
	case err == nil && rs.hasLedger() && !book.Newer():
		if newer := rs.newerCopy(book); newer != nil {
			return rs.saveRestored(newer, rs.fromNewer(newer))
		}
		return book, rs.refreshCopy(book), nil
	case err == nil && !rs.hasLedger():
		return rs.restoreMissing()
	case err == nil:
		return rs.takeDown(book)
	}
	var corrupt *ledger.Corrupt
	if !errors.As(err, &corrupt) {
		return nil, nil, err
	}
	aside, err := rs.setLedgerAside(".corrupt-")
	if err != nil {
		return nil, nil, err
	}
	book, from, err := rs.restored()
	if err != nil {
		return nil, nil, err
	}
	note := fmt.Sprintf("the ledger could not be read (%v); it is kept as %s and was %s: %s%s",
		corrupt.Err, rs.Layout.Inside(aside), from.way, whatIsDeployed(book), from.rest)
	return rs.saveRestored(book, note)
}

// hasLedger reports whether the file of the ledger exists.
func (rs *Records) hasLedger() bool {
	_, err := os.Stat(rs.LedgerPath())
	return !errors.Is(err, fs.ErrNotExist)
}

// restoreMissing restores a ledger that does not exist. If nothing is found to restore it from, nothing was deployed,
// and it returns an empty ledger without a note.
func (rs *Records) restoreMissing() (*ledger.Ledger, []string, error) {
	book, from, err := rs.restored()
	if err != nil {
		return nil, nil, err
	}
	if !known(book) {
		return &ledger.Ledger{}, nil, nil
	}
	note := fmt.Sprintf("the ledger %s was gone and was %s: %s%s", rs.Layout.Inside(rs.LedgerPath()), from.way,
		whatIsDeployed(book), from.rest)
	return rs.saveRestored(book, note)
}

// known reports whether a ledger has any content.
func known(book *ledger.Ledger) bool {
	return book.Runs() != nil || book.Running != nil || book.Hold != nil || len(book.Bad) > 0 || book.As != nil
}

// takeDown continues with the ledger of a newer agent, from which the host was rolled back to this one. It keeps the
// file under another name, and keeps fields that this agent does not know.
func (rs *Records) takeDown(book *ledger.Ledger) (*ledger.Ledger, []string, error) {
	number := book.Version
	if book.Runs() == nil {
		if other, _, err := rs.restored(); err == nil && known(other) {
			book = other
		}
	}
	aside, err := rs.setLedgerAside(fmt.Sprintf(".version%d-", number))
	if err != nil {
		return nil, nil, err
	}
	note := fmt.Sprintf(
		"a newer agent wrote the ledger in its form %d; it is kept as %s, and this agent uses what it "+
			"understands of it: %s",
		number, rs.Layout.Inside(aside), whatIsDeployed(book))
	return rs.saveRestored(book, note)
}

// setLedgerAside renames the ledger and returns the new path.
func (rs *Records) setLedgerAside(mark string) (string, error) {
	path := rs.LedgerPath()
	aside := strings.TrimSuffix(path, ".json") + mark + report.NewID(rs.Time()) + ".json"
	if err := durable.Rename(path, aside); err != nil {
		return "", fmt.Errorf("keeping the ledger aside: %w", err)
	}
	return aside, nil
}

func whatIsDeployed(book *ledger.Ledger) string {
	switch {
	case book.Alone != nil:
		return "it says that " + book.Alone.String() + " converged alone"
	case book.Good == nil:
		return "nothing that is deployed was found"
	}
	return "it says that " + book.Good.String() + " is deployed"
}

// ReadLedger reads the ledger for a command that changes nothing.
func (rs *Records) ReadLedger() (*ledger.Ledger, error) {
	book, err := rs.readSaved()
	if err == nil {
		_ = rs.Requested(book) // a run reports a request that cannot be read
	}
	return book, err
}

func (rs *Records) readSaved() (*ledger.Ledger, error) {
	book, err := ledger.Load(rs.LedgerPath())
	var corrupt *ledger.Corrupt
	damaged := errors.As(err, &corrupt) || walk.Nowhere(err) // a run sets aside what is in its place
	if damaged || err == nil && book.Runs() == nil && (book.Newer() || !rs.hasLedger()) {
		if other, _, err := rs.restored(); err != nil || known(other) || damaged {
			return other, err
		}
	}
	if err == nil && rs.hasLedger() && !book.Newer() {
		if newer := rs.newerCopy(book); newer != nil {
			return newer, nil
		}
	}
	return book, err
}

// Damage returns why the file of the ledger, or of a request to hold this host, cannot be read, although ReadLedger may
// take what it says from elsewhere; nil if both can be read or do not exist.
func (rs *Records) Damage() error {
	path := rs.LedgerPath()
	book, err := ledger.Load(path)
	named, unseen := walk.Named(path)
	if err == nil && named && !rs.hasLedger() {
		err = &ledger.Corrupt{Path: path, Err: errors.New("it is a symbolic link that leads nowhere")}
	}
	if err != nil {
		book = &ledger.Ledger{}
	}
	return errors.Join(err, unseen, rs.Requested(book))
}

// ReadHostLedger reads the host's own ledger, even if rs is for another project.
func (rs *Records) ReadHostLedger() (*ledger.Ledger, error) {
	host := *rs
	host.Alone = ""
	return host.ReadLedger()
}

// Recall returns the ledger. If test is false, it first repairs the agent's files, and lost describes what was missing
// or damaged. It returns an error if another user can change the state directory.
func (rs *Records) Recall(test bool) (book *ledger.Ledger, lost []string, err error) {
	if test {
		if err := rs.checkState(); err != nil {
			return nil, nil, err
		}
		book, err = rs.ReadLedger()
		return book, nil, err
	}
	if lost, err = rs.repair(); err != nil {
		return nil, nil, err
	}
	book, more, err := rs.OpenLedger()
	if err == nil && book.Good != nil && !rs.Reports().Any() {
		more = append(more, "the reports of earlier runs are gone")
	}
	return book, append(lost, more...), err
}

// ProjectsIn returns the projects that the ledger names.
func ProjectsIn(book *ledger.Ledger) []string {
	names := []string{artifact.Base}
	for _, pair := range []*ledger.Pair{book.Good, book.Previous} {
		if pair != nil {
			names = append(names, pair.Service.Project)
		}
	}
	if book.Running != nil && !book.Running.Pair.BaseAlone() {
		names = append(names, book.Running.Pair.Service.Project)
	}
	slices.Sort(names)
	return slices.Compact(names)
}

// Edit changes the ledger under the lock.
func (rs *Records) Edit(command string, change func(*ledger.Ledger) error) error {
	held, err := rs.exclusive(command)
	if err != nil {
		return err
	}
	defer func() { _ = held.Release() }()
	book, _, err := rs.OpenLedger()
	if err != nil {
		return exit.WithCode(exit.Usage, err)
	}
	if err := change(book); err != nil {
		return err
	}
	_, err = rs.SaveLedger(book) // the next run notes that there is no copy
	return err
}
