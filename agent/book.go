package agent

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"

	"github.com/corpus-agent/corpus-agent/agent/exit"
	"github.com/corpus-agent/corpus-agent/agent/ledger"
	"github.com/corpus-agent/corpus-agent/agent/link"
	"github.com/corpus-agent/corpus-agent/agent/report"
	"github.com/corpus-agent/corpus-agent/agent/site"
	"github.com/corpus-agent/corpus-agent/artifact"
	"github.com/corpus-agent/corpus-agent/artifact/durable"
	"github.com/corpus-agent/corpus-agent/artifact/walk"
	"github.com/corpus-agent/corpus-agent/state/diag"
)

// book reads the ledger for a run that holds the lock. One that is lost, or cannot be read, is restored
// from its copy, or else from reports and links; lost says so. A hold that was asked for is in it.
func (a *Agent) book() (book *ledger.Ledger, lost []string, err error) {
	book, lost, err = a.savedBook()
	if err != nil {
		return nil, nil, err
	}
	_ = a.requested(book) // one that cannot be read was set aside, and reported
	return book, lost, nil
}

func (a *Agent) savedBook() (book *ledger.Ledger, lost []string, err error) {
	path := a.ledgerPath()
	book, err = ledger.Load(path)
	switch {
	case err == nil && a.hasLedger() && !book.Newer():
		return book, a.refreshCopy(book), nil
	case err == nil && !a.hasLedger():
		return a.restoreMissing()
	case err == nil:
		return a.takeDown(book)
	}
	var corrupt *ledger.Corrupt
	if !errors.As(err, &corrupt) {
		return nil, nil, err
	}
	aside, err := a.setLedgerAside(".corrupt-")
	if err != nil {
		return nil, nil, err
	}
	book, from, err := a.restored()
	if err != nil {
		return nil, nil, err
	}
	note := fmt.Sprintf("the ledger could not be read (%v); it is kept as %s and was %s: %s%s",
		corrupt.Err, a.Layout.Inside(aside), from.way, whatIsDeployed(book), from.rest)
	return a.saveRestored(book, note)
}

// hasLedger reports whether there is a file.
func (a *Agent) hasLedger() bool {
	_, err := os.Stat(a.ledgerPath())
	return !errors.Is(err, fs.ErrNotExist)
}

// restoreMissing is book for a ledger that is not there. On a host on which nothing was deployed that is
// how it should be.
func (a *Agent) restoreMissing() (*ledger.Ledger, []string, error) {
	book, from, err := a.restored()
	if err != nil {
		return nil, nil, err
	}
	if !known(book) {
		return &ledger.Ledger{}, nil, nil
	}
	note := fmt.Sprintf("the ledger %s was gone and was %s: %s%s", a.Layout.Inside(a.ledgerPath()), from.way, whatIsDeployed(book), from.rest)
	return a.saveRestored(book, note)
}

// known reports whether a ledger says anything.
func known(book *ledger.Ledger) bool {
	return book.Runs() != nil || book.Running != nil || book.Hold != nil || len(book.Bad) > 0
}

// takeDown goes on with the ledger of a newer agent, which this one was rolled back from. The file is
// kept, and what this agent does not know is carried along.
func (a *Agent) takeDown(book *ledger.Ledger) (*ledger.Ledger, []string, error) {
	number := book.Version
	if book.Runs() == nil {
		if other, _, err := a.restored(); err == nil && known(other) {
			book = other
		}
	}
	aside, err := a.setLedgerAside(fmt.Sprintf(".version%d-", number))
	if err != nil {
		return nil, nil, err
	}
	note := fmt.Sprintf("a newer agent wrote the ledger in its form %d; it is kept as %s, and this agent goes on with what it understands of it: %s",
		number, a.Layout.Inside(aside), whatIsDeployed(book))
	return a.saveRestored(book, note)
}

// setLedgerAside gives the ledger another name.
func (a *Agent) setLedgerAside(mark string) (string, error) {
	path := a.ledgerPath()
	aside := strings.TrimSuffix(path, ".json") + mark + report.NewID(a.Time()) + ".json"
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

// ledgerCopy is the file of the ledger's copy.
func (a *Agent) ledgerCopy() string {
	if a.Alone != "" {
		return a.Layout.ProjectLedgerCopy(a.Alone)
	}
	return a.Layout.LedgerCopy()
}

// saveBook writes the ledger and its copy. The copy comes first: whatever is written is about to be true,
// and a copy from before it would not know of a deploy that is under way. uncopied is why there is no copy, as on a full
// disk: that alone stops no run, and the copy of before is removed.
func (a *Agent) saveBook(book *ledger.Ledger) (uncopied string, err error) {
	err = a.carryOutRequests(book, func() error {
		if err := a.saveCopy(book); err != nil {
			uncopied = a.copyless(err)
		}
		return book.Save(a.ledgerPath())
	})
	return uncopied, err
}

// saveRestored writes a ledger that was lost, and returns it with what is to be said about that.
func (a *Agent) saveRestored(book *ledger.Ledger, note string) (*ledger.Ledger, []string, error) {
	lost := []string{note}
	uncopied, err := a.saveBook(book)
	if uncopied != "" {
		lost = append(lost, uncopied)
	}
	return book, lost, err
}

// copyless removes a copy that could not be replaced and is out of date, and says so.
func (a *Agent) copyless(cause error) string {
	text := fmt.Sprintf("the ledger has no copy: %v", cause)
	if hint := diag.HintOf(site.ExplainDisk(cause)); hint != "" {
		text += "; " + hint
	}
	if err := durable.Remove(a.ledgerCopy()); err != nil {
		text += fmt.Sprintf("; the one of before could not be removed: %v", err)
	}
	return text
}

// saveCopy writes the copy where there are projects.
func (a *Agent) saveCopy(book *ledger.Ledger) error {
	if found, err := walk.Exists(a.Layout.Projects()); err != nil || !found {
		return err
	}
	return book.Save(a.ledgerCopy())
}

// refreshCopy writes the copy again where it is not what the ledger is. A copy that was lost says so.
func (a *Agent) refreshCopy(book *ledger.Ledger) []string {
	want, err := book.Content()
	if err != nil {
		return nil
	}
	have, err := walk.ReadFile(a.ledgerCopy())
	if err == nil && bytes.Equal(have, want) {
		return nil
	}
	unreadable := err != nil && !errors.Is(err, fs.ErrNotExist)
	if _, err := ledger.Load(a.ledgerCopy()); err != nil {
		unreadable = true
	}
	if err := a.saveCopy(book); err != nil {
		return []string{a.copyless(err)}
	}
	if unreadable {
		return []string{fmt.Sprintf("the ledger's copy %s could not be read and was written again", a.Layout.Inside(a.ledgerCopy()))}
	}
	return nil
}

// readBook reads the ledger for a command that changes nothing.
func (a *Agent) readBook() (*ledger.Ledger, error) {
	book, err := a.readSaved()
	if err == nil {
		_ = a.requested(book) // one that cannot be read is reported by a run
	}
	return book, err
}

func (a *Agent) readSaved() (*ledger.Ledger, error) {
	book, err := ledger.Load(a.ledgerPath())
	var corrupt *ledger.Corrupt
	if errors.As(err, &corrupt) || err == nil && book.Runs() == nil && (book.Newer() || !a.hasLedger()) {
		if other, _, err := a.restored(); err != nil || known(other) || corrupt != nil {
			return other, err
		}
	}
	return book, err
}

// restoration says where a ledger was restored from, and what else than the deployed pair it has or has not.
type restoration struct{ way, rest string }

// restored is the ledger as its copy has it, or as it follows from reports and links; from says which.
func (a *Agent) restored() (book *ledger.Ledger, from restoration, err error) {
	book, err = ledger.Load(a.ledgerCopy())
	if err == nil && known(book) {
		return book, restoration{way: "restored from its copy"}, nil
	}
	from.way = "rebuilt from links and reports"
	if err != nil {
		from.way += ", since its copy could not be read"
	}
	reports, err := a.Reports().All()
	if err != nil {
		return nil, from, err
	}
	if book, err = a.rebuild(reports); err != nil {
		return nil, from, err
	}
	from.rest = a.quarantineAgain(book, reports)
	return book, from, nil
}

// quarantineAgain puts into a rebuilt ledger the quarantine that the last report has, and says what became of it. No
// report has a hold. The report of an agent that wrote no quarantine proves nothing.
func (a *Agent) quarantineAgain(book *ledger.Ledger, reports []*report.Report) string {
	for _, r := range slices.Backward(reports) {
		if !a.concerns(r) || !r.Proves {
			continue
		}
		for _, q := range r.Quarantined {
			pair := ledger.Pair{Service: q.Release}
			if book.Good != nil {
				pair = book.Good.With(q.Release)
			}
			book.Quarantine(ledger.Bad{Pair: pair, Release: &q.Release, Reason: q.Reason, Run: q.Run, At: r.Ended})
		}
		return fmt.Sprintf("; its quarantine (%d) is as of run %s, and a hold is lost", len(book.Bad), r.ID)
	}
	return "; which releases are quarantined, and a hold, is lost: a release that failed before may be deployed once more"
}

// rebuild makes a ledger of the reports and the links: a pair that a run made good, and that the
// links still name, is what is deployed. Where no report says so, it is what the links name.
func (a *Agent) rebuild(reports []*report.Report) (*ledger.Ledger, error) {
	book := &ledger.Ledger{}
	for _, r := range slices.Backward(reports) {
		if !a.concerns(r) {
			continue
		}
		if book.Host == (ledger.Host{}) {
			book.Host = ledger.Host{Service: r.Service, Instance: r.Instance}
			if r.Remembered != nil {
				book.Host = *r.Remembered
			}
		}
		if r.BaseAlone != nil && book.Alone == nil && a.named(*r.BaseAlone) {
			book.Alone = r.BaseAlone
		}
		ran := r.Left // and not what the run was asked for, which may be held or quarantined
		if ran == nil && r.Exit == exit.OK {
			ran = r.To // reports of older agents
		}
		if ran == nil || !a.named(*ran) {
			continue
		}
		if book.Good != nil && !book.Good.Same(*ran) {
			break // what ran before it
		}
		since := r.Ended
		book.Alone = nil
		book.Good, book.Since, book.History = ran, &since, []ledger.Pair{*ran}
		if r.From != nil && !r.From.Same(*ran) {
			book.Previous = r.From
			book.History = []ledger.Pair{*r.From, *ran}
			return book, nil
		}
	}
	if book.Good == nil { // base alone converged only where no service is found
		return book, a.byLinks(book, reports)
	}
	return book, nil
}

// byLinks takes over what the links name, as far as names tell: the digest of a release is known by its
// start alone. That is enough to converge the release, and the next look at the store completes it. Where they name no
// release of a service, base converged alone.
func (a *Agent) byLinks(book *ledger.Ledger, reports []*report.Report) error {
	if err := a.goodByLinks(book, reports); err != nil || book.Good != nil {
		book.Alone = nil
		return err
	}
	if a.Alone != "" || book.Alone != nil {
		return nil
	}
	base, err := a.ranLast(artifact.Base, reports)
	if base != nil {
		book.Alone = &ledger.Pair{Base: base}
	}
	return err
}

func (a *Agent) goodByLinks(book *ledger.Ledger, reports []*report.Report) error {
	service, err := a.serviceByDisk(book, reports)
	if err != nil || service == "" || service == artifact.Base {
		return err // base is no service: a pair of base and base would be one that no deploy made
	}
	good, err := a.pairOnDisk(service, reports)
	if err != nil || good == nil {
		return err
	}
	book.Good = good
	book.History = []ledger.Pair{*book.Good}
	previous, err := a.linkedRelease(service, func(s link.Set) string { return s.Previous })
	if previous != nil && !good.Has(*previous) {
		book.Previous = &ledger.Pair{Base: good.Base, Service: *previous}
		book.History = []ledger.Pair{*book.Previous, *good}
	}
	return err
}

// elsewhere drops the error of a name that is not there, or is no link.
func elsewhere(err error) error {
	if walk.Nowhere(err) || errors.Is(err, syscall.EINVAL) {
		return nil
	}
	return err
}

// pairOnDisk is the pair of a service that ran last.
func (a *Agent) pairOnDisk(service string, reports []*report.Report) (*ledger.Pair, error) {
	release, err := a.ranLast(service, reports)
	if release == nil {
		return nil, err
	}
	pair := &ledger.Pair{Service: *release}
	if a.Alone == "" {
		pair.Base, err = a.ranLast(artifact.Base, reports)
	}
	return pair, err
}

func (a *Agent) linkedRelease(project string, which func(link.Set) string) (*artifact.Release, error) {
	s, err := link.Of(a.LayoutOf(project)).Read()
	if err = elsewhere(err); err != nil {
		return nil, err
	}
	return a.releaseHeld(project, which(s))
}

// releaseHeld is the release in a directory of a project, if it is there; nil for another kind of release, such as a
// working tree.
func (a *Agent) releaseHeld(project, dir string) (*artifact.Release, error) {
	at := strings.LastIndex(dir, "-")
	if at < 1 {
		return nil, nil //nolint:nilnil // it names none
	}
	release := artifact.Release{Project: project, Version: dir[:at], Digest: artifact.PartOfDigest(dir[at+1:]), Format: artifact.TarZst}
	if release.Dir() != dir {
		return nil, nil //nolint:nilnil // another kind of release
	}
	if held, err := a.Held().Holds(release); err != nil || !held {
		return nil, err
	}
	return &release, nil
}

// named reports whether a pair is what `current` of both projects names. Where that link is gone itself, a pair counts
// that is still on the disk.
func (a *Agent) named(p ledger.Pair) bool {
	for _, release := range p.Releases() {
		s, err := link.Of(a.LayoutOf(release.Project)).Read()
		switch {
		case elsewhere(err) != nil:
			return false
		case s.Current == "" && !a.Held().Has(release):
			return false
		case s.Current != "" && s.Current != release.Dir():
			return false
		}
	}
	return true
}

// concerns reports whether a report is about what this agent is for, and not about another project
// of the host.
func (a *Agent) concerns(r *report.Report) bool {
	if a.Alone != "" {
		return r.Service == a.Alone
	}
	service, err := os.Readlink(a.Layout.ServiceLink())
	return err != nil || r.Service == "" || r.Service == filepath.Base(service)
}

// hostBook reads the host's own ledger, whatever this agent is for.
func (a *Agent) hostBook() (*ledger.Ledger, error) {
	host := *a
	host.Alone = ""
	return host.readBook()
}
