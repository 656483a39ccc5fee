package blobs

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"

	"github.com/corpus-agent/corpus-agent/artifact"
	"github.com/corpus-agent/corpus-agent/artifact/store"
)

// PutOnce writes an object whose name contains the digest of its content. If the store has an object of that name,
// PutOnce compares its content, and replaces it if it has another digest.
func PutOnce(ctx context.Context, s store.Store, key string, r io.ReadSeeker, size int64,
	digest artifact.Digest) error {
	_, err := s.Put(ctx, key, r, size, store.Condition{IfAbsent: true})
	if !errors.Is(err, store.ErrPrecondition) {
		return err
	}
	same, err := holds(ctx, s, key, size, digest)
	if same || err != nil {
		return err
	}
	if _, err := r.Seek(0, io.SeekStart); err != nil {
		return err
	}
	_, err = s.Put(ctx, key, r, size, store.Condition{})
	return err
}

// holds reports whether an object has the given length and digest.
func holds(ctx context.Context, s store.Store, key string, size int64, digest artifact.Digest) (bool, error) {
	body, info, err := s.Get(ctx, key, 0)
	if errors.Is(err, store.ErrNotFound) {
		return false, nil
	}
	if err != nil {
		return false, fmt.Errorf("comparing the object that is already in the store: %w", err)
	}
	defer body.Close()
	if info.Size >= 0 && info.Size != size {
		return false, nil
	}
	sum := sha256.New()
	n, err := io.Copy(sum, io.LimitReader(artifact.Stoppable(ctx, body), size+1))
	if err != nil {
		return false, fmt.Errorf("comparing the object that is already in the store: %w", err)
	}
	return n == size && artifact.NewDigest([32]byte(sum.Sum(nil))) == digest, nil
}
