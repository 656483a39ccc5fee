// Package recovery restores a store that has lost files, or whose snapshot and timestamp were signed by an attacker.
package recovery

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/corpus-agent/corpus-agent/artifact/publish"
	"github.com/corpus-agent/corpus-agent/artifact/store"
	"github.com/corpus-agent/corpus-agent/artifact/trust"
	"github.com/corpus-agent/corpus-agent/artifact/tuf"
	"github.com/corpus-agent/corpus-agent/state/diag"
)

// Rebuilt lists the files from which a store was rebuilt, and those that are lost.
type Rebuilt struct {
	Roles map[string]int64 `json:"roles"` // version of each role that is in force again
	// Lost are projects whose files are missing or have no valid signatures. Hosts get no new releases of them until
	// their owners sign them again.
	Lost []string `json:"lost"`
	// Missing has the missing file of each project of Lost, and of targets.
	Missing []Missing `json:"missing,omitempty"`
	// Restored are files that the store had lost and that were written again from this publisher's copies.
	Restored []string `json:"restored,omitempty"`
	// Pages are the missing pages of projects' versions. Hosts can follow the channels without them; a project cannot
	// be published before they are restored from a backup or a mirror.
	Pages []string `json:"pages,omitempty"`
	// Unnamed are roles that were restored although no remaining snapshot names them. They may include changes of an
	// interrupted publisher that were never in force.
	Unnamed []string `json:"unnamed,omitempty"`
}

// Missing is a file that a snapshot names and that is lost or has no valid signatures.
type Missing struct {
	Role    string `json:"role"`
	Version int64  `json:"version"`
	Why     string `json:"why"`
}

func (m *Missing) Error() string { return fmt.Sprintf("%s %d: %s", m.Role, m.Version, m.Why) }

// Rebuild signs a new snapshot and timestamp with the files that earlier snapshots have named. It repairs a store after
// an attacker with their keys, which have since been replaced in the root, has signed false ones, and after the store
// lost files or was partly restored from a backup.
//
// Rebuild leaves out files that no snapshot has named, since an interrupted publisher left them. Version numbers never
// decrease, and no project is dropped: if a file is missing, its entry stays and the result names it. Rebuild needs the
// keys of snapshot and timestamp.
func Rebuild(ctx context.Context, p *publish.Publisher) (result Rebuilt, err error) {
	err = p.Retry(ctx, func() error {
		result, err = rebuildOnce(ctx, p)
		return err
	})
	return result, beyondRebuild(err)
}

// beyondRebuild replaces a hint to run a rebuild in an error of the rebuild itself.
func beyondRebuild(err error) error {
	if !strings.Contains(diag.HintOf(err), "refresh --rebuild") {
		return err
	}
	return diag.StoreLost.Hint(err,
		"the rebuild cannot restore this file: restore it from a backup or a mirror of the store, or run this again "+
			"with the --keys directory that published last, whose %s has copies; `corpus verify` says what else is missing",
		"seen")
}

func rebuildOnce(ctx context.Context, p *publish.Publisher) (Rebuilt, error) {
	if err := mounted(ctx, p); err != nil {
		return Rebuilt{}, err
	}
	client, err := trust.OpenToRenew(p.Store, p.Seen)
	if err != nil {
		return Rebuilt{}, err
	}
	err = client.Belongs(ctx)
	// A missing root may be restored. The roles that are signed below the root show that the store belongs to this
	// publisher: StageRebuild finds none in another store.
	if err != nil && !errors.Is(err, trust.ErrRootMissing) {
		return Rebuilt{}, err
	}
	if err := client.Roots(ctx); err != nil {
		return Rebuilt{}, err
	}
	objects, roots, err := restoreRoots(ctx, p, client)
	if err != nil {
		return Rebuilt{}, err
	}
	n := p.NextAfter(client, "")
	result, rebuilt, err := StageRebuild(ctx, n, nil)
	if err != nil {
		return result, err
	}
	result.Restored = append(roots, result.Restored...)
	objects = append(objects, rebuilt...)
	if err := client.Recall(); err != nil {
		return result, err
	}
	n.Strict = true
	if err := n.Rehearse(ctx, objects, true); err != nil {
		return result, err
	}
	if err := p.Write(ctx, objects); err != nil {
		return result, err
	}
	return result, p.Keep(ctx, client, objects)
}

// mounted returns an error for an empty store. A share that is not mounted looks empty, and a rebuild would write a
// store there that has only the copies of this publisher.
func mounted(ctx context.Context, p *publish.Publisher) error {
	for _, err := range p.Store.List(ctx, "") {
		if err != nil && !errors.Is(err, store.ErrNoStore) {
			return err
		}
		if err == nil {
			return nil
		}
	}
	return publish.NewMistake(diag.StoreLost,
		"see that it is mounted and that --store is right; if all of it is lost, restore it from a backup or a copy "+
			"first; where none is left, see docs/trust.md#the-store-lost-all-its-files",
		"the store is empty, so there is nothing to rebuild from: nothing was written")
}

// rebuilding is the state of a rebuild.
type rebuilding struct {
	*publish.Next
	versions map[string][]int64 // of each role in the store, newest first
	named    map[string][]*tuf.MetaFiles
	// version of the snapshot with the names; 0 if they come from several, signed by keys that were removed
	newest   int64
	torn     bool  // the current snapshot is lost, and the names come from an earlier one
	snapshot int64 // the highest known version of a snapshot, or 0
	counted  bool  // a valid timestamp has that version
	result   Rebuilt
	meta     map[string]*tuf.MetaFiles
	objects  []publish.Object
}

// StageRebuild signs a snapshot and a timestamp with the files that snapshots have named. ready, if not nil, is a
// targets role that replaces the one in the store.
func StageRebuild(ctx context.Context, n *publish.Next, ready []byte) (Rebuilt, []publish.Object, error) {
	b := &rebuilding{Next: n, meta: map[string]*tuf.MetaFiles{},
		result: Rebuilt{Roles: map[string]int64{}, Lost: []string{}}}
	var err error
	if b.versions, err = n.Publisher.Versions(ctx); err != nil {
		return b.result, nil, err
	}
	if err := b.readNames(ctx); err != nil {
		return b.result, nil, err
	}
	if err := b.takeTargets(ctx, ready); err != nil {
		return b.result, nil, err
	}
	if err := b.takeRest(ctx); err != nil {
		return b.result, nil, err
	}
	last, err := b.sign(ctx)
	return b.result, append(b.objects, last...), err
}

// sign signs the new snapshot, and a timestamp that hosts accept as newer than any that they have seen with these keys.
func (b *rebuilding) sign(ctx context.Context) ([]publish.Object, error) {
	p, root := b.Publisher, b.Client.Trusted().Root
	signers, err := p.KeysFor(tuf.RoleSnapshot, b.Client.Delegation(tuf.RoleSnapshot))
	if err != nil {
		return nil, err
	}
	online, err := p.KeysFor(tuf.RoleTimestamp, b.Client.Delegation(tuf.RoleTimestamp))
	if err != nil {
		return nil, err
	}
	snapshot := tuf.NewSnapshot(p.Expires(p.Expiry.WithDefaults().Snapshot))
	snapshot.Signed.Meta = b.meta
	if snapshot.Signed.Version, err = lastSnapshot(ctx, p, root, b.versions[tuf.RoleSnapshot]); err != nil {
		return nil, err
	}
	if snapshot.Signed.Version = max(snapshot.Signed.Version, b.snapshot); !b.counted {
		snapshot.Signed.Version = beyond(snapshot.Signed.Version)
	}
	timestamp := tuf.NewTimestamp(time.Now().UTC())
	var cond store.Condition
	if timestamp.Signed.Version, cond, err = lastTimestamp(ctx, p, root, snapshot.Signed.Version); err != nil {
		return nil, err
	}
	first, file, err := publish.StageRole(ctx, p, tuf.RoleSnapshot, snapshot, &snapshot.Signed.Version, signers)
	if err != nil {
		return nil, err
	}
	timestamp.Signed.Meta = map[string]*tuf.MetaFiles{trust.MetaName(tuf.RoleSnapshot): file}
	second, err := p.StageTimestamp(timestamp, online, cond)
	return []publish.Object{first, second}, err
}
