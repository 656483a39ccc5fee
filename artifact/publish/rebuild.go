package publish

import (
	"context"
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/theupdateframework/go-tuf/v2/metadata"

	"github.com/corpus-agent/corpus-agent/artifact/store"
	"github.com/corpus-agent/corpus-agent/artifact/trust"
)

// Rebuilt says what a store was put together from again.
type Rebuilt struct {
	Roles map[string]int64 `json:"roles"` // version of each, the newest whose signatures hold
	Lost  []string         `json:"lost"`  // projects of which nothing was found that may be believed
}

// Rebuild makes snapshot and timestamp anew out of what targets and projects have signed, without
// believing those that are there: the way back after somebody who had their keys, since replaced in
// the root, spoiled them, and after a store was restored from a backup in part. It takes the keys of
// snapshot and timestamp.
func (p *Publisher) Rebuild(ctx context.Context) (Rebuilt, error) {
	result := Rebuilt{Roles: map[string]int64{}, Lost: []string{}}
	client, err := trust.OpenToRenew(p.Store, p.Seen)
	if err != nil {
		return result, err
	}
	if err := client.Roots(ctx); err != nil {
		return result, err
	}
	versions, err := p.versions(ctx)
	if err != nil {
		return result, err
	}
	root := client.Trusted().Root
	meta := map[string]*metadata.MetaFiles{}
	take := func(name string, verify func(*trust.Role) error) (*trust.Role, error) {
		role, data, err := p.newestGood(ctx, name, versions[name], verify)
		if role != nil {
			meta[trust.MetaName(name)] = metaFile(role.Signed.Version, data)
			result.Roles[name] = role.Signed.Version
		}
		return role, err
	}
	targets, err := take(metadata.TARGETS, func(r *trust.Role) error { return root.VerifyDelegate(metadata.TARGETS, r) })
	if err == nil && targets == nil {
		err = errors.New("no targets in the store is signed as the root wants it")
	}
	if err != nil {
		return result, err
	}
	client.Trusted().Targets[metadata.TARGETS] = targets
	for _, name := range client.Projects() {
		role, err := take(name, func(r *trust.Role) error { return targets.VerifyDelegate(name, r) })
		if err != nil {
			return result, err
		}
		if role == nil && len(versions[name]) > 0 {
			result.Lost = append(result.Lost, name)
		}
	}
	return result, p.putRebuilt(ctx, client, meta, versions[metadata.SNAPSHOT])
}

// putRebuilt signs the new snapshot and a timestamp that hosts take for newer than any they have
// seen with these keys.
func (p *Publisher) putRebuilt(ctx context.Context, client *trust.Client, meta map[string]*metadata.MetaFiles, taken []int64) error {
	root := client.Trusted().Root
	signers, err := p.keysFor(metadata.SNAPSHOT, client.Delegation(metadata.SNAPSHOT))
	if err != nil {
		return err
	}
	online, err := p.keysFor(metadata.TIMESTAMP, client.Delegation(metadata.TIMESTAMP))
	if err != nil {
		return err
	}
	snapshot := metadata.Snapshot(p.expires(p.Expiry.withDefaults().Snapshot))
	snapshot.Signed.Meta = meta
	if snapshot.Signed.Version, err = p.lastSnapshot(ctx, root, taken); err != nil {
		return err
	}
	timestamp := metadata.Timestamp()
	var cond store.Condition
	if timestamp.Signed.Version, cond, err = p.lastTimestamp(ctx, root, snapshot.Signed.Version); err != nil {
		return err
	}
	file, err := write(ctx, p, metadata.SNAPSHOT, snapshot, &snapshot.Signed.Version, signers)
	if err != nil {
		return err
	}
	timestamp.Signed.Meta = map[string]*metadata.MetaFiles{trust.MetaName(metadata.SNAPSHOT): file}
	return p.putTimestamp(ctx, timestamp, online, cond)
}

// lostVersions is how far a rebuild goes beyond the highest version that it finds, where the timestamp
// is lost: nothing else in the store counts the timestamps that `corpus refresh` signed, and hosts take
// none that is older than what they have seen. Hourly refreshes take a century to use it up.
const lostVersions = 1_000_000

// lastTimestamp is the highest version of a timestamp that this publisher or the store knows of and
// whose signatures hold, and the condition to replace what the store has. Where the store has none that
// holds, it is a version that no host can have seen.
func (p *Publisher) lastTimestamp(ctx context.Context, root *rootRole, snapshot int64) (int64, store.Condition, error) {
	cond := store.Condition{IfAbsent: true}
	etag, err := p.timestampETag(ctx)
	switch {
	case err == nil:
		cond = store.Condition{IfMatch: etag}
	case !errors.Is(err, store.ErrNotFound):
		return 0, cond, err
	}
	version := func(data []byte) int64 {
		t, err := metadata.Timestamp().FromBytes(data)
		if err != nil || root.VerifyDelegate(metadata.TIMESTAMP, t) != nil {
			return 0
		}
		return t.Signed.Version
	}
	kept, _ := os.ReadFile(filepath.Join(p.Seen, trust.MetaName(metadata.TIMESTAMP)))
	there, _ := trust.ReadMetadata(ctx, p.Store, trust.TimestampKey)
	last := max(version(kept), version(there))
	if version(there) == 0 {
		last = beyond(max(last, snapshot))
	}
	return last, cond, nil
}

// beyond is a version that is higher than any a host has seen, where this is the highest known.
func beyond(version int64) int64 {
	if version > math.MaxInt64-lostVersions {
		return version
	}
	return version + lostVersions
}

// versions lists which versions of each role the store has, newest first.
func (p *Publisher) versions(ctx context.Context) (map[string][]int64, error) {
	versions := map[string][]int64{}
	for info, err := range p.Store.List(ctx, "metadata/") {
		if err != nil {
			return nil, fmt.Errorf("listing the store's metadata: %w", err)
		}
		number, rest, _ := strings.Cut(strings.TrimPrefix(info.Key, "metadata/"), ".")
		version, err := strconv.ParseInt(number, 10, 64)
		role, ok := strings.CutSuffix(rest, ".json")
		if err == nil && ok {
			versions[role] = append(versions[role], version)
		}
	}
	for _, v := range versions {
		slices.Sort(v)
		slices.Reverse(v)
	}
	return versions, nil
}

// lastSnapshot is the highest version of a snapshot in the store whose signatures hold.
func (p *Publisher) lastSnapshot(ctx context.Context, root *rootRole, versions []int64) (int64, error) {
	for _, version := range versions {
		data, err := trust.ReadMetadata(ctx, p.Store, trust.RoleKey(metadata.SNAPSHOT, version))
		if err != nil {
			return 0, err
		}
		s, err := metadata.Snapshot().FromBytes(data)
		if err == nil && s.Signed.Version == version && root.VerifyDelegate(metadata.SNAPSHOT, s) == nil {
			return version, nil
		}
	}
	return 0, nil
}

// newestGood reads the newest version of a role that is what it says and signed by who may; nil
// where there is none.
func (p *Publisher) newestGood(ctx context.Context, name string, versions []int64, verify func(*trust.Role) error) (*trust.Role, []byte, error) {
	for _, version := range versions {
		data, err := trust.ReadMetadata(ctx, p.Store, trust.RoleKey(name, version))
		if err != nil {
			return nil, nil, err
		}
		role, err := metadata.Targets().FromBytes(data)
		if err == nil && role.Signed.Version == version && verify(role) == nil {
			return role, data, nil
		}
	}
	return nil, nil, nil
}
