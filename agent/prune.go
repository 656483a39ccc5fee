package agent

import (
	"errors"
	"io/fs"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/corpus-agent/corpus-agent/agent/layout"
	"github.com/corpus-agent/corpus-agent/artifact"
	"github.com/corpus-agent/corpus-agent/artifact/durable"
	"github.com/corpus-agent/corpus-agent/artifact/walk"
)

// prune removes what is kept no longer: good releases and failed ones by quotas of their own, so
// that no number of failures can push out what runs.
func (r *run) prune() error {
	errs := []error{r.journal().Prune(r.Config.KeepReleases + r.Config.KeepFailed)}
	names := []string{artifact.Base, r.identity.Service}
	if r.alone != "" {
		names = []string{r.alone} // what base needs stands in the host's own ledger
	}
	for _, name := range names {
		project := r.project(name)
		errs = append(errs, r.pruneReleases(project), r.pruneArchives(project), r.pruneTrees(project))
	}
	return errors.Join(errs...)
}

// pruneReleases keeps the newest releases and all that is in use.
func (r *run) pruneReleases(p layout.Project) error {
	dirs, err := newestFirst(p.Releases())
	if err != nil {
		return err
	}
	var errs []error
	kept := 0
	for _, dir := range dirs {
		if r.used(p, dir) {
			kept++
		}
	}
	for _, dir := range dirs {
		switch {
		case r.used(p, dir):
		case kept < r.Config.KeepReleases:
			kept++
		default:
			errs = append(errs, durable.Discard(p.Release(dir)))
		}
	}
	return errors.Join(errs...)
}

// pruneArchives keeps the newest failed releases and the newest archived trees, each by a quota of
// its own. One run may have left both.
func (r *run) pruneArchives(p layout.Project) error {
	archives := r.Config.KeepArchives
	if archives == 0 {
		archives = math.MaxInt
	}
	return errors.Join(
		pruneTrees(p, layout.FailedTree, layout.ArchivedTree, r.Config.KeepFailed),
		pruneTrees(p, layout.ArchivedTree, layout.FailedTree, archives))
}

// pruneTrees keeps the newest trees of one kind. An archive that holds none of the other kind goes
// as a whole.
func pruneTrees(p layout.Project, kind, other string, keep int) error {
	dirs, err := newestFirst(p.Archives())
	if err != nil {
		return err
	}
	var errs []error
	for _, dir := range dirs {
		archive := filepath.Join(p.Archives(), dir)
		if found, err := walk.Named(filepath.Join(archive, kind)); err != nil || !found {
			errs = append(errs, err)
			continue
		}
		if keep > 0 {
			keep--
			continue
		}
		both, err := walk.Named(filepath.Join(archive, other))
		if err != nil {
			errs = append(errs, err)
			continue
		}
		if both {
			archive = filepath.Join(archive, kind)
		}
		errs = append(errs, durable.Discard(archive))
	}
	return errors.Join(errs...)
}

// pruneTrees removes the lists of releases that are gone.
func (r *run) pruneTrees(p layout.Project) error {
	entries, err := os.ReadDir(r.Layout.Trees(p.Name))
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	errs := []error{err}
	for _, e := range entries {
		if _, err := os.Lstat(p.Release(e.Name())); errors.Is(err, fs.ErrNotExist) {
			errs = append(errs, durable.Remove(r.Layout.Tree(p.Name, e.Name())))
		}
	}
	return errors.Join(errs...)
}

// newestFirst lists the directories in a directory by the time at which they came there.
func newestFirst(dir string) ([]string, error) {
	entries, err := os.ReadDir(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	var infos []fs.FileInfo
	for _, e := range entries {
		info, err := e.Info()
		if found, err := walk.Found(err); err != nil {
			return nil, err
		} else if found && e.IsDir() && !strings.HasPrefix(e.Name(), ".") {
			infos = append(infos, info)
		}
	}
	slices.SortFunc(infos, func(a, b fs.FileInfo) int { return b.ModTime().Compare(a.ModTime()) })
	names := make([]string, len(infos))
	for i, info := range infos {
		names[i] = info.Name()
	}
	return names, nil
}
