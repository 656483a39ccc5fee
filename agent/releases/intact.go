package releases

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"

	"github.com/corpus-agent/corpus-agent/agent/exit"
	"github.com/corpus-agent/corpus-agent/agent/failure"
	"github.com/corpus-agent/corpus-agent/agent/ledger"
	"github.com/corpus-agent/corpus-agent/agent/site"
	"github.com/corpus-agent/corpus-agent/artifact"
	"github.com/corpus-agent/corpus-agent/artifact/manifest"
	"github.com/corpus-agent/corpus-agent/artifact/recipe"
	"github.com/corpus-agent/corpus-agent/artifact/structsort"
	"github.com/corpus-agent/corpus-agent/artifact/trust"
	"github.com/corpus-agent/corpus-agent/artifact/walk"
	"github.com/corpus-agent/corpus-agent/state/diag"
)

// Intact returns an error if the code of a pair's releases differs from what was unpacked, so that root reads and runs
// no file that another user has changed. Before it compares, it gives the code back to root and corrects modes. Code
// that was changed, added or removed is damage or an attack, and the run never continues without it.
func (r *Run) Intact(ctx context.Context, pair ledger.Pair) error {
	for _, release := range pair.Releases() {
		if release.Local == trust.ByEditable {
			continue // its owner edits it, and status shows it as unsigned
		}
		if err := r.intact(ctx, release); err != nil {
			return err
		}
	}
	return nil
}

// intact is Intact for one release. A list that the disk has damaged is fetched again before the files are blamed.
func (r *Run) intact(ctx context.Context, release artifact.Release) error {
	list, err := r.Host.Held().List(release)
	if list == nil && err == nil && release.Local == "" {
		list, err = r.listAgain(ctx, release)
	}
	if err != nil {
		return err
	}
	err = r.intactBy(ctx, release, list)
	if err == nil || list == nil || release.Local != "" || ctx.Err() != nil {
		return err
	}
	if damaged, unknown := r.Host.DamagedList(release); !damaged || unknown != nil {
		return err
	}
	if list, err = r.listAgain(ctx, release); err != nil {
		return err
	}
	return r.intactBy(ctx, release, list)
}

// intactBy compares a release with a list, which is nil if there is none.
func (r *Run) intactBy(ctx context.Context, release artifact.Release, list *manifest.Manifest) error {
	says, err := r.Host.RecipeListed(release, list)
	if err != nil {
		return err
	}
	if err := r.makeAccessible(release); err != nil {
		return unreadable(release, failure.OfWork(err))
	}
	if err := r.reclaim(release, says, list); err != nil {
		return unreadable(release, failure.OfWork(err))
	}
	r.correctDeployed(release, says, list)
	if list == nil {
		return nil // a pushed tree, or a release whose list is lost for good
	}
	changes, err := r.changedCode(ctx, release, says, list)
	if err != nil {
		return unreadable(release, err)
	}
	return r.refused(release, changes)
}

// unreadable returns the error for a release that could not be read. A comparison that was interrupted is not an error
// of the release.
func unreadable(release artifact.Release, err error) error {
	if errors.Is(err, context.DeadlineExceeded) || errors.Is(err, context.Canceled) {
		return failure.OfWork(fmt.Errorf("comparing %s with what was unpacked: %w", release, err))
	}
	if hint := diag.HintOf(err); hint != "" {
		return exit.WithCode(exit.Usage, diag.Changed.Hint(fmt.Errorf("%s: %w", release, err), "%s", hint))
	}
	return exit.WithCode(exit.Usage,
		diag.Changed.Hint(fmt.Errorf("%s: %w", release, err), "look at it with ls -l; dmesg shows errors of a failing disk"))
}

// changedCode returns the changes of a release's code since it was unpacked. It notes changes that the recipe allows
// the user of the project, and does not return them.
func (r *Run) changedCode(ctx context.Context, release artifact.Release, says recipe.Recipe,
	list *manifest.Manifest) ([]manifest.Change, error) {
	root, err := walk.OpenTree(r.Host.LayoutOf(release.Project).Release(release.Dir()))
	if err != nil {
		return nil, err
	}
	defer root.Close()
	scope := r.Host.Comparison(says)
	scope.OnlyCode = true
	changes, err := list.Audit(ctx, root, scope)
	changes = structsort.Without(changes, func(c manifest.Change) bool { return !c.Damages() && !(c.Foreign && !r.Test) })
	if !says.WritableCode {
		return changes, err
	}
	return structsort.Without(changes, func(c manifest.Change) bool {
		if !recipe.Within(says.Writable, c.Name) {
			return false
		}
		if c.Damages() {
			r.Record.Note("%s of %s %s, which %s allows; it is read and run as root nevertheless", c.Name, release, c.What,
				recipe.WritableCodeKey)
		}
		return true
	}), err
}

// refused returns the error for code that differs from what was unpacked; nil if there are no changes.
func (r *Run) refused(release artifact.Release, changes []manifest.Change) error {
	if len(changes) == 0 {
		return nil
	}
	first := changes[0]
	what := first.What
	if what == "is missing" {
		what = "does not exist"
	}
	more := ""
	if len(changes) > 1 {
		more = fmt.Sprintf(" (and %d more)", len(changes)-1)
	}
	name := filepath.Join(r.Host.LayoutOf(release.Project).Release(release.Dir()), first.Name)
	return exit.WithCode(exit.Refused, diag.Changed.Hint(
		fmt.Errorf("%s %s%s, so it is not what was unpacked of %s; none of it is read or run", name, what, more, release),
		damaged))
}

// damaged is the hint for a release that differs from what was unpacked.
const damaged = "find out what changed it (`corpus-agent verify` lists all that differs); to have the release as it " +
	"was, run `corpus-agent deploy`, which fetches it again"

// reclaim gives a release's code back to root, and notes how many names belonged to another user.
func (r *Run) reclaim(release artifact.Release, says recipe.Recipe, list *manifest.Manifest) error {
	if r.Test {
		return nil
	}
	changed, err := r.Host.Reclaim(release, says, list)
	if changed > 0 {
		r.Record.Note("%s of %s that the agent reads or runs, or that are not writable, belonged to another user or could "+
			"be written to by others: they belong to root again",
			diag.Count(changed, "name"), release)
	}
	return err
}

// makeAccessible restores the modes of a release's directory and of its parent, which every user may read. It leaves
// the modes of the directories above as an operator set them, unless not even their owner may enter them.
func (r *Run) makeAccessible(release artifact.Release) error {
	if r.Test {
		return nil
	}
	root, err := r.Host.OpenSafely()
	if err != nil {
		return err
	}
	defer root.Close()
	for _, name := range []string{r.Host.Layout.Projects(), r.Host.LayoutOf(release.Project).Dir} {
		if err := r.makeReadable(root, name, func(mode fs.FileMode) bool { return mode&0o700 != 0o700 }); err != nil {
			return err
		}
	}
	for _, name := range r.Host.Passages(release) {
		if err := r.makeReadable(root, name, func(mode fs.FileMode) bool { return mode != site.ReleaseMode }); err != nil {
			return err
		}
	}
	return nil
}

// makeReadable sets the mode of a directory, or of the directory that a link in its place leads to, to ReleaseMode if
// its mode is wrong.
func (r *Run) makeReadable(root *walk.Root, name string, wrong func(fs.FileMode) bool) error {
	dir, err := root.OpenDir(r.Host.Layout.Inside(name))
	if err != nil {
		return err
	}
	defer dir.Close()
	st, err := dir.Lstat(".")
	mode := fs.FileMode(st.Mode & 0o7777)
	if err != nil || !wrong(mode) {
		return err
	}
	if err := dir.Chmod(".", site.ReleaseMode); err != nil {
		return err
	}
	r.Record.Note("%s had mode %04o; it has mode %04o again", r.Host.Layout.Inside(name), mode, site.ReleaseMode)
	return nil
}
