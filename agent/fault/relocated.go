package fault

import (
	"path/filepath"

	"github.com/corpus-agent/corpus-agent/agent/failure"
	"github.com/corpus-agent/corpus-agent/agent/layout"
	"github.com/corpus-agent/corpus-agent/agent/ledger"
	"github.com/corpus-agent/corpus-agent/agent/link"
	"github.com/corpus-agent/corpus-agent/agent/report"
	"github.com/corpus-agent/corpus-agent/artifact"
	"github.com/corpus-agent/corpus-agent/state/redact"
)

// Relocated returns the cause of a fault with the paths that files have after a rollback, when the links lead to other
// releases: in the directories of releases, or in the archive of the failed release. It changes the report likewise.
func (r *Run) Relocated(pair ledger.Pair, f Fault, before map[string]link.Set) error {
	places := failure.Places{}
	service, base := r.Host.LinkedDirs(pair)
	if !pair.BaseAlone() {
		places[service] = r.keptIn(pair.Service, f, before)
	}
	if pair.Base != nil {
		places[base] = r.keptIn(*pair.Base, f, before)
	}
	r.Record.Complete(func(rep *report.Report) {
		redact.Each(&rep.Stages, places.Text)
		redact.Each(&rep.Steps, places.Text)
		redact.Each(&rep.Notes, places.Text)
	})
	return places.Error(f.Cause)
}

// keptIn returns the path on the host of the directory that has the files of a release after a rollback.
func (r *Run) keptIn(release artifact.Release, f Fault, before map[string]link.Set) string {
	project, dir := r.Host.LayoutOf(release.Project), release.Dir()
	links := before[release.Project]
	failed := f.Of == report.FaultOfRelease && f.Release != nil && f.Release.Project == release.Project &&
		f.Release.Dir() == dir
	if failed && !r.Retention.IsUsed(project, dir, links) {
		return r.Host.Layout.Inside(filepath.Join(project.Archives(), r.ID, layout.FailedTree))
	}
	return r.Host.Layout.Inside(project.Release(dir))
}
