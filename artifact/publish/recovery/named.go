package recovery

import (
	"cmp"
	"context"
	"path/filepath"
	"slices"
	"strings"

	"github.com/corpus-agent/corpus-agent/artifact/publish"
	"github.com/corpus-agent/corpus-agent/artifact/trust"
	"github.com/corpus-agent/corpus-agent/artifact/tuf"
	"github.com/corpus-agent/corpus-agent/artifact/walk"
)

// sameForLong is how many snapshots by keys that are gone are read without learning anything new.
const sameForLong = 64

// readNames finds out which files belong to the store: those that a snapshot names which is in force. Where
// the timestamp is lost it is the newest snapshot that the root lets sign. Where the root has taken the
// keys of all of them away, what each of them named counts, newest versions first: a thief may have
// written the last ones.
func (b *rebuilding) readNames(ctx context.Context) error {
	b.named = map[string][]*tuf.MetaFiles{}
	root := b.Client.Trusted().Root
	current := func(s *tuf.Metadata[tuf.SnapshotType]) bool {
		return trust.Guard(func() error { return root.VerifyDelegate(tuf.RoleSnapshot, s) }) == nil
	}
	from, err := b.inForce(ctx)
	if err != nil {
		return err
	}
	past, err := b.Client.PastRoots(ctx)
	if err != nil {
		return err
	}
	// What this publisher has seen in force is a floor: hosts may have seen it too.
	floor, err := b.kept()
	if err != nil {
		return err
	}
	if floor != nil && current(floor) {
		b.add(floor)
		b.snapshot, b.newest = max(b.snapshot, floor.Signed.Version), floor.Signed.Version
	}
	gone := &rebuilding{named: map[string][]*tuf.MetaFiles{}}
	for stale, versions := 0, b.versions[tuf.RoleSnapshot]; len(versions) > 0 && stale <= sameForLong; versions = versions[1:] {
		if from > 0 && versions[0] > from { // a publisher who was interrupted left it
			continue
		}
		if versions[0] <= b.newest {
			break
		}
		s, err := b.readSnapshot(ctx, versions[0])
		if err != nil {
			return err
		}
		if s != nil && current(s) {
			b.add(s)
			b.newest = s.Signed.Version
			break
		}
		if s != nil && signedBelow(past, s) {
			if stale++; gone.add(s) {
				stale = 0
			}
		}
	}
	if b.newest == 0 {
		if floor != nil {
			gone.add(floor)
		}
		b.named = gone.named
		b.dropSpent()
		return nil
	}
	for name, list := range b.named { // an older version would take hosts back
		b.named[name] = list[:1]
	}
	b.torn = b.newest < from
	return nil
}

// dropSpent forgets files whose versions nothing can follow: a thief wrote them. Hosts that saw the root take the
// snapshot's keys away count versions from the beginning, and so take the file that was in force before.
func (b *rebuilding) dropSpent() {
	for name, list := range b.named {
		honest := slices.DeleteFunc(slices.Clone(list), func(m *tuf.MetaFiles) bool { return publish.Spent(m.Version) })
		if len(honest) > 0 {
			b.named[name] = honest
		}
	}
}

// signedBelow reports whether one of the roots let the keys of a snapshot sign it.
func signedBelow(roots []*publish.RootRole, s *tuf.Metadata[tuf.SnapshotType]) bool {
	return slices.ContainsFunc(roots, func(r *publish.RootRole) bool {
		return trust.Guard(func() error { return r.VerifyDelegate(tuf.RoleSnapshot, s) }) == nil
	})
}

// inForce is the version of the snapshot that the newest timestamp names which holds; 0 where none does.
func (b *rebuilding) inForce(ctx context.Context) (int64, error) {
	root := b.Client.Trusted().Root
	kept, _, err := walk.Read(filepath.Join(b.Publisher.Seen, trust.MetaName(tuf.RoleTimestamp)))
	if err != nil {
		return 0, err
	}
	there, err := trust.ReadMetadata(ctx, b.Publisher.Store, trust.TimestampKey)
	if err := publish.NotAnswered(err); err != nil {
		return 0, err
	}
	var version, newest int64
	for i, data := range [][]byte{kept, there} {
		t, err := trust.Decode[tuf.TimestampType](data)
		if err != nil || trust.Guard(func() error { return root.VerifyDelegate(tuf.RoleTimestamp, t) }) != nil {
			continue
		}
		meta := t.Signed.Meta[trust.MetaName(tuf.RoleSnapshot)]
		if meta == nil {
			continue
		}
		b.snapshot = max(b.snapshot, meta.Version)
		if i == 1 { // that of the store: one that was kept may be old
			b.counted = true
			if t.Signed.Version >= newest {
				version = meta.Version
			}
		}
		newest = max(newest, t.Signed.Version)
	}
	return version, nil
}

// kept is the snapshot that this publisher has seen in force; nil for none, or a damaged one.
func (b *rebuilding) kept() (*tuf.Metadata[tuf.SnapshotType], error) {
	data, found, err := walk.Read(filepath.Join(b.Publisher.Seen, trust.MetaName(tuf.RoleSnapshot)))
	if err != nil || !found {
		return nil, err
	}
	s, err := trust.Decode[tuf.SnapshotType](data)
	if err != nil {
		return nil, nil //nolint:nilerr,nilnil // a damaged one says nothing
	}
	return s, nil
}

// readSnapshot reads a snapshot of the store; nil for one that is damaged.
func (b *rebuilding) readSnapshot(ctx context.Context, version int64) (*tuf.Metadata[tuf.SnapshotType], error) {
	data, err := trust.ReadMetadata(ctx, b.Publisher.Store, trust.RoleKey(tuf.RoleSnapshot, version))
	if err != nil {
		return nil, publish.NotAnswered(err)
	}
	s, err := trust.Decode[tuf.SnapshotType](data)
	if err != nil || s.Signed.Version != version {
		return nil, nil
	}
	return s, nil
}

// add takes in what a snapshot names, and reports whether that is anything new.
func (b *rebuilding) add(s *tuf.Metadata[tuf.SnapshotType]) bool {
	fresh := false
	for file, meta := range s.Signed.Meta {
		name, ok := strings.CutSuffix(file, ".json")
		if !ok || strings.ContainsAny(name, `/\`) || strings.HasPrefix(name, ".") || slices.ContainsFunc(b.named[name], func(m *tuf.MetaFiles) bool { return m.Version == meta.Version }) {
			continue
		}
		b.named[name] = append(b.named[name], meta)
		slices.SortFunc(b.named[name], func(x, y *tuf.MetaFiles) int { return cmp.Compare(y.Version, x.Version) })
		fresh = true
	}
	return fresh
}
