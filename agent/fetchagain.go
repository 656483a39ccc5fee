package agent

import (
	"context"
	"errors"
	"fmt"

	"github.com/corpus-agent/corpus-agent/agent/exit"
	"github.com/corpus-agent/corpus-agent/agent/fetch"
	"github.com/corpus-agent/corpus-agent/agent/ledger"
	"github.com/corpus-agent/corpus-agent/artifact"
	"github.com/corpus-agent/corpus-agent/artifact/manifest"
	"github.com/corpus-agent/corpus-agent/artifact/store"
	"github.com/corpus-agent/corpus-agent/artifact/trust"
	"github.com/corpus-agent/corpus-agent/artifact/unpack"
	"github.com/corpus-agent/corpus-agent/artifact/walk"
	"github.com/corpus-agent/corpus-agent/state/diag"
)

// This file fetches releases again that are on the disk, and are not what was unpacked or have lost their lists.

// errUnasked is that a run has no store to ask.
var errUnasked = errors.New("the store was not asked")

// fetcher fetches releases for this run from the store of a client.
func (r *run) fetcher(client *trust.Client) *fetch.Fetcher {
	running := map[string]string{}
	if runs := r.ledger.Runs(); runs != nil {
		for _, release := range runs.Releases() {
			running[release.Project] = release.Dir()
		}
	}
	c := r.Config
	return &fetch.Fetcher{
		Held: r.Held(), Client: client, Store: r.connection.Store, Progress: r.record, Run: r.id, Running: running,
		Limits: unpack.Limits{Bytes: c.UnpackBytes, Files: c.UnpackFiles, Depth: c.UnpackDepth, Ratio: c.UnpackRatio},
		Intact: r.isComplete, Replaced: r.noteReplaced,
	}
}

// replace fetches a release again.
func (r *run) replace(ctx context.Context, release artifact.Release) error {
	if r.connection.Client == nil {
		return errUnasked
	}
	return r.connection.Within(ctx, r.Config.FetchTimeout, func(ctx context.Context) error {
		return r.fetcher(r.connection.Client).Again(ctx, release)
	})
}

// relist brings back the lists of a pair's releases that were lost.
func (r *run) relist(ctx context.Context, pair ledger.Pair) error {
	for _, release := range pair.Releases() {
		list, err := r.Held().List(release)
		if err != nil {
			return err
		}
		if list != nil || release.Local != "" {
			continue
		}
		if _, err := r.listAgain(ctx, release); err != nil {
			return err
		}
	}
	return nil
}

// listAgain fetches a release of which no list is on the disk again, once in a run, and returns its list. Where that
// fails, nothing says whether the release is what was signed: it is not used, unless the list cannot come back without
// a person.
func (r *run) listAgain(ctx context.Context, release artifact.Release) (*manifest.Manifest, error) {
	cause, tried := r.unlisted[release.String()]
	if !tried {
		if cause = errDryRun; !r.test {
			cause = r.replace(ctx, release)
		}
		if cause == nil {
			r.record.Note("the list of the files of %s was lost; it was fetched again with the release", release)
			return r.Held().List(release)
		}
		if r.unlisted == nil {
			r.unlisted = map[string]error{}
		}
		r.unlisted[release.String()] = cause
	}
	if stopped(ctx) {
		return nil, ctx.Err()
	}
	if !r.mayListAgain(release, cause) {
		if !tried {
			r.record.Note("the list of the files of %s was lost and not fetched again (%v); its files are used without a check",
				release, cause)
		}
		return nil, nil //nolint:nilnil // there is no list
	}
	return nil, exit.WithCode(exit.Refused, diag.WithHint(
		fmt.Errorf("the list of the files of %s was lost, so its files cannot be compared with what was signed; nothing of "+
			"it is read or run: %w", release, cause),
		"the next run that reaches the store fetches it again: corpus-agent deploy"))
}

var errDryRun = errors.New("a dry run fetches nothing again")

// mayListAgain reports whether a later run restores a lost list without a person's help. It does not if the store no
// longer has the release, if no list of it was ever signed, or if this host has lost the root of trust. A rollback from
// a release that failed does not wait for a later run.
func (r *run) mayListAgain(release artifact.Release, cause error) bool {
	if r.ledger.Running != nil || errors.Is(cause, store.ErrNotFound) {
		return false
	}
	client, err := trust.Recall(r.Layout.Trust())
	if err != nil || client.RecallProject(release.Project) != nil {
		return false
	}
	_, signed := client.Tree(release)
	return signed
}

// noteReplaced remembers that what runs of a release is to be started again. Releases are fetched side by side.
func (r *run) noteReplaced(release artifact.Release) {
	r.replacedMu.Lock()
	defer r.replacedMu.Unlock()
	if r.replaced == nil {
		r.replaced = map[string]bool{}
	}
	r.replaced[release.String()] = true
}

// isComplete reports whether a directory is a release as it is listed. What cannot be looked at is not.
func (r *run) isComplete(ctx context.Context, release artifact.Release, name string) (bool, error) {
	root, err := walk.OpenTree(name)
	if err != nil {
		return false, nil //nolint:nilerr // it is replaced
	}
	defer root.Close()
	list, err := r.Held().List(release)
	if err != nil || list == nil {
		return false, err
	}
	says, err := r.RecipeListed(release, list)
	if err != nil {
		return false, err
	}
	changes, err := list.Audit(ctx, root, r.Comparison(says))
	return err == nil && len(changes) == 0, ctx.Err()
}

// wasReplaced reports whether this run has fetched a release again and set aside what was in its place.
func (r *run) wasReplaced(release artifact.Release) bool {
	r.replacedMu.Lock()
	defer r.replacedMu.Unlock()
	return r.replaced[release.String()]
}
