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

// sameForLong is the number of successive snapshots, signed by keys that were removed, without a new name after which
// no older ones are read.
const sameForLong = 64

// readNames finds the files that belong to the store, which are those that the current snapshot names. If the timestamp
// is lost, the newest snapshot with valid signatures is used. If the root has removed the keys of all snapshots, the
// names of all of them count, newest versions first, since an attacker may have signed the last ones.
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
	// Metadata older than that seen by this publisher does not count, since hosts may have seen the same.
	floor, err := b.kept()
	if err != nil {
		return err
	}
	if floor != nil && current(floor) {
		b.add(floor)
		b.snapshot, b.newest = max(b.snapshot, floor.Signed.Version), floor.Signed.Version
	}
	gone := &rebuilding{named: map[string][]*tuf.MetaFiles{}}
	for stale, versions := 0, b.versions[tuf.RoleSnapshot]; len(versions) > 0 &&
		stale <= sameForLong; versions = versions[1:] {
		if from > 0 && versions[0] > from { // an interrupted publisher left it
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
	for name, list := range b.named { // older versions would be a rollback for hosts
		b.named[name] = list[:1]
	}
	b.torn = b.newest < from
	return nil
}

// dropSpent drops files with used-up version numbers: an attacker wrote them. Hosts that saw the root revoke the
// snapshot's keys count versions from the beginning, and accept the file that was in force before.
func (b *rebuilding) dropSpent() {
	for name, list := range b.named {
		honest := slices.DeleteFunc(slices.Clone(list), func(m *tuf.MetaFiles) bool { return publish.Spent(m.Version) })
		if len(honest) > 0 {
			b.named[name] = honest
		}
	}
}

// signedBelow reports whether the snapshot was signed with keys of one of the roots.
func signedBelow(roots []*publish.RootRole, s *tuf.Metadata[tuf.SnapshotType]) bool {
	return slices.ContainsFunc(roots, func(r *publish.RootRole) bool {
		return trust.Guard(func() error { return r.VerifyDelegate(tuf.RoleSnapshot, s) }) == nil
	})
}

// inForce returns the version of the snapshot that the newest valid timestamp names, or 0.
func (b *rebuilding) inForce(ctx context.Context) (int64, error) {
	root := b.Client.Trusted().Root
	kept, _, err := walk.Read(filepath.Join(b.Publisher.Seen, trust.MetaName(tuf.RoleTimestamp)))
	if err != nil {
		return 0, err
	}
	there, err := trust.ReadMetadata(ctx, b.Publisher.Store, trust.TimestampKey)
	if err := publish.Unanswered(err); err != nil {
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
		if i == 1 { // the one in the store; a copy may be old
			b.counted = true
			if t.Signed.Version >= newest {
				version = meta.Version
			}
		}
		newest = max(newest, t.Signed.Version)
	}
	return version, nil
}

// kept returns the snapshot that this publisher has seen in force, or nil if there is none or it is damaged.
func (b *rebuilding) kept() (*tuf.Metadata[tuf.SnapshotType], error) {
	data, found, err := walk.Read(filepath.Join(b.Publisher.Seen, trust.MetaName(tuf.RoleSnapshot)))
	if err != nil || !found {
		return nil, err
	}
	s, err := trust.Decode[tuf.SnapshotType](data)
	if err != nil {
		return nil, nil //nolint:nilerr,nilnil // a damaged copy has no content
	}
	return s, nil
}

// readSnapshot reads a snapshot of the store, or nil if it is damaged.
func (b *rebuilding) readSnapshot(ctx context.Context, version int64) (*tuf.Metadata[tuf.SnapshotType], error) {
	data, err := trust.ReadMetadata(ctx, b.Publisher.Store, trust.RoleKey(tuf.RoleSnapshot, version))
	if err != nil {
		return nil, publish.Unanswered(err)
	}
	s, err := trust.Decode[tuf.SnapshotType](data)
	if err != nil || s.Signed.Version != version {
		return nil, nil
	}
	return s, nil
}

// add adds the files that a snapshot names, and reports whether any of them is new.
func (b *rebuilding) add(s *tuf.Metadata[tuf.SnapshotType]) bool {
	fresh := false
	for file, meta := range s.Signed.Meta {
		name, ok := strings.CutSuffix(file, ".json")
		if !ok || strings.ContainsAny(name, `/\`) || strings.HasPrefix(name, ".") ||
			slices.ContainsFunc(b.named[name], func(m *tuf.MetaFiles) bool { return m.Version == meta.Version }) {
			continue
		}
		b.named[name] = append(b.named[name], meta)
		slices.SortFunc(b.named[name], func(x, y *tuf.MetaFiles) int { return cmp.Compare(y.Version, x.Version) })
		fresh = true
	}
	return fresh
}
