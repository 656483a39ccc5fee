package recovery

import (
	"bytes"
	"context"
	"crypto/sha256"
	"fmt"
	"slices"
	"sync"

	"golang.org/x/sync/errgroup"

	"github.com/corpus-agent/corpus-agent/artifact"
	"github.com/corpus-agent/corpus-agent/artifact/publish"
	"github.com/corpus-agent/corpus-agent/artifact/trust"
	"github.com/corpus-agent/corpus-agent/artifact/tuf"
)

// restoreRoots restores roots that the store has lost or damaged. A host that was pinned to an older root reads all of
// them.
func restoreRoots(ctx context.Context, p *publish.Publisher, client *trust.Client) (objects []publish.Object,
	restored []string, err error) {
	newest := client.Trusted().Root.Signed.Version
	for version := int64(1); version <= newest; version++ {
		kept, err := client.KeptRoot(version)
		if err != nil {
			return nil, nil, err
		}
		if kept == nil && version == newest {
			kept = client.RootFile()
		}
		key := trust.RoleKey(tuf.RoleRoot, version)
		there, err := trust.ReadMetadata(ctx, p.Store, key)
		if err := publish.Unanswered(err); err != nil {
			return nil, nil, err
		}
		if kept == nil || bytes.Equal(there, kept) {
			continue
		}
		objects = append(objects, publish.Object{Key: key, Data: kept})
		restored = append(restored, fmt.Sprintf("%d.%s", version, trust.MetaName(tuf.RoleRoot)))
	}
	return objects, restored, nil
}

// takeWhole uses the list of all versions of a project in place of its lost head. The list is signed by the same keys
// with the same version, and a head without pages is complete.
func (b *rebuilding) takeWhole(ctx context.Context, project string, verify func(*trust.Role) error) (*trust.Role,
	error) {
	head, whole := b.named[trust.HeadRole(project)], b.named[project]
	if len(head) == 0 || len(whole) == 0 || whole[0].Version < head[0].Version {
		return nil, nil
	}
	meta := whole[0]
	data, _, err := b.read(ctx, project, meta)
	if err != nil || data == nil {
		return nil, err
	}
	role, err := trust.Decode[tuf.TargetsType](data)
	if err != nil || role.Signed.Version != meta.Version || trust.Guard(func() error { return verify(role) }) != nil {
		return nil, nil
	}
	name := trust.HeadRole(project)
	b.objects = append(b.objects, publish.Object{Key: trust.RoleKey(name, meta.Version), Data: data})
	b.meta[trust.MetaName(name)] = publish.MetaFile(meta.Version, data)
	b.result.Roles[name] = meta.Version
	b.result.Restored = append(b.result.Restored, fmt.Sprintf("%d.%s (from %d.%s)", meta.Version, trust.MetaName(name),
		meta.Version, trust.MetaName(project)))
	return role, nil
}

// lostPages returns the digests of pages that the store has lost or damaged.
func lostPages(ctx context.Context, p *publish.Publisher, project string, digests []artifact.Digest) ([]artifact.Digest,
	error) {
	group, within := errgroup.WithContext(ctx)
	group.SetLimit(publish.PageWriters)
	var lost []artifact.Digest
	var mu sync.Mutex
	for _, digest := range digests {
		group.Go(func() error {
			found, err := hasPage(within, p, project, digest)
			if found || err != nil {
				return err
			}
			mu.Lock()
			defer mu.Unlock()
			lost = append(lost, digest)
			return nil
		})
	}
	err := group.Wait()
	slices.Sort(lost)
	return lost, err
}

// hasPage reports whether the store has a page with this digest. A store that does not answer is an error.
func hasPage(ctx context.Context, p *publish.Publisher, project string, digest artifact.Digest) (bool, error) {
	data, err := trust.ReadMetadata(ctx, p.Store, trust.PageKey(project, digest))
	if err := publish.Unanswered(err); err != nil {
		return false, err
	}
	return err == nil && artifact.NewDigest(sha256.Sum256(data)) == digest, nil
}
