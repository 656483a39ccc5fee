package agent

import (
	"context"
	"fmt"
	"path/filepath"
	"slices"

	"github.com/corpus-agent/corpus-agent/agent/exit"
	"github.com/corpus-agent/corpus-agent/agent/failure"
	"github.com/corpus-agent/corpus-agent/agent/ledger"
	"github.com/corpus-agent/corpus-agent/artifact"
	"github.com/corpus-agent/corpus-agent/artifact/manifest"
	"github.com/corpus-agent/corpus-agent/artifact/recipe"
	"github.com/corpus-agent/corpus-agent/artifact/structsort"
	"github.com/corpus-agent/corpus-agent/artifact/trust"
	"github.com/corpus-agent/corpus-agent/artifact/walk"
	"github.com/corpus-agent/corpus-agent/state"
	"github.com/corpus-agent/corpus-agent/state/diag"
)

// intact makes sure that the agent reads and starts what was unpacked of a pair's releases, and nothing that a user of a
// project has put there. What such a user was given by an earlier agent becomes root's again. Code that was changed, added or
// removed is refused: it is damage or an attack, and never a reason to do something else, or less.
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
	if hint := diag.HintOf(err); hint != "" {
		return exit.WithCode(exit.Usage, diag.WithHint(fmt.Errorf("%s: %w", release, err), "%s", hint))
	}
	return exit.WithCode(exit.Usage, diag.WithHint(fmt.Errorf("%s: %w", release, err), "look at it with ls -l; dmesg tells of a failing disk"))
}

// changedCode is what of a release's code is not as it was unpacked. What the recipe lets the project's user change is noted
// and is not among it.
func (r *run) changedCode(ctx context.Context, release artifact.Release, says recipe.Recipe, list *manifest.Manifest) ([]manifest.Change, error) {
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
			r.record.Note("%s of %s %s, which %s allows; it is read and run as root all the same", c.Name, release, c.What, recipe.WritableCodeKey)
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
		fmt.Errorf("%s %s%s, so it is not what was unpacked of %s; nothing of it is read or run", name, what, more, release), damaged))
}

// damaged is the hint for a release that is not as it was unpacked.
const damaged = "find out what changed it (`corpus-agent verify` lists all that differs); to have the release as it was, run `corpus-agent deploy`, which fetches it again"

// emptied judges a converge by how many states it had. One that has none, on a host that had some, fails unless the top files
// that say so are as they were signed.
func (r *run) emptied(ctx context.Context, pair ledger.Pair, outcome state.Outcome) error {
	had, has := r.ledger.States, len(outcome.Results)
	if outcome.Output != "" || r.WithoutPillar { // another program's states are not counted, and those of base alone are some of them
		return nil
	}
	if has == 0 && had > 0 {
		why, err := r.notSigned(pair)
		if err != nil {
			return err
		}
		if why != "" {
			return exit.WithCode(exit.Failed, diag.WithHint(fmt.Errorf("no state is meant for this host, which had %d in the last converge: %s", had, why),
				"look at the top file; a host that is to have no states takes a signed release that says so, or a state that does nothing, such as test.nop"))
		}
		r.record.Note("no state is meant for this host any more, as its releases were signed; it had %d in the last converge", had)
	}
	if r.test || had == has || ctx.Err() != nil {
		return nil
	}
	r.ledger.States = has
	return r.save()
}

// notSigned says why the top files of a pair are not as they were signed, or "".
func (r *run) notSigned(pair ledger.Pair) (string, error) {
	for _, release := range pair.Releases() {
		list, err := r.Held().List(release)
		if err != nil {
			return "", err
		}
		if list == nil {
			return fmt.Sprintf("%s is not signed", release), nil
		}
		tree := walk.Files(r.LayoutOf(release.Project).Release(release.Dir()))
		for _, top := range []string{"salt/config/states/top.sls", "states/top.sls"} {
			regular := func(e manifest.Entry) bool { return e.Name == top && e.Kind.Regular() }
			if slices.ContainsFunc(list.Entries, regular) && !list.Holds(tree, top) {
				return fmt.Sprintf("%s of %s is not as it was signed", top, release), nil
			}
		}
	}
	return "", nil
}

// reclaim gives a release's code back to root, and says how much of it was not root's.
func (r *run) reclaim(release artifact.Release, says recipe.Recipe, list *manifest.Manifest) error {
	if r.test {
		return nil
	}
	changed, err := r.Reclaim(release, says, list)
	if changed > 0 {
		r.record.Note("%d files and directories of %s that the agent reads or runs, or that are not writable, belonged to another user or could be written to by others; they are root's again", changed, release)
	}
	return err
}
