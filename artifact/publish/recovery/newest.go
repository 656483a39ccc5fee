package recovery

import (
	"context"
	"errors"
	"math"
	"path/filepath"

	"github.com/corpus-agent/corpus-agent/artifact/publish"
	"github.com/corpus-agent/corpus-agent/artifact/store"
	"github.com/corpus-agent/corpus-agent/artifact/trust"
	"github.com/corpus-agent/corpus-agent/artifact/tuf"
	"github.com/corpus-agent/corpus-agent/artifact/walk"
)

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
