// Package releases fetches the releases of a run, and keeps those on the disk as they were unpacked.
//
// Root reads and runs a release only if its code is what was unpacked: Intact compares it with the list of its files.
// RepairBefore and Repair fetch releases again that differ from their lists. A run without a store fetches nothing, and
// uses what is on the disk if it is intact.
package releases

import (
	"context"
	"errors"
	"slices"
	"sync"

	"github.com/corpus-agent/corpus-agent/agent/connection"
	"github.com/corpus-agent/corpus-agent/agent/fetch"
	"github.com/corpus-agent/corpus-agent/agent/inspect"
	"github.com/corpus-agent/corpus-agent/agent/ledger"
	"github.com/corpus-agent/corpus-agent/agent/report"
	"github.com/corpus-agent/corpus-agent/artifact"
	"github.com/corpus-agent/corpus-agent/artifact/trust"
	"github.com/corpus-agent/corpus-agent/artifact/unpack"
	"github.com/corpus-agent/corpus-agent/artifact/walk"
)

// Run is the part of one run of the agent that handles the directories of releases. All of its exported fields have to
// be set.
type Run struct {
	Host       *inspect.Host
	ID         string
	Test       bool // a dry run: nothing is changed or fetched again
	Ledger     *ledger.Ledger
	Record     *report.Builder
	Connection *connection.Run

	corrected map[string]bool  // deployed releases whose modes were corrected, by name
	unpacked  map[string]bool  // releases unpacked in this run, before any program or state ran, by name
	unlisted  map[string]error // why releases whose lists were lost were not fetched again, by name

	mu       sync.Mutex
	replaced map[string]bool // releases whose directories this run has replaced, by name; under mu
}

// Fetch fetches those releases of a pair that are not on the disk.
func (r *Run) Fetch(ctx context.Context, client *trust.Client, pair ledger.Pair) error {
	held := r.OnDisk(pair)
	err := r.Record.Stage("fetch", pair.String(), func() error {
		return r.Connection.Within(ctx, r.Host.Config.FetchTimeout, func(ctx context.Context) error {
			return r.fetcher(client).Fetch(ctx, pair.Releases())
		})
	})
	if err == nil {
		r.unpacked = map[string]bool{}
		for _, release := range pair.Releases() {
			r.unpacked[release.String()] = !slices.Contains(held, release)
		}
	}
	return err
}

// FetchAgain fetches the missing releases of a pair that was deployed before.
func (r *Run) FetchAgain(ctx context.Context, pair ledger.Pair) error {
	if r.Connection.Client == nil {
		return errUnasked
	}
	return r.Fetch(ctx, r.Connection.Client, pair)
}

// errUnasked is the error of a fetch in a run without a store.
var errUnasked = errors.New("the store was not asked")

// fetcher returns the Fetcher for the store of a client.
func (r *Run) fetcher(client *trust.Client) *fetch.Fetcher {
	running := map[string]string{}
	if runs := r.Ledger.Runs(); runs != nil {
		for _, release := range runs.Releases() {
			running[release.Project] = release.Dir()
		}
	}
	c := r.Host.Config
	return &fetch.Fetcher{
		Held: r.Host.Held(), Client: client, Store: r.Connection.Store, Progress: r.Record, Run: r.ID, Running: running,
		Limits: unpack.Limits{Bytes: c.UnpackBytes, Files: c.UnpackFiles, Depth: c.UnpackDepth, Ratio: c.UnpackRatio},
		Intact: r.isComplete, Replaced: r.noteReplaced,
	}
}

// replace fetches a release again, and replaces its directory.
func (r *Run) replace(ctx context.Context, release artifact.Release) error {
	if r.Connection.Client == nil {
		return errUnasked
	}
	return r.Connection.Within(ctx, r.Host.Config.FetchTimeout, func(ctx context.Context) error {
		return r.fetcher(r.Connection.Client).Again(ctx, release)
	})
}

// noteReplaced records that the directory of a release was replaced, so that its units are restarted. Fetches of
// several releases call it concurrently.
func (r *Run) noteReplaced(release artifact.Release) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.replaced == nil {
		r.replaced = map[string]bool{}
	}
	r.replaced[release.String()] = true
}

// isComplete reports whether a directory has the files in the list of a release. It reports false for a directory that
// cannot be read.
func (r *Run) isComplete(ctx context.Context, release artifact.Release, name string) (bool, error) {
	root, err := walk.OpenTree(name)
	if err != nil {
		return false, nil //nolint:nilerr // it is replaced
	}
	defer root.Close()
	list, err := r.Host.Held().List(release)
	if err != nil || list == nil {
		return false, err
	}
	says, err := r.Host.RecipeListed(release, list)
	if err != nil {
		return false, err
	}
	changes, err := list.Audit(ctx, root, r.Host.Comparison(says))
	return err == nil && len(changes) == 0, ctx.Err()
}

// Replaced reports whether this run has fetched a release again and replaced its directory.
func (r *Run) Replaced(release artifact.Release) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.replaced[release.String()]
}

// AnyReplaced reports whether this run has replaced the directory of a release.
func (r *Run) AnyReplaced() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return len(r.replaced) > 0
}
