package publish

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"

	"github.com/corpus-agent/corpus-agent/artifact/publish/keyring"
	"github.com/corpus-agent/corpus-agent/artifact/store"
	"github.com/corpus-agent/corpus-agent/artifact/trust"
	"github.com/corpus-agent/corpus-agent/artifact/tuf"
)

// commit signs what changed, checks as a host does that hosts will accept it, and writes it: roles, then
// the snapshot that names them, then the timestamp that names the snapshot, on the condition that no
// other publisher wrote one meanwhile. Nothing is written before all of it is signed and checked.
func (n *Next) commit(ctx context.Context) error {
	objects, err := n.stage(ctx, n.Client.Delegation)
	if err != nil {
		return err
	}
	if !n.publisher.AtOnce {
		if err := n.rehearse(ctx, objects, false); err != nil {
			return err
		}
	}
	if err := n.publisher.write(ctx, objects); err != nil {
		return err
	}
	if err := n.publisher.keepPages(ctx, objects); err != nil {
		return err
	}
	return n.publisher.keep(ctx, n.Client, objects)
}

// stage signs what changed, with keys that satisfy all delegations that may names for a role, and leaves
// what n has read as it is, so that it can be staged again in another way.
func (n *Next) stage(ctx context.Context, may ...func(role string) trust.Delegation) ([]object, error) {
	keys, err := n.keys(may)
	if err != nil {
		return nil, err
	}
	timestamp, err := clone(n.Client.Trusted().Timestamp)
	if err != nil {
		return nil, err
	}
	var objects []object
	if !n.brief {
		below, file, err := n.stageBelow(ctx, keys)
		if err != nil {
			return nil, err
		}
		objects = below
		timestamp.Signed.Meta[trust.MetaName(tuf.RoleSnapshot)] = file
	}
	last, err := n.publisher.stageTimestamp(timestamp, keys[tuf.RoleTimestamp], store.Condition{IfMatch: n.ETag})
	return append(objects, last), err
}

// stageBelow signs all but the timestamp, and describes the snapshot to it.
func (n *Next) stageBelow(ctx context.Context, keys map[string][]keyring.Key) ([]object, *tuf.MetaFiles, error) {
	p := n.publisher
	var objects []object
	expires := p.expires(p.Expiry.withDefaults().Snapshot)
	snapshot, err := clone(n.Client.Trusted().Snapshot)
	if err != nil {
		return nil, nil, err
	}
	for _, name := range slices.Sorted(maps.Keys(n.Roles)) {
		if name != tuf.RoleTargets {
			files, described, err := n.stageProject(ctx, name, keys[name])
			if err != nil {
				return nil, nil, err
			}
			objects = append(objects, files...)
			maps.Copy(snapshot.Signed.Meta, described)
			continue
		}
		role, err := clone(n.Roles[name])
		if err != nil {
			return nil, nil, err
		}
		role.Signed.Expires = expires
		o, file, err := stageRole(ctx, p, name, role, &role.Signed.Version, keys[name])
		if err != nil {
			return nil, nil, err
		}
		objects = append(objects, o)
		snapshot.Signed.Meta[trust.MetaName(name)] = file
	}
	for _, name := range slices.Sorted(maps.Keys(n.ready)) {
		files, described, err := p.stageReadyFiles(ctx, name, n.ready[name])
		if err != nil {
			return nil, nil, err
		}
		objects = append(objects, files...)
		maps.Copy(snapshot.Signed.Meta, described)
	}
	snapshot.Signed.Expires = expires
	o, file, err := stageRole(ctx, p, tuf.RoleSnapshot, snapshot, &snapshot.Signed.Version, keys[tuf.RoleSnapshot])
	return append(objects, o), file, err
}

// keys reads the keys of everything that is to be signed.
func (n *Next) keys(may []func(string) trust.Delegation) (map[string][]keyring.Key, error) {
	roles := append(slices.Sorted(maps.Keys(n.Roles)), tuf.RoleTimestamp)
	if !n.brief {
		roles = append(roles, tuf.RoleSnapshot)
	}
	all := map[string][]keyring.Key{}
	for _, role := range roles {
		for _, by := range may {
			keys, err := n.publisher.KeysFor(role, by(role))
			if err != nil {
				return nil, err
			}
			all[role] = append(all[role], keys...)
		}
	}
	return all, nil
}

// stageTimestamp signs the next version of a timestamp.
func (p *Publisher) stageTimestamp(timestamp *tuf.Metadata[tuf.TimestampType], keys []keyring.Key, cond store.Condition) (object, error) {
	if timestamp.Signed.Version == math.MaxInt64 {
		return object{}, exhausted(tuf.RoleTimestamp)
	}
	timestamp.Signed.Version++
	timestamp.Signed.Expires = p.expires(p.Expiry.withDefaults().Timestamp)
	trust.SetCreated(timestamp, p.Time())
	data, err := sign(timestamp, keys)
	if err != nil {
		return object{}, fmt.Errorf("signing timestamp: %w", err)
	}
	return object{key: trust.TimestampKey, data: data, cond: cond}, nil
}

// Exhausted says that a thief of a role's key ran its version up as far as it goes.
type Exhausted struct{ Role string }

func (e *Exhausted) Error() string {
	return e.Role + " has the highest version there can be, so nothing can follow it"
}

// Hint says where the way back is described.
func (e *Exhausted) Hint() string {
	return "`corpus keys rotate timestamp`, then `corpus keys rotate snapshot`, bring back what was in force before; then replace this role's key: see \"Versions that are run up\" in docs/trust.md"
}

func exhausted(role string) error {
	return &Exhausted{Role: strings.TrimSuffix(role, trust.HeadRole(""))}
}

// stageRole signs the next version of a role, under the first version number that is free; one that is
// taken was left by a publisher who never committed it.
func stageRole[T tuf.Roles](ctx context.Context, p *Publisher, name string, role *tuf.Metadata[T], version *int64, keys []keyring.Key) (object, *tuf.MetaFiles, error) {
	if *version == math.MaxInt64 {
		return object{}, nil, exhausted(name)
	}
	free, err := p.free(ctx, name, *version)
	if err != nil {
		return object{}, nil, err
	}
	*version = free
	data, err := sign(role, keys)
	if err != nil {
		return object{}, nil, fmt.Errorf("signing %s: %w", name, err)
	}
	return object{key: trust.RoleKey(name, free), data: data, cond: store.Condition{IfAbsent: true}}, metaFile(free, data), nil
}

// stageReady takes a role that others have signed. Its version is signed too, so there is one name that
// it can have.
func (p *Publisher) stageReady(ctx context.Context, name string, data []byte) (object, *tuf.MetaFiles, error) {
	role, err := trust.Decode[tuf.TargetsType](data)
	if err != nil {
		return object{}, nil, err
	}
	version := role.Signed.Version
	o := object{key: trust.RoleKey(name, version), data: data, cond: store.Condition{IfAbsent: true}}
	there, err := trust.ReadMetadata(ctx, p.Store, o.key)
	if err == nil && !bytes.Equal(there, data) { // the same is of an attempt that was cut short, or lost a race
		return object{}, nil, stale(name, "version %d of %s is taken", version, name)
	}
	if errors.Is(err, store.ErrNotFound) || errors.Is(err, store.ErrForbidden) {
		err = nil
	}
	return o, metaFile(version, data), err
}
