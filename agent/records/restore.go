package records

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"

	"github.com/corpus-agent/corpus-agent/agent/exit"
	"github.com/corpus-agent/corpus-agent/agent/ledger"
	"github.com/corpus-agent/corpus-agent/agent/link"
	"github.com/corpus-agent/corpus-agent/agent/report"
	"github.com/corpus-agent/corpus-agent/artifact"
	"github.com/corpus-agent/corpus-agent/artifact/walk"
)

// restoration describes where a ledger was restored from, and what it has or lacks besides the deployed pair.
type restoration struct{ way, rest string }

// restored returns the ledger from its copy, or else rebuilt from reports and links; from describes which.
func (rs *Records) restored() (book *ledger.Ledger, from restoration, err error) {
	book, err = ledger.Load(rs.ledgerCopy())
	if err == nil && known(book) {
		return book, restoration{way: "restored from its copy"}, nil
	}
	from.way = "rebuilt from links and reports"
	if err != nil {
		from.way += ", since its copy could not be read"
	}
	reports, err := rs.Reports().All()
	if err != nil {
		return nil, from, err
	}
	book, unusable, err := rs.rebuild(reports)
	if err != nil {
		return nil, from, err
	}
	from.rest = rs.quarantineAgain(book, reports) + unusable
	return book, from, nil
}

// quarantineAgain adds the quarantine of the last report to a rebuilt ledger, and returns a note about it. Reports do
// not record holds. Reports of older agents, which recorded no quarantine, are skipped.
func (rs *Records) quarantineAgain(book *ledger.Ledger, reports []*report.Report) string {
	for _, r := range slices.Backward(reports) {
		if !rs.Concerns(r) || !r.Proves {
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

// rebuild creates a ledger from the reports and the links: the deployed pair is one that a run deployed successfully
// and to which the links still lead. If no report has one, it is the pair that the links lead to. unusable describes
// the files that could not be used.
func (rs *Records) rebuild(reports []*report.Report) (book *ledger.Ledger, unusable string, err error) {
	book = rs.byReports(reports)
	unusable, err = rs.recallWho(book)
	if err == nil && book.Good == nil { // base alone converged only where no service is found
		err = rs.byLinks(book, reports)
	}
	return book, unusable, err
}

// byReports creates a ledger from the reports and the links.
func (rs *Records) byReports(reports []*report.Report) *ledger.Ledger {
	book := &ledger.Ledger{}
	for _, r := range slices.Backward(reports) {
		if !rs.Concerns(r) {
			continue
		}
		if book.Host == (ledger.Host{}) {
			book.Host = ledger.Host{Service: r.Service, Instance: r.Instance}
			if r.Remembered != nil {
				book.Host = *r.Remembered
			}
		}
		if r.BaseAlone != nil && book.Alone == nil && rs.named(*r.BaseAlone) {
			book.Alone = r.BaseAlone
		}
		ran := r.Left // and not the requested pair, which may be held or quarantined
		if ran == nil && !r.Proves && r.Exit == exit.OK {
			ran = r.To // reports of older agents
		}
		if ran == nil || !rs.named(*ran) {
			continue
		}
		if book.Good != nil && !book.Good.Same(*ran) {
			break // it ran before the deployed pair
		}
		since := r.Ended
		book.Alone = nil
		book.Good, book.Since, book.History = ran, &since, []ledger.Pair{*ran}
		// not a pair that a rollback by hand left
		if r.From != nil && !r.From.Same(*ran) && (r.Leaves == nil || !r.Leaves.Same(*r.From)) {
			book.Previous = r.From
			book.History = []ledger.Pair{*r.From, *ran}
			return book
		}
	}
	return book
}

// byLinks sets the deployed pair to the releases that the links lead to, as far as their names tell: a name has only
// the start of a digest. That is enough to converge the release, and the next contact with the store completes it. If
// the links lead to no release of a service, base converged alone.
func (rs *Records) byLinks(book *ledger.Ledger, reports []*report.Report) error {
	if err := rs.goodByLinks(book, reports); err != nil || book.Good != nil {
		book.Alone = nil
		return err
	}
	if rs.Alone != "" || book.Alone != nil {
		return nil
	}
	base, err := rs.ranLast(artifact.Base, reports)
	if base != nil {
		book.Alone = &ledger.Pair{Base: base}
	}
	return err
}

func (rs *Records) goodByLinks(book *ledger.Ledger, reports []*report.Report) error {
	service, err := rs.serviceByDisk(book, reports)
	if err != nil || service == "" || service == artifact.Base {
		return err // base is not a service: no deploy makes a pair of base and base
	}
	good, err := rs.pairOnDisk(service, reports)
	if err != nil || good == nil {
		return err
	}
	book.Good = good
	book.History = []ledger.Pair{*book.Good}
	previous, err := rs.linkedRelease(service, func(s link.Set) string { return s.Previous })
	if previous != nil && !good.Has(*previous) {
		book.Previous = &ledger.Pair{Base: good.Base, Service: *previous}
		book.History = []ledger.Pair{*book.Previous, *good}
	}
	return err
}

// IgnoreNoLink drops the error of a name that does not exist, or is not a link.
func IgnoreNoLink(err error) error {
	if walk.Nowhere(err) || errors.Is(err, syscall.EINVAL) {
		return nil
	}
	return err
}

// pairOnDisk returns the pair of a service that ran last. It returns nil if there was a base to which no link leads any
// more, since the service never ran without it.
func (rs *Records) pairOnDisk(service string, reports []*report.Report) (*ledger.Pair, error) {
	release, err := rs.ranLast(service, reports)
	if release == nil || err != nil {
		return nil, err
	}
	if rs.Alone != "" {
		return &ledger.Pair{Service: *release}, nil
	}
	base, err := rs.ranLast(artifact.Base, reports)
	if err != nil || base == nil && rs.lostBase() {
		return nil, err
	}
	return &ledger.Pair{Base: base, Service: *release}, nil
}

// lostBase reports whether there was a base, and no link leads to a release of it.
func (rs *Records) lostBase() bool {
	links := link.Of(rs.LayoutOf(artifact.Base))
	now, err := links.Read()
	return err == nil && links.Named() && now.Current == "" && now.Next == ""
}

func (rs *Records) linkedRelease(project string, which func(link.Set) string) (*artifact.Release, error) {
	s, err := link.Of(rs.LayoutOf(project)).Read()
	if err = IgnoreNoLink(err); err != nil {
		return nil, err
	}
	return rs.releaseHeld(project, which(s))
}

// releaseHeld returns the release in a directory of a project, if it is on the disk; nil for another kind of release,
// such as a working tree.
func (rs *Records) releaseHeld(project, dir string) (*artifact.Release, error) {
	at := strings.LastIndex(dir, "-")
	if at < 1 {
		return nil, nil //nolint:nilnil // it names none
	}
	release := artifact.Release{Project: project, Version: dir[:at], Digest: artifact.PartOfDigest(dir[at+1:]),
		Format: artifact.TarZst}
	if release.Dir() != dir {
		return nil, nil //nolint:nilnil // another kind of release
	}
	if held, err := rs.Held().Holds(release); err != nil || !held {
		return nil, err
	}
	return &release, nil
}

// named reports whether `current` of each project of a pair leads to its release. If that link is missing, the release
// must be on the disk.
func (rs *Records) named(p ledger.Pair) bool {
	for _, release := range p.Releases() {
		s, err := link.Of(rs.LayoutOf(release.Project)).Read()
		switch {
		case IgnoreNoLink(err) != nil:
			return false
		case s.Current == "" && !rs.Held().Has(release):
			return false
		case s.Current != "" && s.Current != release.Dir():
			return false
		}
	}
	return true
}

// Concerns reports whether a report is about the host's service or, if rs is for one project alone, about that project.
func (rs *Records) Concerns(r *report.Report) bool {
	if rs.Alone != "" {
		return r.Service == rs.Alone
	}
	service, err := os.Readlink(rs.Layout.ServiceLink())
	return err != nil || r.Service == "" || r.Service == filepath.Base(service)
}
