package agent

import (
	"context"
	"errors"
	"path/filepath"

	"github.com/corpus-agent/corpus-agent/agent/fetch"
	"github.com/corpus-agent/corpus-agent/agent/layout"
	"github.com/corpus-agent/corpus-agent/agent/ledger"
	"github.com/corpus-agent/corpus-agent/agent/link"
	"github.com/corpus-agent/corpus-agent/agent/project"
	"github.com/corpus-agent/corpus-agent/agent/report"
	"github.com/corpus-agent/corpus-agent/artifact"
	"github.com/corpus-agent/corpus-agent/artifact/durable"
	"github.com/corpus-agent/corpus-agent/artifact/walk"
)

// prune removes what is kept no longer.
func (r *run) prune(ctx context.Context) error {
	errs := []error{r.Journal().Prune(r.Config.KeepReleases + r.Config.KeepFailed)}
	names := []string{artifact.Base, r.identity.Service}
	if r.Alone != "" {
		names = []string{r.Alone} // what base needs stands in the host's own ledger
	}
	for _, name := range names {
		project := r.LayoutOf(name)
		errs = append(errs,
			fetch.PruneReleases(ctx, project, r.Config.KeepReleases, r.Config.KeepFailed, fetch.Kept{
				Used: func(dir string) bool { return r.used(project, dir) },
				Good: func(dir string) bool { return r.ledger.WasGood(name, dir) },
			}),
			fetch.PruneArchives(ctx, project, r.Config.KeepFailed, r.Config.KeepArchives),
			fetch.PruneLists(r.Layout, project))
	}
	return errors.Join(errs...)
}

// keepFailed moves the releases at fault that nothing uses any more out of the way of the good ones, to be
// looked at. A release that was only deployed together with one stays: it is deployed next, and would be fetched
// again.
func (r *run) keepFailed(pair ledger.Pair) {
	for _, release := range pair.Releases() {
		project := r.LayoutOf(release.Project)
		found, err := walk.Named(project.Release(release.Dir()))
		if err != nil {
			r.record.Note("the failed release stays under releases: %v", err)
		}
		if !found || !r.failedBefore(release) || r.used(project, release.Dir()) {
			continue
		}
		dir := filepath.Join(project.Archives(), r.id)
		err = durable.MkdirAll(dir, 0o700)
		if err == nil {
			err = durable.Rename(project.Release(release.Dir()), filepath.Join(dir, layout.FailedTree))
		}
		if err != nil {
			r.record.Note("the failed release stays under releases: %v", err)
			continue
		}
		r.kept = append(r.kept, dir)
	}
}

// adoptFailed puts this run's report beside a failed release whose own run was interrupted before it
// had one.
func (r *run) adoptFailed(p layout.Project) error {
	trees, err := walk.Glob(filepath.Join(p.Archives(), "*", layout.FailedTree))
	for _, tree := range trees {
		dir := filepath.Dir(tree)
		beside, unread := report.Archive{Dir: dir}.IsBeside()
		err = errors.Join(err, unread)
		if !beside && unread == nil {
			r.record.Note("the run that left %s was interrupted; this report is put beside it", r.Layout.Inside(tree))
			r.kept = append(r.kept, dir)
		}
	}
	return err
}

// used reports whether a link or the ledger still needs a release's directory.
func (r *run) used(p layout.Project, dir string) bool {
	s, err := link.Of(p).Read()
	return err != nil || r.isUsed(p, dir, s)
}

// isUsed reports whether a set of links or the ledger needs a release's directory.
func (r *run) isUsed(p layout.Project, dir string, s link.Set) bool {
	if dir == s.Next || dir == s.Current || dir == s.Previous {
		return true
	}
	for _, pair := range []*ledger.Pair{r.ledger.Runs(), r.ledger.Previous} {
		if pair == nil {
			continue
		}
		for _, kept := range pair.Releases() {
			if kept.Project == p.Name && kept.Dir() == dir {
				return true
			}
		}
	}
	return false
}

// sweep removes what a killed run left behind; under the lock no other run writes.
func (r *run) sweep(ctx context.Context) error {
	state := r.Layout.State()
	dirs := []string{state, filepath.Join(state, "projects"), r.Layout.Incoming(), r.Layout.Reports(), r.Layout.Trust(),
		filepath.Join(r.Layout.Trust(), "projects"),
		r.Layout.Path("/srv"), r.Layout.Path(project.StatesDir), r.Layout.Path(project.PillarsDir)}
	if file := r.Config.Metrics; file != "" {
		dirs = append(dirs, r.Layout.Path(filepath.Dir(file)))
	}
	projects, err := r.ProjectDirs()
	errs := []error{err}
	dirs = append(dirs, r.Layout.Projects())
	for _, dir := range projects {
		p := r.LayoutOf(filepath.Base(dir))
		archives, err := walk.Glob(filepath.Join(p.Archives(), "*"))
		dirs = append(append(dirs, r.Layout.Trees(p.Name), p.Dir, p.Releases(), p.Archives()), archives...)
		errs = append(errs, err, r.adoptFailed(p))
	}
	for _, dir := range dirs {
		errs = append(errs, durable.Sweep(ctx, dir))
	}
	return errors.Join(errs...)
}
