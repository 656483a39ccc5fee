package agent

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/corpus-agent/corpus-agent/agent/layout"
	"github.com/corpus-agent/corpus-agent/artifact"
	"github.com/corpus-agent/corpus-agent/artifact/durable"
)

// prune removes what is kept no longer: good releases and failed ones by quotas of their own, so
// that no number of failures can push out what runs.
func (r *run) prune() error {
	var errs []error
	for _, name := range []string{artifact.Base, r.identity.Service} {
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

// pruneArchives keeps the newest failed releases; their names are those of runs and sort by time.
func (r *run) pruneArchives(p layout.Project) error {
	dirs, err := newestFirst(p.Archives())
	if err != nil {
		return err
	}
	var errs []error
	for _, dir := range dirs[min(len(dirs), r.Config.KeepFailed):] {
		errs = append(errs, durable.Discard(filepath.Join(p.Archives(), dir)))
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
		if err == nil && e.IsDir() && !strings.HasPrefix(e.Name(), ".") {
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
