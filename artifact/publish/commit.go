package publish

import (
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/sigstore/sigstore/pkg/signature"
	"github.com/theupdateframework/go-tuf/v2/metadata"

	"github.com/corpus-agent/corpus-agent/artifact/store"
	"github.com/corpus-agent/corpus-agent/artifact/trust"
)

// commit signs and writes what changed: roles, then the snapshot that names them, then, under the
// condition that nobody else did meanwhile, the timestamp that names the snapshot.
func (d *draft) commit(ctx context.Context) error {
	snapshot := d.client.Trusted().Snapshot
	p := d.publisher
	expires := p.expires(p.Expiry.withDefaults().Snapshot)
	for _, name := range slices.Sorted(maps.Keys(d.roles)) {
		role := d.roles[name]
		role.Signed.Expires = expires
		file, err := write(ctx, p, name, role, &role.Signed.Version)
		if err != nil {
			return err
		}
		snapshot.Signed.Meta[trust.MetaName(name)] = file
	}
	snapshot.Signed.Expires = expires
	file, err := write(ctx, p, metadata.SNAPSHOT, snapshot, &snapshot.Signed.Version)
	if err != nil {
		return err
	}
	timestamp := d.client.Trusted().Timestamp
	timestamp.Signed.Meta[trust.MetaName(metadata.SNAPSHOT)] = file
	return p.putTimestamp(ctx, timestamp, store.Condition{IfMatch: d.etag})
}

func (p *Publisher) putTimestamp(ctx context.Context, timestamp *metadata.Metadata[metadata.TimestampType], cond store.Condition) error {
	signers, err := p.Keys.Signers(metadata.TIMESTAMP)
	if err != nil {
		return err
	}
	timestamp.Signed.Version++
	timestamp.Signed.Expires = p.expires(p.Expiry.withDefaults().Timestamp)
	trust.SetCreated(timestamp, p.now())
	data, err := sign(timestamp, signers)
	if err != nil {
		return err
	}
	_, err = p.Store.Put(ctx, trust.TimestampKey, bytes.NewReader(data), int64(len(data)), cond)
	return err
}

// write signs the next version of a role and writes it under the first version number that is
// free; one that is taken was left by a publisher who never committed it.
func write[T metadata.Roles](ctx context.Context, p *Publisher, name string, role *metadata.Metadata[T], version *int64) (*metadata.MetaFiles, error) {
	const orphans = 1000
	signers, err := p.Keys.Signers(name)
	if err != nil {
		return nil, err
	}
	for range orphans {
		*version++
		data, err := sign(role, signers)
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

func sign[T metadata.Roles](role *metadata.Metadata[T], signers []signature.Signer) ([]byte, error) {
	role.Signatures = []metadata.Signature{}
	for _, s := range signers {
		if _, err := role.Sign(s); err != nil {
			return nil, err
		}
	}
	return role.ToBytes(false)
}

// metaFile describes a metadata file to the role that names it. The digest and length bound what
// a host reads before it checks a signature.
func metaFile(version int64, data []byte) *metadata.MetaFiles {
	sum := sha256.Sum256(data)
	file := metadata.MetaFile(version)
	file.Length = int64(len(data))
	file.Hashes = metadata.Hashes{"sha256": sum[:]}
	return file
}
