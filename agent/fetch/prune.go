package fetch

import (
	"context"
	"errors"
	"io/fs"
	"math"
	"os"
	"path/filepath"
	"strings"

	"github.com/corpus-agent/corpus-agent/agent/layout"
	"github.com/corpus-agent/corpus-agent/artifact/durable"
	"github.com/corpus-agent/corpus-agent/artifact/structsort"
	"github.com/corpus-agent/corpus-agent/artifact/walk"
)

// Kept decides which directories of releases are kept.
type Kept struct {
	Used func(dir string) bool // a link or the ledger needs it: it is never removed
	Good func(dir string) bool // it was good, and was not rolled back
}

// PruneReleases removes the releases of a project except those in use, the newest good ones and the newest others. The
// two groups have separate quotas, so that releases that failed, were rolled back, or were fetched and not deployed do
// not displace good ones.
func PruneReleases(ctx context.Context, p layout.Project, good, others int, k Kept) error {
	dirs, err := NewestFirst(p.Releases())
	if err != nil {
		return err
	}
	left := map[bool]int{true: good, false: others}
	for _, dir := range dirs {
		if k.Used(dir) {
			left[k.Good(dir)]--
		}
	}
	var errs []error
	for _, dir := range dirs {
		switch {
		case k.Used(dir) || ctx.Err() != nil:
		case left[k.Good(dir)] > 0:
			left[k.Good(dir)]--
		default:
			errs = append(errs, durable.Discard(ctx, p.Release(dir)))
		}
	}
	return errors.Join(errs...)
}

// PruneArchives removes all but the newest failed releases and the newest archived trees of a project. Each kind has
// its own quota, so that failed releases do not displace archived trees. An archives of 0 keeps all archived trees. An
// archive of one run may have both kinds.
func PruneArchives(ctx context.Context, p layout.Project, failed, archives int) error {
	if archives == 0 {
		archives = math.MaxInt
	}
	return errors.Join(
		pruneTrees(ctx, p, layout.FailedTree, layout.ArchivedTree, failed),
		pruneTrees(ctx, p, layout.ArchivedTree, layout.FailedTree, archives))
}

// ArchivedTrees returns the paths of the archived trees of a project, the newest first.
func ArchivedTrees(p layout.Project) ([]string, error) {
	return treesOf(p, layout.ArchivedTree)
}

// RemoveArchivedTree removes a tree that ArchivedTrees returned.
func RemoveArchivedTree(ctx context.Context, tree string) error {
	return discardTree(ctx, filepath.Dir(tree), layout.ArchivedTree, layout.FailedTree)
}

// treesOf returns the trees of one kind, the newest first. It skips archives that cannot be read, and joins the errors.
func treesOf(p layout.Project, kind string) (all []string, err error) {
	dirs, err := NewestFirst(p.Archives())
	errs := []error{err}
	for _, dir := range dirs {
		tree := filepath.Join(p.Archives(), dir, kind)
		found, err := walk.Named(tree)
		if errs = append(errs, err); err == nil && found {
			all = append(all, tree)
		}
	}
	return all, errors.Join(errs...)
}

// discardTree removes the tree of one kind from an archive, or the whole archive if it has no tree of the other kind.
func discardTree(ctx context.Context, archive, kind, other string) error {
	both, err := walk.Named(filepath.Join(archive, other))
	if err != nil {
		return err
	}
	if both {
		archive = filepath.Join(archive, kind)
	}
	return durable.Discard(ctx, archive)
}

// pruneTrees removes all but the newest trees of one kind.
func pruneTrees(ctx context.Context, p layout.Project, kind, other string, keep int) error {
	all, err := treesOf(p, kind)
	errs := []error{err}
	for _, tree := range all[min(max(keep, 0), len(all)):] {
		if ctx.Err() != nil {
			break
		}
		errs = append(errs, discardTree(ctx, filepath.Dir(tree), kind, other))
	}
	return errors.Join(errs...)
}

// PruneLists removes the lists of a project's releases that no longer exist.
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

// NewestFirst returns the names of the directories in a directory, by modification time, the newest first.
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
	structsort.Func(infos, func(a, b fs.FileInfo) int { return b.ModTime().Compare(a.ModTime()) })
	names := make([]string, len(infos))
	for i, info := range infos {
		names[i] = info.Name()
	}
	return names, nil
}
