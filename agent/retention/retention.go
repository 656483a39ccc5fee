// Package retention removes releases, archives and temporary files that a run no longer needs, and moves failed
// releases into archives.
package retention

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"

	"github.com/corpus-agent/corpus-agent/agent/fetch"
	"github.com/corpus-agent/corpus-agent/agent/inspect"
	"github.com/corpus-agent/corpus-agent/agent/layout"
	"github.com/corpus-agent/corpus-agent/agent/ledger"
	"github.com/corpus-agent/corpus-agent/agent/link"
	"github.com/corpus-agent/corpus-agent/agent/project"
	"github.com/corpus-agent/corpus-agent/agent/report"
	"github.com/corpus-agent/corpus-agent/artifact"
	"github.com/corpus-agent/corpus-agent/artifact/durable"
	"github.com/corpus-agent/corpus-agent/artifact/walk"
	"github.com/corpus-agent/corpus-agent/grains"
)

// Run is the part of one run of the agent that removes and archives releases. Its exported fields but Archives have
// to be set.
type Run struct {
	Host     *inspect.Host
	ID       string
	Ledger   *ledger.Ledger
	Record   *report.Builder
	Identity *grains.Identity
	// FailedBefore reports whether a release is in quarantine because it failed.
	FailedBefore func(artifact.Release) bool

	Archives []string // directories in archives that get the report of this run
}

// Prune removes releases, archives and lists that exceed the limits of agent.yaml, and old chapters of the journal.
func (r *Run) Prune(ctx context.Context) error {
	errs := []error{r.Host.Journal().Prune(r.Host.Config.KeepReleases + r.Host.Config.KeepFailed)}
	names := []string{r.Identity.Service, artifact.Base}
	if r.Host.Alone != "" {
		names = []string{r.Host.Alone} // the releases of base are in the host's own ledger
	}
	onDisk := map[string][]string{} // by project
	for _, name := range names {
		project := r.Host.LayoutOf(name)
		needed, err := r.neededOf(name)
		if err != nil {
			errs = append(errs, err)
			continue
		}
		errs = append(errs,
			fetch.PruneReleases(ctx, project, r.Host.Config.KeepReleases, r.Host.Config.KeepFailed, fetch.Kept{
				Used: func(dir string) bool { return needed[dir] || r.used(project, dir) },
				Good: func(dir string) bool { return r.Ledger.WasGood(name, dir) },
			}),
			fetch.PruneArchives(ctx, project, r.Host.Config.KeepFailed, r.Host.Config.KeepArchives),
			fetch.PruneLists(r.Host.Layout, project))
		onDisk[name], err = fetch.NewestFirst(project.Releases())
		errs = append(errs, err)
	}
	err := errors.Join(errs...)
	if err == nil {
		r.Ledger.TrimHistory(func(pair ledger.Pair) bool {
			return !slices.ContainsFunc(pair.Releases(), func(release artifact.Release) bool {
				return !slices.Contains(onDisk[release.Project], release.Dir())
			})
		})
	}
	return err
}

// neededOf returns the directories of base that the kept releases of the service need for a rollback; nil for another
// project. The releases of the service are pruned first.
func (r *Run) neededOf(name string) (map[string]bool, error) {
	if name != artifact.Base {
		return nil, nil //nolint:nilnil // none is needed
	}
	dirs, err := fetch.NewestFirst(r.Host.LayoutOf(r.Identity.Service).Releases())
	needed := map[string]bool{}
	for _, dir := range dirs {
		if base := r.Ledger.BaseOf(dir); base != nil {
			needed[base.Dir()] = true
		}
	}
	if err != nil {
		return nil, fmt.Errorf("which releases of base are needed is unknown: %w", err)
	}
	return needed, nil
}

// KeepFailed moves the failed releases of a pair that are no longer used into an archive, where a person can examine
// them. The other release of the pair stays, since it is deployed next.
func (r *Run) KeepFailed(pair ledger.Pair) {
	for _, release := range pair.Releases() {
		project := r.Host.LayoutOf(release.Project)
		found, err := walk.Named(project.Release(release.Dir()))
		if err != nil {
			r.Record.Note("the failed release stays under releases: %v", err)
		}
		if !found || !r.FailedBefore(release) || r.used(project, release.Dir()) {
			continue
		}
		dir := filepath.Join(project.Archives(), r.ID)
		err = durable.MkdirAll(dir, 0o700)
		if err == nil {
			err = durable.Rename(project.Release(release.Dir()), filepath.Join(dir, layout.FailedTree))
		}
		if err != nil {
			r.Record.Note("the failed release stays under releases: %v", err)
			continue
		}
		r.Archives = append(r.Archives, dir)
	}
}

// adoptFailed adds the report of this run to the archive of a failed release whose own run was interrupted before it
// wrote one.
func (r *Run) adoptFailed(p layout.Project) error {
	trees, err := walk.Glob(filepath.Join(p.Archives(), "*", layout.FailedTree))
	for _, tree := range trees {
		dir := filepath.Dir(tree)
		beside, unread := report.Archive{Dir: dir}.IsBeside()
		err = errors.Join(err, unread)
		if !beside && unread == nil {
			r.Record.Note("the run that left %s was interrupted; this report is put beside it", r.Host.Layout.Inside(tree))
			r.Archives = append(r.Archives, dir)
		}
	}
	return err
}

// used reports whether a link or the ledger names a release's directory.
func (r *Run) used(p layout.Project, dir string) bool {
	s, err := link.Of(p).Read()
	return err != nil || r.IsUsed(p, dir, s)
}

// IsUsed reports whether a set of links or the ledger names a release's directory.
func (r *Run) IsUsed(p layout.Project, dir string, s link.Set) bool {
	if dir == s.Next || dir == s.Current || dir == s.Previous {
		return true
	}
	for _, pair := range []*ledger.Pair{r.Ledger.Runs(), r.Ledger.Previous} {
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

// Sweep removes temporary files of runs that were killed. The run holds the lock, so no other run uses them.
func (r *Run) Sweep(ctx context.Context) error {
	state := r.Host.Layout.State()
	dirs := []string{state, filepath.Join(state, "projects"), r.Host.Layout.Incoming(),
		r.Host.Layout.Reports(), r.Host.Layout.Trust(),
		filepath.Join(r.Host.Layout.Trust(), "projects"),
		r.Host.Layout.Path("/srv"), r.Host.Layout.Path(project.StatesDir), r.Host.Layout.Path(project.PillarsDir)}
	if file := r.Host.Config.Metrics; file != "" {
		dirs = append(dirs, r.Host.Layout.Path(filepath.Dir(file)))
	}
	projects, err := r.Host.ProjectDirs()
	errs := []error{err, durable.SweepScratchIn(r.Host.Layout.Configuration())} // "config edit" does not take the lock
	dirs = append(dirs, r.Host.Layout.Projects())
	for _, dir := range projects {
		p := r.Host.LayoutOf(filepath.Base(dir))
		archives, err := walk.Glob(filepath.Join(p.Archives(), "*"))
		dirs = append(append(dirs, r.Host.Layout.Trees(p.Name), p.Dir, p.Releases(), p.Archives()), archives...)
		errs = append(errs, err, r.adoptFailed(p))
	}
	for _, dir := range dirs {
		errs = append(errs, durable.Sweep(ctx, dir))
	}
	return errors.Join(errs...)
}
