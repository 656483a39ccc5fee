package publish

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"

	"github.com/corpus-agent/corpus-agent/artifact/publish/keyring"
	"github.com/corpus-agent/corpus-agent/artifact/store"
	"github.com/corpus-agent/corpus-agent/artifact/trust"
	"github.com/corpus-agent/corpus-agent/artifact/tuf"
)

// commit signs the changed roles, checks like a host that hosts will accept them, and writes them: the roles, then the
// snapshot that names them, then the timestamp that names the snapshot, on condition that no other publisher has
// written one. Nothing is written before everything is signed and checked.
func (n *Next) commit(ctx context.Context) error {
	objects, err := n.Stage(ctx, n.Client.Delegation)
	if err != nil {
		return err
	}
	if !n.Publisher.AtOnce {
		if err := n.Rehearse(ctx, objects, false); err != nil {
			return err
		}
	}
	if err := n.Publisher.Write(ctx, objects); err != nil {
		return err
	}
	ctx = context.WithoutCancel(ctx) // the change is made, so the rest is not given up
	if err := n.Publisher.keepPages(ctx, objects); err != nil {
		return err
	}
	return n.Publisher.Keep(ctx, n.Client, objects)
}

// Stage signs the changed roles. The keys satisfy each delegation that a function of may returns for a role. Stage does
// not change n, so that it can be staged again in another way.
func (n *Next) Stage(ctx context.Context, may ...func(role string) trust.Delegation) ([]Object, error) {
	keys, err := n.keys(may)
	if err != nil {
		return nil, err
	}
	timestamp, err := Clone(n.Client.Trusted().Timestamp)
	if err != nil {
		return nil, err
	}
	var objects []Object
	if !n.Brief {
		below, file, err := n.stageBelow(ctx, keys)
		if err != nil {
			return nil, err
		}
		objects = below
		timestamp.Signed.Meta[trust.MetaName(tuf.RoleSnapshot)] = file
	}
	last, err := n.Publisher.StageTimestamp(timestamp, keys[tuf.RoleTimestamp], store.Condition{IfMatch: n.ETag})
	return append(objects, last), err
}

// stageBelow signs everything but the timestamp, and returns the timestamp's entry for the snapshot.
func (n *Next) stageBelow(ctx context.Context, keys map[string][]keyring.Key) ([]Object, *tuf.MetaFiles, error) {
	p := n.Publisher
	var objects []Object
	expires := p.Expires(p.Expiry.WithDefaults().Snapshot)
	snapshot, err := Clone(n.Client.Trusted().Snapshot)
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
		role, err := Clone(n.Roles[name])
		if err != nil {
			return nil, nil, err
		}
		role.Signed.Expires = expires
		o, file, err := StageRole(ctx, p, name, role, &role.Signed.Version, keys[name])
		if err != nil {
			return nil, nil, err
		}
		objects = append(objects, o)
		snapshot.Signed.Meta[trust.MetaName(name)] = file
	}
	for _, name := range slices.Sorted(maps.Keys(n.Ready)) {
		files, described, err := p.stageReadyFiles(ctx, name, n.Ready[name])
		if err != nil {
			return nil, nil, err
		}
		objects = append(objects, files...)
		maps.Copy(snapshot.Signed.Meta, described)
	}
	snapshot.Signed.Expires = expires
	o, file, err := StageRole(ctx, p, tuf.RoleSnapshot, snapshot, &snapshot.Signed.Version, keys[tuf.RoleSnapshot])
	return append(objects, o), file, err
}

// keys reads the keys of all roles that are to be signed.
func (n *Next) keys(may []func(string) trust.Delegation) (map[string][]keyring.Key, error) {
	roles := append(slices.Sorted(maps.Keys(n.Roles)), tuf.RoleTimestamp)
	if !n.Brief {
		roles = append(roles, tuf.RoleSnapshot)
	}
	all := map[string][]keyring.Key{}
	for _, role := range roles {
		for _, by := range may {
			keys, err := n.Publisher.KeysFor(role, by(role))
			if err != nil {
				return nil, err
			}
			all[role] = append(all[role], keys...)
		}
	}
	return all, nil
}

// StageTimestamp signs the next version of a timestamp.
func (p *Publisher) StageTimestamp(timestamp *tuf.Metadata[tuf.TimestampType], keys []keyring.Key,
	cond store.Condition) (Object, error) {
	if timestamp.Signed.Version == math.MaxInt64 {
		return Object{}, NewExhausted(tuf.RoleTimestamp)
	}
	timestamp.Signed.Version++
	timestamp.Signed.Expires = p.Expires(p.Expiry.WithDefaults().Timestamp)
	trust.SetCreated(timestamp, p.Time())
	data, err := Sign(timestamp, keys)
	if err != nil {
		return Object{}, fmt.Errorf("signing timestamp: %w", err)
	}
	return Object{Key: trust.TimestampKey, Data: data, cond: cond}, nil
}

// StageRole signs the next version of a role under the first free version number. An interrupted publisher may have
// used up others.
func StageRole[T tuf.Roles](ctx context.Context, p *Publisher, name string, role *tuf.Metadata[T], version *int64,
	keys []keyring.Key) (Object, *tuf.MetaFiles, error) {
	if *version == math.MaxInt64 {
		return Object{}, nil, NewExhausted(name)
	}
	free, err := p.free(ctx, name, *version)
	if err != nil {
		return Object{}, nil, err
	}
	*version = free
	data, err := Sign(role, keys)
	if err != nil {
		return Object{}, nil, fmt.Errorf("signing %s: %w", name, err)
	}
	return Object{Key: trust.RoleKey(name, free), Data: data, cond: store.Condition{IfAbsent: true}}, MetaFile(free, data),
		nil
}

// StageReady prepares a role that others have signed for writing. Its version is signed, so it can have only one name.
func (p *Publisher) StageReady(ctx context.Context, name string, data []byte) (Object, *tuf.MetaFiles, error) {
	role, err := trust.Decode[tuf.TargetsType](data)
	if err != nil {
		return Object{}, nil, err
	}
	version := role.Signed.Version
	o := Object{Key: trust.RoleKey(name, version), Data: data, cond: store.Condition{IfAbsent: true}}
	there, err := trust.ReadMetadata(ctx, p.Store, o.Key)
	if err == nil && !bytes.Equal(there, data) { // equal bytes are from an interrupted attempt, or one that lost a race
		return Object{}, nil, Stale(name, "version %d of %s is taken", version, name)
	}
	if errors.Is(err, store.ErrNotFound) || errors.Is(err, store.ErrForbidden) {
		err = nil
	}
	return o, MetaFile(version, data), err
}
