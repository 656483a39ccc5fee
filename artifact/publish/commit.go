package publish

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"

	"github.com/theupdateframework/go-tuf/v2/metadata"

	"github.com/corpus-agent/corpus-agent/artifact/publish/keyring"
	"github.com/corpus-agent/corpus-agent/artifact/store"
	"github.com/corpus-agent/corpus-agent/artifact/trust"
	"github.com/corpus-agent/corpus-agent/state/diag"
)

// commit signs and writes what changed: roles, then the snapshot that names them, then, under the
// condition that nobody else did meanwhile, the timestamp that names the snapshot. Before anything
// is written it is known that the keys at hand suffice.
func (n *next) commit(ctx context.Context) error {
	keys, err := n.keys()
	if err != nil {
		return err
	}
	timestamp := n.client.Trusted().Timestamp
	if !n.brief {
		file, err := n.writeBelow(ctx, keys)
		if err != nil {
			return err
		}
		timestamp.Signed.Meta[trust.MetaName(metadata.SNAPSHOT)] = file
	}
	return n.publisher.putTimestamp(ctx, timestamp, keys[metadata.TIMESTAMP], store.Condition{IfMatch: n.etag})
}

// writeBelow writes all but the timestamp, and describes the snapshot to it.
func (n *next) writeBelow(ctx context.Context, keys map[string][]keyring.Key) (*metadata.MetaFiles, error) {
	p := n.publisher
	expires := p.expires(p.Expiry.withDefaults().Snapshot)
	snapshot := n.client.Trusted().Snapshot
	for _, name := range slices.Sorted(maps.Keys(n.roles)) {
		role := n.roles[name]
		role.Signed.Expires = expires
		file, err := write(ctx, p, name, role, &role.Signed.Version, keys[name])
		if err != nil {
			return nil, err
		}
		snapshot.Signed.Meta[trust.MetaName(name)] = file
	}
	for _, name := range slices.Sorted(maps.Keys(n.ready)) {
		file, err := p.writeReady(ctx, name, n.ready[name])
		if err != nil {
			return nil, err
		}
		snapshot.Signed.Meta[trust.MetaName(name)] = file
	}
	snapshot.Signed.Expires = expires
	return write(ctx, p, metadata.SNAPSHOT, snapshot, &snapshot.Signed.Version, keys[metadata.SNAPSHOT])
}

// keys reads the keys of everything that is to be signed.
func (n *next) keys() (map[string][]keyring.Key, error) {
	roles := append(slices.Sorted(maps.Keys(n.roles)), metadata.TIMESTAMP)
	if !n.brief {
		roles = append(roles, metadata.SNAPSHOT)
	}
	all := map[string][]keyring.Key{}
	for _, role := range roles {
		keys, err := n.publisher.keysFor(role, n.client.Delegation(role))
		if err != nil {
			return nil, err
		}
		all[role] = keys
	}
	return all, nil
}

func (p *Publisher) putTimestamp(ctx context.Context, timestamp *metadata.Metadata[metadata.TimestampType], keys []keyring.Key, cond store.Condition) error {
	if timestamp.Signed.Version == math.MaxInt64 {
		return exhausted(metadata.TIMESTAMP)
	}
	timestamp.Signed.Version++
	timestamp.Signed.Expires = p.expires(p.Expiry.withDefaults().Timestamp)
	trust.SetCreated(timestamp, p.now())
	data, err := sign(timestamp, keys)
	if err != nil {
		return fmt.Errorf("signing timestamp: %w", err)
	}
	_, err = p.Store.Put(ctx, trust.TimestampKey, bytes.NewReader(data), int64(len(data)), cond)
	return err
}

// exhausted is the error of a role that somebody has run up as far as it goes.
func exhausted(role string) error {
	return diag.WithHint(fmt.Errorf("%s has the highest version there can be, so nothing can follow it", role),
		"somebody with its key did that: see fast-forward in docs/trust.md")
}

// write signs the next version of a role and writes it under the first version number that is
// free; one that is taken was left by a publisher who never committed it.
func write[T metadata.Roles](ctx context.Context, p *Publisher, name string, role *metadata.Metadata[T], version *int64, keys []keyring.Key) (*metadata.MetaFiles, error) {
	const orphans = 1000
	for range orphans {
		if *version == math.MaxInt64 {
			return nil, exhausted(name)
		}
		*version++
		data, err := sign(role, keys)
		if err != nil {
			return nil, fmt.Errorf("signing %s: %w", name, err)
		}
		_, err = p.Store.Put(ctx, trust.RoleKey(name, *version), bytes.NewReader(data), int64(len(data)), store.Condition{IfAbsent: true})
		if errors.Is(err, store.ErrPrecondition) {
			continue
		}
		return metaFile(*version, data), err
	}
	return nil, fmt.Errorf("writing %s: the next %d versions are taken", name, orphans)
}

// writeReady writes a role that others have signed. Its version is signed too, so there is one
// name that it can have.
func (p *Publisher) writeReady(ctx context.Context, name string, data []byte) (*metadata.MetaFiles, error) {
	role, err := metadata.Targets().FromBytes(data)
	if err != nil {
		return nil, err
	}
	version := role.Signed.Version
	key := trust.RoleKey(name, version)
	_, err = p.Store.Put(ctx, key, bytes.NewReader(data), int64(len(data)), store.Condition{IfAbsent: true})
	if errors.Is(err, store.ErrPrecondition) {
		there, readErr := trust.ReadMetadata(ctx, p.Store, key)
		if readErr == nil && bytes.Equal(there, data) { // of an attempt that was cut short, or lost a race
			return metaFile(version, data), nil
		}
		return nil, stale(name, "version %d of %s is taken", version, name)
	}
	return metaFile(version, data), err
}
