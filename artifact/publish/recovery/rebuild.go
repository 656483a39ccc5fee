// Package recovery makes a store valid again that has lost files, or whose snapshot and timestamp a thief has signed.
package recovery

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/corpus-agent/corpus-agent/artifact/publish"
	"github.com/corpus-agent/corpus-agent/artifact/store"
	"github.com/corpus-agent/corpus-agent/artifact/trust"
	"github.com/corpus-agent/corpus-agent/artifact/tuf"
	"github.com/corpus-agent/corpus-agent/artifact/walk"
	"github.com/corpus-agent/corpus-agent/state/diag"
)

// Rebuilt says from what a store was rebuilt.
type Rebuilt struct {
	Roles map[string]int64 `json:"roles"` // version of each that is in force again
	// Lost are projects whose files are missing or not signed as they should be. Hosts get nothing new of them until
	// their owners sign them again.
	Lost []string `json:"lost"`
	// Missing has the missing file of each project of Lost, and of targets.
	Missing []Missing `json:"missing,omitempty"`
	// Restored are files that the store had lost and that were written again from this publisher's copies.
	Restored []string `json:"restored,omitempty"`
	// Pages are pages of projects' versions that are missing. Hosts follow the channels without them; a project
	// cannot be published before they are restored from a backup or a mirror.
	Pages []string `json:"pages,omitempty"`
	// Unnamed are roles that were taken although no snapshot that names them is left. They may include changes of an
	// interrupted publisher that were never in force.
	Unnamed []string `json:"unnamed,omitempty"`
}

// Missing is a file that a snapshot names and that is lost or not signed as it should be.
type Missing struct {
	Role    string `json:"role"`
	Version int64  `json:"version"`
	Why     string `json:"why"`
}

func (m *Missing) Error() string { return fmt.Sprintf("%s %d: %s", m.Role, m.Version, m.Why) }

// Rebuild makes snapshot and timestamp again from what snapshots have named before. It repairs a store after a thief of
// their keys, which have since been replaced in the root, has signed false ones, and after the store lost files or was
// restored in part from a backup.
//
// Rebuild leaves out files that no snapshot has named, since an interrupted publisher left them. Versions never go
// back, and no project is dropped: if a file is missing, its entry stays and the result names it. Rebuild needs the
// keys of snapshot and timestamp.
func Rebuild(ctx context.Context, p *publish.Publisher) (result Rebuilt, err error) {
	err = p.Retry(ctx, func() error {
		result, err = rebuildOnce(ctx, p)
		return err
	})
	return result, beyondRebuild(err)
}

// beyondRebuild gives an error of a rebuild another hint than to run it.
func beyondRebuild(err error) error {
	if !strings.Contains(diag.HintOf(err), "refresh --rebuild") {
		return err
	}
	return diag.WithHint(err,
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
	// A missing root may be put back. That the store is this publisher's shows in what is signed below the root:
	// StageRebuild finds nothing in another store.
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

// mounted refuses an empty store. A share that is not mounted looks empty, and a rebuild would write a store there that
// has only what this publisher has kept.
func mounted(ctx context.Context, p *publish.Publisher) error {
	for _, err := range p.Store.List(ctx, "") {
		if err != nil && !errors.Is(err, store.ErrNoStore) {
			return err
		}
		if err == nil {
			return nil
		}
	}
	return publish.NewMistake(
		"see that it is mounted and that --store is right; restore the store from a backup first if all of it is lost",
		"the store is empty, so there is nothing to rebuild from: nothing was written")
}

// rebuilding is the state of a rebuild.
type rebuilding struct {
	*publish.Next
	versions map[string][]int64 // of each role in the store, newest first
	named    map[string][]*tuf.MetaFiles
	// version of the snapshot that named comes from; 0 if it comes from several, signed by keys that are gone
	newest   int64
	torn     bool  // the snapshot in force is lost, and named comes from an earlier one
	snapshot int64 // the highest known version of a snapshot, or 0
	counted  bool  // a valid timestamp has that version
	result   Rebuilt
	meta     map[string]*tuf.MetaFiles
	objects  []publish.Object
}

// StageRebuild signs a snapshot and a timestamp for what snapshots have named. ready, if not nil, is a targets role
// that replaces the one in the store.
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

// takeTargets finds the targets role, which says who may sign the others.
func (b *rebuilding) takeTargets(ctx context.Context, ready []byte) error {
	root := b.Client.Trusted().Root
	if ready != nil {
		role, err := trust.Decode[tuf.TargetsType](ready)
		if err != nil {
			return err
		}
		o, file, err := b.Publisher.StageReady(ctx, tuf.RoleTargets, ready)
		if err != nil {
			return err
		}
		b.objects, b.meta[trust.MetaName(tuf.RoleTargets)] = append(b.objects, o), file
		b.result.Roles[tuf.RoleTargets] = role.Signed.Version
		b.Client.Trusted().Targets[tuf.RoleTargets] = role
		return nil
	}
	role, missing, err := b.take(ctx, tuf.RoleTargets, func(r *trust.Role) error {
		return root.VerifyDelegate(tuf.RoleTargets, r)
	})
	if err != nil {
		return err
	}
	if missing != nil {
		b.result.Missing = append(b.result.Missing, *missing)
		return diag.WithHint(missing,
			"let who has the targets key run `corpus export targets -o targets.draft`, read it, `corpus sign "+
				"targets.draft`, and then run `corpus import targets.draft`")
	}
	if role == nil {
		return &Missing{Role: tuf.RoleTargets, Why: "no version in the store is signed as the root requires"}
	}
	b.Client.Trusted().Targets[tuf.RoleTargets] = role
	return nil
}

// takeRest finds the projects and everything else that snapshots have named.
func (b *rebuilding) takeRest(ctx context.Context) error {
	targets := b.Client.Trusted().Targets[tuf.RoleTargets]
	ended, err := trust.Ended(targets)
	if err != nil {
		return err
	}
	names := slices.Collect(maps.Keys(b.named))
	if len(names) == 0 || b.torn {
		for _, project := range b.Client.Projects() {
			names = append(names, project)
			if len(b.versions[trust.HeadRole(project)]) > 0 {
				names = append(names, trust.HeadRole(project))
			}
		}
	}
	slices.Sort(names)
	names = slices.Compact(names)
	for _, name := range names {
		if name == tuf.RoleTargets {
			continue
		}
		verify := func(*trust.Role) error { return nil }
		project, _ := trust.IsHead(name)
		over := func(version int64) bool { // an older file does not stand for a newer one that was named
			list := b.named[name]
			return version <= ended[project] && (len(list) == 0 || list[0].Version <= ended[project])
		}
		if b.Delegates(project) {
			verify = func(r *trust.Role) error {
				if over(r.Signed.Version) { // it is void, and hosts have seen that
					return nil
				}
				return targets.VerifyDelegate(project, r)
			}
		}
		role, missing, err := b.take(ctx, name, verify)
		if err == nil && missing != nil && name == trust.HeadRole(project) {
			if role, err = b.takeWhole(ctx, project, verify); role != nil {
				missing = nil
			}
		}
		if err != nil {
			return err
		}
		if role != nil && !over(role.Signed.Version) {
			if err := b.takePages(ctx, project, role); err != nil {
				return err
			}
		}
		if missing != nil && over(missing.Version) {
			continue
		}
		if missing != nil && !slices.Contains(b.result.Lost, project) {
			b.result.Lost, b.result.Missing = append(b.result.Lost, project), append(b.result.Missing, *missing)
		}
	}
	return nil
}

// take finds the file of a role that snapshots have named: the first that exists and is signed as it should be. If
// there is none, the entry of the newest snapshot stays, and the file is missing.
func (b *rebuilding) take(ctx context.Context, name string, verify func(*trust.Role) error) (*trust.Role, *Missing,
	error) {
	if len(b.named) == 0 || b.torn {
		role, err := b.takeUnnamed(ctx, name, verify)
		if role != nil || err != nil || !b.torn {
			return role, nil, err
		}
	}
	var missing *Missing
	for _, meta := range b.named[name] {
		data, kept, err := b.read(ctx, name, meta)
		if err != nil {
			return nil, nil, err
		}
		why := "the store has lost it"
		if data != nil {
			role, err := trust.Decode[tuf.TargetsType](data)
			if err == nil && role.Signed.Version == meta.Version && trust.Guard(func() error { return verify(role) }) == nil {
				if kept {
					b.objects = append(b.objects, publish.Object{Key: trust.RoleKey(name, meta.Version), Data: data})
					b.result.Restored = append(b.result.Restored, fmt.Sprintf("%d.%s", meta.Version, trust.MetaName(name)))
				}
				b.meta[trust.MetaName(name)] = meta
				b.result.Roles[name] = meta.Version
				return role, nil, nil
			}
			why = "it is not signed by keys that may"
		}
		if missing == nil {
			missing = &Missing{Role: name, Version: meta.Version, Why: why}
			b.meta[trust.MetaName(name)] = meta
		}
	}
	return nil, missing, nil
}

// takeUnnamed takes the newest file of a role that is signed as it should be when the snapshot that would name it is
// lost, since hosts may have seen that file.
func (b *rebuilding) takeUnnamed(ctx context.Context, name string, verify func(*trust.Role) error) (*trust.Role,
	error) {
	versions := slices.Clone(b.versions[name])
	if list := b.named[name]; len(list) > 0 {
		versions = slices.DeleteFunc(versions, func(v int64) bool { return v <= list[0].Version })
	}
	role, data, err := newestGood(ctx, b.Publisher, name, versions, verify)
	if role != nil {
		b.meta[trust.MetaName(name)] = publish.MetaFile(role.Signed.Version, data)
		b.result.Roles[name] = role.Signed.Version
		b.result.Unnamed = append(b.result.Unnamed, name)
	}
	return role, err
}

// read returns the file that a snapshot describes, from the store or from this publisher's copies. It is nil if neither
// has that file.
func (b *rebuilding) read(ctx context.Context, name string, meta *tuf.MetaFiles) (data []byte, kept bool, err error) {
	data, err = trust.ReadMetadata(ctx, b.Publisher.Store, trust.RoleKey(name, meta.Version))
	if err == nil && meta.VerifyLengthHashes(data) == nil {
		return data, false, nil
	}
	if err := publish.Unanswered(err); err != nil {
		return nil, false, err
	}
	for _, kept := range []func(string) ([]byte, error){b.Client.Kept, b.Client.KeptList} {
		data, err = kept(name)
		if err != nil || data != nil && meta.VerifyLengthHashes(data) == nil {
			return data, err == nil, err
		}
	}
	return nil, false, nil
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

// lastTimestamp returns the highest version of a valid timestamp that this publisher or the store has, and the
// condition for replacing the one in the store. If the store has no valid timestamp, the version is one that no host
// can have seen.
func lastTimestamp(ctx context.Context, p *publish.Publisher, root *publish.RootRole, snapshot int64) (int64,
	store.Condition, error) {
	cond := store.Condition{IfAbsent: true}
	etag, err := p.TimestampETag(ctx)
	switch {
	case err == nil:
		cond = store.Condition{IfMatch: etag}
	case !errors.Is(err, store.ErrNotFound):
		return 0, cond, err
	}
	version := func(data []byte) int64 {
		t, err := trust.Decode[tuf.TimestampType](data)
		if err != nil || root.VerifyDelegate(tuf.RoleTimestamp, t) != nil {
			return 0
		}
		return t.Signed.Version
	}
	kept, _, err := walk.Read(filepath.Join(p.Seen, trust.MetaName(tuf.RoleTimestamp)))
	if err != nil {
		return 0, cond, err
	}
	there, _ := trust.ReadMetadata(ctx, p.Store, trust.TimestampKey)
	last := max(version(kept), version(there))
	if version(there) == 0 {
		last = beyond(max(last, snapshot))
	}
	return last, cond, nil
}

// beyond returns a version that is higher than any that hosts have seen, if version is the highest known.
func beyond(version int64) int64 {
	if version > math.MaxInt64-publish.LostVersions {
		return version
	}
	return version + publish.LostVersions
}

// lastSnapshot returns the highest version of a valid snapshot in the store.
func lastSnapshot(ctx context.Context, p *publish.Publisher, root *publish.RootRole, versions []int64) (int64, error) {
	for _, version := range versions {
		data, err := trust.ReadMetadata(ctx, p.Store, trust.RoleKey(tuf.RoleSnapshot, version))
		if err != nil {
			return 0, err
		}
		s, err := trust.Decode[tuf.SnapshotType](data)
		if err == nil && s.Signed.Version == version && root.VerifyDelegate(tuf.RoleSnapshot, s) == nil {
			return version, nil
		}
	}
	return 0, nil
}

// newestGood reads the newest valid version of a role, or nil.
func newestGood(ctx context.Context, p *publish.Publisher, name string, versions []int64,
	verify func(*trust.Role) error) (*trust.Role, []byte, error) {
	for _, version := range versions {
		data, err := trust.ReadMetadata(ctx, p.Store, trust.RoleKey(name, version))
		if err != nil {
			return nil, nil, err
		}
		role, err := trust.Decode[tuf.TargetsType](data)
		if err == nil && role.Signed.Version == version && verify(role) == nil {
			return role, data, nil
		}
	}
	return nil, nil, nil
}
