package linking

import (
	"os"

	"github.com/corpus-agent/corpus-agent/agent/layout"
	"github.com/corpus-agent/corpus-agent/agent/ledger"
	"github.com/corpus-agent/corpus-agent/agent/link"
	"github.com/corpus-agent/corpus-agent/artifact"
)

// Linked reports whether the links of a pair lead to it.
func (r *Run) Linked(p ledger.Pair) bool {
	for _, release := range p.Releases() {
		s, err := link.Of(r.Host.LayoutOf(release.Project)).Read()
		if err != nil || s.Current != release.Dir() || s.Next != release.Dir() || !r.Host.Held().Has(release) {
			return false
		}
	}
	return r.Host.Alone != "" || r.namesLead(p)
}

// Restored reports whether next and current of all projects are as Restore makes them.
func (r *Run) Restored(before map[string]link.Set) bool {
	for project, s := range before {
		want, _ := r.restorable(project, s)
		now, err := link.Of(r.Host.LayoutOf(project)).Read()
		if err != nil || now.Next != want.Next || now.Current != want.Current {
			return false
		}
	}
	return true
}

// namesLead reports whether /srv/base and /srv/service lead to the projects of a pair.
func (r *Run) namesLead(p ledger.Pair) bool {
	names := map[string]layout.Project{}
	if !p.BaseAlone() {
		names[r.Host.Layout.ServiceLink()] = r.Host.LayoutOf(p.Service.Project)
	}
	if p.Base != nil {
		names[r.Host.Layout.BaseLink()] = r.Host.LayoutOf(p.Base.Project)
	}
	for path, project := range names {
		if target, err := os.Readlink(path); err != nil || target != project.LinkTarget() {
			return false
		}
	}
	return true
}

// Complete reports whether all links are as a deploy of the pair left them. The link previous leads to the release that
// the ledger has as the previous one. If the ledger has none, it leads to a release on the disk, or does not exist.
func (r *Run) Complete(pair ledger.Pair) bool {
	if !r.Linked(pair) {
		return false
	}
	for _, release := range pair.Releases() {
		links := link.Of(r.Host.LayoutOf(release.Project))
		now, err := links.Read()
		if err != nil || !links.Named() {
			return false
		}
		before := r.PreviousDir(release)
		if _, gone := links.Reachable(now); len(gone) > 0 || before != "" && now.Previous != before {
			return false
		}
	}
	return true
}

// goodDir returns the name of the directory of a project's release in the deployed pair; "" if it is not on the disk.
func (r *Run) goodDir(project string) string {
	runs := r.Ledger.Runs()
	if runs == nil {
		return ""
	}
	for _, release := range runs.Releases() {
		if release.Project == project && r.Host.Held().Has(release) {
			return release.Dir()
		}
	}
	return ""
}

// PreviousDir returns the directory to which previous of a release's project leads by the ledger: see inspect.Host.
func (r *Run) PreviousDir(release artifact.Release) string {
	return r.Host.PreviousDir(r.Ledger.Previous, release)
}
