package project

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"

	"github.com/corpus-agent/corpus-agent/agent/fetch"
	"github.com/corpus-agent/corpus-agent/agent/layout"
	"github.com/corpus-agent/corpus-agent/agent/ledger"
	"github.com/corpus-agent/corpus-agent/agent/procedure"
	"github.com/corpus-agent/corpus-agent/artifact/durable"
	"github.com/corpus-agent/corpus-agent/artifact/trust"
	"github.com/corpus-agent/corpus-agent/artifact/walk"
	"github.com/corpus-agent/corpus-agent/state/diag"
)

// Archive keeps the tree of the project's deployed release before a deploy changes anything. A release that is
// read-only stays under releases as it is; one with writable paths is copied.
func (r *Run) Archive(ctx context.Context, pair ledger.Pair) error {
	good := r.Ledger.Good
	asked := !r.Only.All() // by name, which has an effect in dev as well
	if good == nil || good.Service.Project != pair.Service.Project || !r.Only.Has(procedure.Archive) ||
		r.Environment() == Dev && !asked {
		return nil
	}
	says, err := r.Host.Recipe(good.Service)
	if err != nil || good.Service.Local == trust.ByEditable {
		return err
	}
	if len(says.Writable) == 0 {
		if asked {
			r.Record.Note("%s is read-only and stays under releases, so there is nothing to archive", good.Service)
		}
		return nil
	}
	return r.Record.Stage(
		procedure.Archive,
		good.Service.String(),
		func() error { return r.archiveTree(ctx, *good, asked) },
	)
}

// archiveTree archives the tree of a pair's service, and runs its hooks and its own archive procedure. The project's
// user writes the writable paths, and must not be able to stop deploys by filling them: a tree that does not fit is not
// archived, which the run notes. It is an error if the archive was asked for by name, or if the configuration requires
// archives.
func (r *Run) archiveTree(ctx context.Context, good ledger.Pair, asked bool) error {
	project := r.Host.LayoutOf(good.Service.Project)
	if err := durable.MkdirAll(project.Archives(), 0o700); err != nil {
		return diag.Rights.Hint(
			fmt.Errorf("archiving: %w", err),
			"the archives directory must be writable for root; nothing on the host was changed",
		)
	}
	root, err := r.Host.OpenSafely()
	if err != nil {
		return err
	}
	defer root.Close()
	tree := procedure.Tree{Root: root, Path: r.Host.Layout.Inside(r.tree(good)), Note: r.Record.Note}
	noSpace := r.makeSpace(ctx, tree, project)
	if noSpace != nil && (!isNoSpace(noSpace) || asked || r.Host.Config.ArchiveRequired) {
		return noSpace
	}
	if err := r.Hooks(ctx, "pre-archive", good); err != nil {
		return err
	}
	if _, err := r.own(ctx, procedure.Archive, good, r.Record); err != nil {
		return err
	}
	to := filepath.Join(project.Archives(), r.ID)
	if noSpace == nil {
		if noSpace = tree.Archive(ctx, filepath.Join(to, layout.ArchivedTree)); noSpace == nil {
			r.Kept(to)
		}
	}
	switch {
	case noSpace == nil:
	case !isNoSpace(noSpace) || asked || r.Host.Config.ArchiveRequired:
		return fetch.ExplainSpace(noSpace)
	default:
		r.Record.Note(
			"%s was not archived: %v; the deploy continues without the archive. %s",
			good.Service,
			noSpace,
			diag.HintOf(noSpace),
		)
	}
	return r.Hooks(ctx, "post-archive", good)
}

// isNoSpace reports whether err says that there is no space for an archive.
func isNoSpace(err error) bool {
	var none *procedure.NoSpace
	return errors.As(err, &none) || fetch.Full(err)
}

// makeSpace removes the oldest archived trees of a project if the tree fits then, and returns a *procedure.NoSpace if
// it does not. It keeps the newest archive, so that no user can have all of them removed by writing much.
func (r *Run) makeSpace(ctx context.Context, tree procedure.Tree, project layout.Project) error {
	takes, err := tree.Measure(ctx)
	if err != nil {
		return err
	}
	noSpace := takes.Fits(project.Archives())
	if noSpace == nil || !isNoSpace(noSpace) {
		return noSpace
	}
	older, err := fetch.ArchivedTrees(project)
	if err != nil || len(older) < 2 {
		return errors.Join(noSpace, err)
	}
	older = older[1:]
	var held procedure.Takes
	for _, path := range older {
		one, err := r.measured(ctx, path)
		if err != nil {
			return errors.Join(noSpace, err)
		}
		held.Bytes, held.Files = held.Bytes+one.Bytes, held.Files+one.Files
	}
	if takes.FitsAfter(project.Archives(), held) != nil {
		return noSpace
	}
	for noSpace != nil && len(older) > 0 {
		oldest := older[len(older)-1]
		if err := fetch.RemoveArchivedTree(ctx, oldest); err != nil {
			return errors.Join(noSpace, err)
		}
		r.Record.Note(
			"the archive of run %s was removed to make space for a newer one",
			filepath.Base(filepath.Dir(oldest)),
		)
		older, noSpace = older[:len(older)-1], takes.Fits(project.Archives())
	}
	return noSpace
}

// measured returns the size of a tree in a directory that belongs to root.
func (r *Run) measured(ctx context.Context, path string) (procedure.Takes, error) {
	root, err := walk.Open(walk.Options{Dir: path})
	if err != nil {
		return procedure.Takes{}, err
	}
	defer root.Close()
	return procedure.Tree{Root: root, Path: "/"}.Measure(ctx)
}
