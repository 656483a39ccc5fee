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
	"time"

	"github.com/corpus-agent/corpus-agent/artifact/publish"
	"github.com/corpus-agent/corpus-agent/artifact/store"
	"github.com/corpus-agent/corpus-agent/artifact/trust"
	"github.com/corpus-agent/corpus-agent/artifact/tuf"
	"github.com/corpus-agent/corpus-agent/artifact/walk"
	"github.com/corpus-agent/corpus-agent/state/diag"
)

// Rebuilt says what a store was put together from again.
type Rebuilt struct {
	Roles map[string]int64 `json:"roles"` // version of each that is in force again
	// Lost are projects that hosts get nothing new of until their owners sign them again: what a snapshot
	// names of them is missing, or is not signed by keys that may.
	Lost []string `json:"lost"`
	// Missing says for each of Lost, and for targets, what there is not.
	Missing []Missing `json:"missing,omitempty"`
	// Restored are files that the store had lost and that this publisher had kept.
	Restored []string `json:"restored,omitempty"`
	// Pages are pages of projects' versions that are missing. Hosts follow the channels without them; a project
	// cannot be published before they are restored from a backup or a mirror.
	Pages []string `json:"pages,omitempty"`
	// Unnamed are roles that were taken although no snapshot is left that names them. What a publisher
	// who was interrupted had not yet put into force may be among them.
	Unnamed []string `json:"unnamed,omitempty"`
}

// Missing is a file of which a snapshot says that it belongs to the store.
type Missing struct {
	Role    string `json:"role"`
	Version int64  `json:"version"`
	Why     string `json:"why"`
}

func (m *Missing) Error() string { return fmt.Sprintf("%s %d: %s", m.Role, m.Version, m.Why) }

// Rebuild makes snapshot and timestamp again, out of what snapshots have named before: the way back after
// a thief of their keys, since replaced in the root, spoiled them, and after a store lost files or was
// restored from a backup in part. What no snapshot has named is not taken: a publisher who was interrupted
// left it. Versions never go back, and no project is forgotten: where a file is missing, its entry stays
// and the result names it. It takes the keys of snapshot and timestamp.
func Rebuild(ctx context.Context, p *publish.Publisher) (result Rebuilt, err error) {
	err = p.Retry(ctx, func() error {
		result, err = rebuildOnce(ctx, p)
		return err
	})
	return result, err
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
	// A root that is missing may be put back: what is signed below it shows that the store is this
	// publisher's, since stageRebuild finds nothing else.
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
	n := p.Onto(client, "")
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

// mounted refuses a store in which nothing lies: a share that is not mounted looks like that, and a rebuild would put
// a store into its place that has nothing but what this publisher has kept.
func mounted(ctx context.Context, p *publish.Publisher) error {
	for _, err := range p.Store.List(ctx, "") {
		if err != nil && !errors.Is(err, store.ErrNoStore) {
			return err
		}
		if err == nil {
			return nil
		}
	}
	return publish.NewMistake("see that it is mounted and that --store is right; restore the store from a backup first if all of it is lost",
		"the store is empty, and a rebuild takes what the store has: nothing was written")
}

// rebuilding is a rebuild under way.
type rebuilding struct {
	*publish.Next
	versions map[string][]int64 // of each role in the store, newest first
	named    map[string][]*tuf.MetaFiles
	newest   int64 // version of the snapshot that named comes from; 0 for several by keys that are gone
	torn     bool  // the snapshot in force is lost, and named is of one before it
	snapshot int64 // the highest version of a snapshot that is known of; 0 for none
	counted  bool  // a timestamp that holds says so
	result   Rebuilt
	meta     map[string]*tuf.MetaFiles
	objects  []publish.Object
}

// StageRebuild signs a snapshot and a timestamp of what snapshots have named. ready is a targets role that
// takes the place of the one in the store; nil for none.
func StageRebuild(ctx context.Context, n *publish.Next, ready []byte) (Rebuilt, []publish.Object, error) {
	b := &rebuilding{Next: n, meta: map[string]*tuf.MetaFiles{}, result: Rebuilt{Roles: map[string]int64{}, Lost: []string{}}}
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
	role, missing, err := b.take(ctx, tuf.RoleTargets, func(r *trust.Role) error { return root.VerifyDelegate(tuf.RoleTargets, r) })
	if err != nil {
		return err
	}
	if missing != nil {
		b.result.Missing = append(b.result.Missing, *missing)
		return diag.WithHint(missing,
			"let who has the targets key run `corpus export targets -o targets.draft`, read it, `corpus sign targets.draft`, and then run `corpus import targets.draft`")
	}
	if role == nil {
		return &Missing{Role: tuf.RoleTargets, Why: "no version in the store is signed as the root wants it"}
	}
	b.Client.Trusted().Targets[tuf.RoleTargets] = role
	return nil
}

// takeRest finds the projects, and whatever else snapshots have named.
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
		over := func(version int64) bool { // where a newer file was named, an older one does not stand for it
			list := b.named[name]
			return version <= ended[project] && (len(list) == 0 || list[0].Version <= ended[project])
		}
		if b.Delegates(project) {
			verify = func(r *trust.Role) error {
				if over(r.Signed.Version) { // it counts no longer, and hosts have seen it
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

// take finds the file of a role that the snapshots name. The first that is there and signed as it should
// be is the one; else what the newest snapshot says of it stays, and it is missing.
func (b *rebuilding) take(ctx context.Context, name string, verify func(*trust.Role) error) (*trust.Role, *Missing, error) {
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

// takeUnnamed takes the newest file of a role that is signed as it should be, where the snapshot that
// would name it is lost: hosts may have seen it.
func (b *rebuilding) takeUnnamed(ctx context.Context, name string, verify func(*trust.Role) error) (*trust.Role, error) {
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

// read reads the file that a snapshot describes: of the store, or else what this publisher kept of it.
// It is nil where neither is what was described.
func (b *rebuilding) read(ctx context.Context, name string, meta *tuf.MetaFiles) (data []byte, kept bool, err error) {
	data, err = trust.ReadMetadata(ctx, b.Publisher.Store, trust.RoleKey(name, meta.Version))
	if err == nil && meta.VerifyLengthHashes(data) == nil {
		return data, false, nil
	}
	if err := publish.NotAnswered(err); err != nil {
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

// sign signs the new snapshot and a timestamp that hosts take for newer than any they have seen with these
// keys.
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

// lastTimestamp is the highest version of a timestamp that this publisher or the store knows of and
// whose signatures hold, and the condition to replace what the store has. Where the store has none that
// holds, it is a version that no host can have seen.
func lastTimestamp(ctx context.Context, p *publish.Publisher, root *publish.RootRole, snapshot int64) (int64, store.Condition, error) {
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

// beyond is a version that is higher than any a host has seen, where this is the highest known.
func beyond(version int64) int64 {
	if version > math.MaxInt64-publish.LostVersions {
		return version
	}
	return version + publish.LostVersions
}

// lastSnapshot is the highest version of a snapshot in the store whose signatures hold.
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

// newestGood reads the newest version of a role that is what it says and signed by who may; nil
// where there is none.
func newestGood(ctx context.Context, p *publish.Publisher, name string, versions []int64, verify func(*trust.Role) error) (*trust.Role, []byte, error) {
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
