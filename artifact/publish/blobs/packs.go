package blobs

import (
	"context"
	"errors"

	"github.com/corpus-agent/corpus-agent/artifact"
	"github.com/corpus-agent/corpus-agent/artifact/chunk"
	"github.com/corpus-agent/corpus-agent/artifact/store"
	"github.com/corpus-agent/corpus-agent/artifact/trust"
)

// Packs returns a function that reports whether the store has a pack of the project. A pack may be missing although
// signed metadata names it: garbage collection removes it when signing a draft took longer than its grace period. If
// the credentials may not list the store, every pack counts as present.
func Packs(ctx context.Context, s store.Store, project string) (there func(artifact.Digest) bool, err error) {
	listing, err := List(ctx, s, chunk.PackPrefix(project))
	if errors.Is(err, store.ErrForbidden) {
		return func(artifact.Digest) bool { return true }, nil
	}
	keys := map[string]bool{}
	for _, info := range listing.Packs {
		keys[info.Key] = true
	}
	return func(pack artifact.Digest) bool { return keys[chunk.PackKey(project, pack)] }, err
}

// FetchIndex fetches the signed index of a release's chunks.
func FetchIndex(ctx context.Context, c *trust.Client, r artifact.Release) (*chunk.Index, error) {
	signed, err := c.FetchSidecar(ctx, r, trust.KindIndex)
	if err != nil {
		return nil, err
	}
	return chunk.Parse(signed)
}
