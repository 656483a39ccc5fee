package agent

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"slices"
	"time"

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

// intact makes sure that the agent reads and starts what was unpacked of a pair's releases, and nothing that a user of
// a project has put there. What such a user was given by an earlier agent becomes root's again. Code that was changed,
// added or removed is refused: it is damage or an attack, and never a reason to do something else, or less.
func (r *run) intact(ctx context.Context, pair ledger.Pair) error {
	for _, release := range pair.Releases() {
		if release.Local == trust.ByEditable {
			continue // its owner edits it, and status shows it as unsigned
		}
		if err := r.sound(ctx, release); err != nil {
			return err
		}
	}
	return nil
}

// sound is intact for one release.
func (r *run) sound(ctx context.Context, release artifact.Release) error {
	list, err := r.Held().List(release)
	if list == nil && err == nil && release.Local == "" {
		list, err = r.listAgain(ctx, release)
	}
	if err != nil {
		return err
	}
	says, err := r.RecipeListed(release, list)
	if err != nil {
		return err
	}
	if err := r.passable(release); err != nil {
		return unreadable(release, failure.OfWork(err))
	}
	if err := r.reclaim(release, says, list); err != nil {
		return unreadable(release, failure.OfWork(err))
	}
	r.restoreRunning(release, says, list)
	if list == nil {
		return nil // a pushed tree, or a release whose list cannot come back
	}
	changes, err := r.changedCode(ctx, release, says, list)
	if err != nil {
		return unreadable(release, err)
	}
	return r.refuse(release, changes)
}

func unreadable(release artifact.Release, err error) error {
	// it was not read to its end, which says nothing of it
	if errors.Is(err, context.DeadlineExceeded) || errors.Is(err, context.Canceled) {
		return failure.OfWork(fmt.Errorf("comparing %s with what was unpacked: %w", release, err))
	}
	if hint := diag.HintOf(err); hint != "" {
		return exit.WithCode(exit.Usage, diag.WithHint(fmt.Errorf("%s: %w", release, err), "%s", hint))
	}
	return exit.WithCode(exit.Usage,
		diag.WithHint(fmt.Errorf("%s: %w", release, err), "look at it with ls -l; dmesg shows errors of a failing disk"))
}

// changedCode is what of a release's code is not as it was unpacked. What the recipe lets the project's user change is
// noted and is not among it.
func (r *run) changedCode(ctx context.Context, release artifact.Release, says recipe.Recipe,
	list *manifest.Manifest) ([]manifest.Change, error) {
	root, err := walk.OpenTree(r.LayoutOf(release.Project).Release(release.Dir()))
	if err != nil {
		return nil, err
	}
	defer root.Close()
	scope := r.Comparison(says)
	scope.OnlyCode = true
	changes, err := list.Audit(ctx, root, scope)
	changes = structsort.Without(changes, func(c manifest.Change) bool { return !c.Damages() && !(c.Foreign && !r.test) })
	if !says.WritableCode {
		return changes, err
	}
	return structsort.Without(changes, func(c manifest.Change) bool {
		if !recipe.Within(says.Writable, c.Name) {
			return false
		}
		if c.Damages() {
			r.record.Note("%s of %s %s, which %s allows; it is read and run as root nevertheless", c.Name, release, c.What,
				recipe.WritableCodeKey)
		}
		return true
	}), err
}

// refuse is the error of code that is not as it was unpacked, or nil.
func (r *run) refuse(release artifact.Release, changes []manifest.Change) error {
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
	name := filepath.Join(r.LayoutOf(release.Project).Release(release.Dir()), first.Name)
	return exit.WithCode(exit.Refused, diag.WithHint(
		fmt.Errorf("%s %s%s, so it is not what was unpacked of %s; none of it is read or run", name, what, more, release),
		damaged))
}

// damaged is the hint for a release that is not as it was unpacked.
const damaged = "find out what changed it (`corpus-agent verify` lists all that differs); to have the release as it " +
	"was, run `corpus-agent deploy`, which fetches it again"

// reclaim gives a release's code back to root, and says how much of it was not root's.
func (r *run) reclaim(release artifact.Release, says recipe.Recipe, list *manifest.Manifest) error {
	if r.test {
		return nil
	}
	changed, err := r.Reclaim(release, says, list)
	if changed > 0 {
		r.record.Note("%s of %s that the agent reads or runs, or that are not writable, belonged to another user or could "+
			"be written to by others: they belong to root again",
			diag.Count(changed, "name"), release)
	}
	return err
}

// passable makes a release's directory, and the one that it is in, what they were made: readable by every user. Those
// above are left as an operator has them, unless not even their owner may enter them.
func (r *run) passable(release artifact.Release) error {
	if r.test {
		return nil
	}
	root, err := r.OpenSafely()
	if err != nil {
		return err
	}
	defer root.Close()
	for _, name := range []string{r.Layout.Projects(), r.LayoutOf(release.Project).Dir} {
		if err := r.opened(root, name, func(mode fs.FileMode) bool { return mode&0o700 != 0o700 }); err != nil {
			return err
		}
	}
	for _, name := range r.Passages(release) {
		if err := r.opened(root, name, func(mode fs.FileMode) bool { return mode != site.ReleaseMode }); err != nil {
			return err
		}
	}
	return nil
}

// opened gives a directory, or the one that a link in its place leads to, releaseMode where it has a mode that is
// wrong.
func (r *run) opened(root *walk.Root, name string, wrong func(fs.FileMode) bool) error {
	dir, err := root.OpenDir(r.Layout.Inside(name))
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
	r.record.Note("%s had mode %04o; it has mode %04o again", r.Layout.Inside(name), mode, site.ReleaseMode)
	return nil
}

// restoreModes gives what was unpacked of a release its modes again, where they were changed after since. What cannot
// be changed is noted: the release may work anyway.
func (r *run) restoreModes(
	release artifact.Release, says recipe.Recipe, list *manifest.Manifest, since func() time.Time,
) {
	if r.test || list == nil || release.Local != "" {
		return
	}
	done, err := r.RestoreModes(release, says, list, since)
	if len(done) > 0 {
		more := ""
		if len(done) > 1 {
			more = fmt.Sprintf(", and %s had others than they were unpacked with", diag.Count(len(done)-1, "other name"))
		}
		first := done[0]
		r.record.Note("%s of %s has mode %04o, not %04o%s; it is corrected",
			first.Name, release, first.Was, first.Mode, more)
	}
	if err != nil {
		r.record.Note("the modes of %s could not all be corrected: %v", release, err)
	}
}

// restoreRunning is restoreModes for a release of what is deployed. States, hooks and procedures of it may give other
// modes: those that a successful run left stay.
func (r *run) restoreRunning(release artifact.Release, says recipe.Recipe, list *manifest.Manifest) {
	runs := r.ledger.Runs()
	if runs == nil || !runs.Has(release) || r.remoded[release.String()] {
		return
	}
	if r.remoded == nil {
		r.remoded = map[string]bool{}
	}
	r.remoded[release.String()] = true
	r.restoreModes(release, says, list, r.lastSuccess)
}

// lastSuccess is the end of the last run that changed the host as it should; now where no report says when that was.
func (r *run) lastSuccess() time.Time {
	reports, now := r.Reports(), r.Time()
	ids, _ := reports.IDs()
	for _, id := range slices.Backward(ids) {
		rep, err := reports.Load(id)
		if err == nil && rep.Exit == exit.OK && !rep.Test && !rep.Ended.After(now) {
			return rep.Ended
		}
	}
	return now
}

// restoreOthers is restoreModes for those releases of a pair that are not deployed: all that gives modes to one runs
// again before it is deployed.
func (r *run) restoreOthers(pair ledger.Pair) error {
	runs := r.ledger.Runs()
	for _, release := range pair.Releases() {
		if runs != nil && runs.Has(release) {
			continue
		}
		list, err := r.Held().List(release)
		if err != nil || list == nil {
			continue // intact says so
		}
		says, err := r.RecipeListed(release, list)
		if err != nil {
			return err
		}
		r.restoreModes(release, says, list, func() time.Time { return time.Time{} })
	}
	return nil
}
