package records

import (
	"context"
	"os"
	"path/filepath"
	"slices"

	"github.com/corpus-agent/corpus-agent/agent/fetch"
	"github.com/corpus-agent/corpus-agent/agent/layout"
	"github.com/corpus-agent/corpus-agent/agent/ledger"
	"github.com/corpus-agent/corpus-agent/agent/link"
	"github.com/corpus-agent/corpus-agent/agent/report"
	"github.com/corpus-agent/corpus-agent/artifact"
	"github.com/corpus-agent/corpus-agent/artifact/walk"
	"github.com/corpus-agent/corpus-agent/grains"
)

// ranLast is the release of a project that ran last, by what is left on the disk: what `current` names, or else `next`, which
// is the same between runs, or else the newest directory that was unpacked from a verified artifact. A release that the last
// report has in quarantine does not count, and where that report says that nothing ran only links do; nil for none.
func (rs *Records) ranLast(project string, reports []*report.Report) (*artifact.Release, error) {
	p := rs.LayoutOf(project)
	links, err := link.Of(p).Read()
	if err = IgnoreNoLink(err); err != nil {
		return nil, err
	}
	condemned, nothingRan := rs.lastSays(reports)
	var listed []string
	if !nothingRan {
		if listed, err = rs.listed(p); err != nil {
			return nil, err
		}
	}
	for _, dir := range append([]string{links.Current, links.Next}, listed...) {
		release, err := rs.releaseHeld(project, dir)
		if err != nil {
			return nil, err
		}
		if release != nil && (dir == links.Current || !slices.Contains(condemned, project+" "+dir)) {
			return release, nil
		}
	}
	return nil, nil //nolint:nilnil // nothing of it is on the disk
}

// listed are the directories of a project's releases of which this host has a list, the newest first.
func (rs *Records) listed(p layout.Project) (dirs []string, err error) {
	all, err := fetch.NewestFirst(p.Releases())
	if err = IgnoreNoLink(err); err != nil {
		return nil, err
	}
	for _, dir := range all {
		found, err := walk.Exists(rs.Layout.Tree(p.Name, dir))
		if err = IgnoreNoLink(err); err != nil {
			return nil, err
		}
		if found {
			dirs = append(dirs, dir)
		}
	}
	return dirs, nil
}

// lastSays is what the last report says of this host: the directories of releases that are in quarantine, with their
// projects, and whether nothing was deployed.
func (rs *Records) lastSays(reports []*report.Report) (condemned []string, nothingRan bool) {
	for _, r := range slices.Backward(reports) {
		if !rs.Concerns(r) || !r.Proves {
			continue
		}
		for _, q := range r.Quarantined {
			condemned = append(condemned, q.Release.Project+" "+q.Release.Dir())
		}
		return condemned, r.Left == nil && r.BaseAlone == nil
	}
	return nil, false
}

// serviceByDisk is the service of a host that has lost its ledger: what /srv/service names, what the newest report was about,
// what the host is called, or else the only project that has releases here; "" where none of these tells.
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
	return rs.onlyProject()
}

// onlyProject is the only project, beside base and those that are deployed on their own, that has releases on this host.
func (rs *Records) onlyProject() (only string, err error) {
	dirs, err := rs.ProjectDirs()
	if err != nil {
		return "", err
	}
	for _, dir := range dirs {
		p := rs.LayoutOf(filepath.Base(dir))
		releases, err := rs.listed(p)
		if err != nil {
			return "", err
		}
		alone, err := rs.hasOwnLedger(p.Name)
		switch {
		case err != nil:
			return "", err
		case alone || len(releases) == 0 || p.Name == artifact.Base:
		case only != "":
			return "", nil // there are several
		default:
			only = p.Name
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
