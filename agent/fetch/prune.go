package fetch

import (
	"errors"
	"io/fs"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/corpus-agent/corpus-agent/agent/layout"
	"github.com/corpus-agent/corpus-agent/artifact/durable"
	"github.com/corpus-agent/corpus-agent/artifact/walk"
)

// PruneReleases removes the releases of a project but those in use and, with them, the newest keep.
func PruneReleases(p layout.Project, keep int, used func(dir string) bool) error {
	dirs, err := NewestFirst(p.Releases())
	if err != nil {
		return err
	}
	var errs []error
	kept := 0
	for _, dir := range dirs {
		if used(dir) {
			kept++
		}
	}
	for _, dir := range dirs {
		switch {
		case used(dir):
		case kept < keep:
			kept++
		default:
			errs = append(errs, durable.Discard(p.Release(dir)))
		}
	}
	return errors.Join(errs...)
}

// PruneArchives keeps the newest failed releases and the newest archived trees of a project, each by a quota of
// its own: no number of failures pushes out what worked. An archives of 0 keeps all archived trees. One run may have
// left both kinds.
func PruneArchives(p layout.Project, failed, archives int) error {
	if archives == 0 {
		archives = math.MaxInt
	}
	return errors.Join(
		pruneTrees(p, layout.FailedTree, layout.ArchivedTree, failed),
		pruneTrees(p, layout.ArchivedTree, layout.FailedTree, archives))
}

// pruneTrees keeps the newest trees of one kind. An archive that holds none of the other kind goes
// as a whole.
func pruneTrees(p layout.Project, kind, other string, keep int) error {
	dirs, err := NewestFirst(p.Archives())
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

// PruneLists removes the lists of a project's releases that are gone.
func PruneLists(l layout.Layout, p layout.Project) error {
	entries, err := os.ReadDir(l.Trees(p.Name))
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	errs := []error{err}
	for _, e := range entries {
		if _, err := os.Lstat(p.Release(e.Name())); errors.Is(err, fs.ErrNotExist) {
			errs = append(errs, durable.Remove(l.Tree(p.Name, e.Name())))
		}
	}
	return errors.Join(errs...)
}

// NewestFirst lists the directories in a directory by the time at which they came there.
func NewestFirst(dir string) ([]string, error) {
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
