package releases

import (
	"context"
	"errors"
	"fmt"

	"github.com/corpus-agent/corpus-agent/agent/exit"
	"github.com/corpus-agent/corpus-agent/agent/ledger"
	"github.com/corpus-agent/corpus-agent/artifact"
	"github.com/corpus-agent/corpus-agent/artifact/manifest"
	"github.com/corpus-agent/corpus-agent/artifact/store"
	"github.com/corpus-agent/corpus-agent/artifact/trust"
	"github.com/corpus-agent/corpus-agent/state/diag"
)

// RestoreLists fetches those releases of a pair again whose lists of files were lost, or damaged as far as the store
// tells.
func (r *Run) RestoreLists(ctx context.Context, pair ledger.Pair) error {
	for _, release := range pair.Releases() {
		list, err := r.Host.Held().List(release)
		if err != nil {
			return err
		}
		if release.Local != "" {
			continue
		}
		if list != nil {
			if other, err := r.isOther(release); err != nil || !other {
				continue // Intact returns the error
			}
		}
		if _, err := r.listAgain(ctx, release); err != nil {
			return err
		}
	}
	return nil
}

// RestoreKept is RestoreLists for the releases that a rollback can lead to. What fails is noted: only a rollback needs
// them.
func (r *Run) RestoreKept(ctx context.Context, kept []artifact.Release) {
	for _, release := range kept {
		if r.Test || ctx.Err() != nil || release.Local != "" {
			continue
		}
		other, err := r.isOther(release)
		if err == nil && other {
			err = r.replace(ctx, release)
		}
		if err != nil {
			r.Record.Note("the list of the files of %s is damaged and was not fetched again: %v", release, err)
			continue
		}
		if other {
			r.Record.Note("%s", again(release))
		}
	}
}

// isOther reports whether the list of a release is not the one that was signed, according to the metadata that this run
// has read from the store.
func (r *Run) isOther(release artifact.Release) (bool, error) {
	if r.Connection.Client == nil {
		return false, nil
	}
	want, signed := r.Connection.Client.Tree(release)
	if !signed {
		return false, nil
	}
	return r.Host.HasOtherList(release, want)
}

// again is the note about a list that was fetched again.
func again(release artifact.Release) string {
	return fmt.Sprintf("the list of the files of %s was lost or damaged; it was fetched again with the release", release)
}

// listAgain fetches a release whose list was lost or damaged, at most once in a run, and returns the list. If that
// fails, the release cannot be compared with what was signed, and listAgain returns an error. If no later run can
// restore the list either, it returns nil without an error, and the release is used unchecked.
func (r *Run) listAgain(ctx context.Context, release artifact.Release) (*manifest.Manifest, error) {
	cause, tried := r.unlisted[release.String()]
	if !tried {
		if cause = errDryRun; !r.Test {
			cause = r.replace(ctx, release)
		}
		if cause == nil {
			r.Record.Note("%s", again(release))
			return r.Host.Held().List(release)
		}
		if r.unlisted == nil {
			r.unlisted = map[string]error{}
		}
		r.unlisted[release.String()] = cause
	}
	if ctx.Err() != nil {
		return nil, ctx.Err()
	}
	if !r.mayListAgain(release, cause) {
		if !tried {
			r.Record.Note("the list of the files of %s was lost or damaged, and not fetched again (%v); its files are used "+
				"without a check", release, cause)
		}
		return nil, nil //nolint:nilnil // there is no list
	}
	return nil, exit.WithCode(exit.Refused, diag.Changed.Hint(
		fmt.Errorf("the list of the files of %s was lost or damaged, so its files cannot be compared with what was signed; "+
			"nothing of it is read or run: %w", release, cause),
		"the next run that reaches the store fetches it again: corpus-agent deploy"))
}

// errDryRun is the reason why a dry run does not restore a list.
var errDryRun = errors.New("a dry run fetches nothing again")

// mayListAgain reports whether a later run restores a lost list without a person's help. It does not if the store no
// longer has the release, if no list of it was ever signed, or if this host has lost the root of trust. A rollback from
// a release that failed does not wait for a later run.
func (r *Run) mayListAgain(release artifact.Release, cause error) bool {
	if r.Ledger.Running != nil || errors.Is(cause, store.ErrNotFound) {
		return false
	}
	client, err := trust.Recall(r.Host.Layout.Trust())
	if err != nil || client.RecallProject(release.Project) != nil {
		return false
	}
	_, signed := client.Tree(release)
	return signed
}
