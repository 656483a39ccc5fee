package records

import (
	"context"
	"os"
	"path/filepath"
	"slices"

	"github.com/corpus-agent/corpus-agent/agent/ledger"
	"github.com/corpus-agent/corpus-agent/agent/link"
	"github.com/corpus-agent/corpus-agent/agent/report"
	"github.com/corpus-agent/corpus-agent/artifact"
	"github.com/corpus-agent/corpus-agent/artifact/walk"
	"github.com/corpus-agent/corpus-agent/grains"
)

// ranLast returns the release of a project that ran last, by its links: the target of `current` or, if that link was
// lost, the target of `next`; nil if there is none. Releases on the disk, and their lists, are no evidence: a dry run
// and a fetch leave them as well.
func (rs *Records) ranLast(project string, reports []*report.Report) (*artifact.Release, error) {
	links := link.Of(rs.LayoutOf(project))
	now, err := links.Read()
	if err = IgnoreNoLink(err); err != nil {
		return nil, err
	}
	release, err := rs.releaseHeld(project, now.Current)
	if release != nil || err != nil || !lostCurrent(links, now) || rs.lastReportQuarantined(project, now.Next, reports) {
		return release, err
	}
	return rs.releaseHeld(project, now.Next)
}

// lostCurrent reports whether a project had a `current` that leads nowhere now. After a failed first deploy there is
// only `next`, which leads to the failed release; the link `project`, by which procedures know `current`, is removed
// together with `current`.
func lostCurrent(links link.Links, now link.Set) bool {
	return now.Current != "" || now.Previous != "" || links.Named()
}

// lastReportQuarantined reports whether the release in dir is in quarantine according to the last report.
func (rs *Records) lastReportQuarantined(project, dir string, reports []*report.Report) bool {
	for _, r := range slices.Backward(reports) {
		if rs.Concerns(r) && r.Proves {
			return slices.ContainsFunc(r.Quarantined, func(q report.Quarantined) bool {
				return q.Release.Project == project && q.Release.Dir() == dir
			})
		}
	}
	return false
}

// serviceByDisk returns the service of a host that has lost its ledger: the target of /srv/service, the service of the
// newest report, the service that the hostname means, or else the only project whose links lead to a release. It
// returns "" if none of these is known.
func (rs *Records) serviceByDisk(book *ledger.Ledger, reports []*report.Report) (string, error) {
	if rs.Alone != "" {
		return rs.Alone, nil
	}
	target, err := os.Readlink(rs.Layout.ServiceLink())
	if err == nil {
		return filepath.Base(target), nil
	}
	if err := IgnoreNoLink(err); err != nil {
		return "", err
	}
	for _, r := range slices.Backward(reports) {
		if r.Service != "" {
			return r.Service, nil
		}
	}
	if book.As != nil {
		return book.As.Service, nil
	}
	offline := *rs
	offline.Cloud, offline.OnCloud, offline.Config.Metadata = nil, false, false
	if id, err := offline.Identify(context.Background(), grains.Identity{}, book.Host); err == nil {
		alone, err := rs.hasOwnLedger(id.Service)
		if alone || err != nil {
			return "", err
		}
		return id.Service, nil
	}
	return rs.onlyProject(reports)
}

// onlyProject returns the only project whose links lead to a release, besides base and projects that are deployed on
// their own. It returns "" if there are several or none.
func (rs *Records) onlyProject(reports []*report.Report) (only string, err error) {
	dirs, err := rs.ProjectDirs()
	if err != nil {
		return "", err
	}
	for _, dir := range dirs {
		name := filepath.Base(dir)
		release, err := rs.ranLast(name, reports)
		if err != nil {
			return "", err
		}
		alone, err := rs.hasOwnLedger(name)
		switch {
		case err != nil:
			return "", err
		case alone || release == nil || name == artifact.Base:
		case only != "":
			return "", nil // there are several
		default:
			only = name
		}
	}
	return only, nil
}

// hasOwnLedger reports whether a project is deployed on its own, and is not the host's service.
func (rs *Records) hasOwnLedger(project string) (bool, error) {
	for _, path := range []string{rs.Layout.ProjectLedger(project), rs.Layout.ProjectLedgerCopy(project)} {
		if found, err := walk.Named(path); found || err != nil {
			return found, err
		}
	}
	return false, nil
}
