package publish

import (
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"

	"github.com/corpus-agent/corpus-agent/artifact"
	"github.com/corpus-agent/corpus-agent/artifact/store"
	"github.com/corpus-agent/corpus-agent/artifact/trust"
)

// uploadSidecars writes what will be signed beside the artifact.
func (p *Publisher) uploadSidecars(ctx context.Context, d described) error {
	for kind, data := range d.sidecars {
		digest := artifact.NewDigest(sha256.Sum256(data))
		if err := p.putOnce(ctx, trust.SidecarKey(d.release, kind, digest), bytes.NewReader(data), int64(len(data)), digest); err != nil {
			return fmt.Errorf("uploading the %s of %s: %w", kind, d.release, err)
		}
	}
	return nil
}

// putOnce writes an object whose name says what it holds. One that is there already is read: where a
// store damaged it, or something else was put there, it is replaced, since its name allows nothing else.
func (p *Publisher) putOnce(ctx context.Context, key string, r io.ReadSeeker, size int64, digest artifact.Digest) error {
	_, err := p.Store.Put(ctx, key, r, size, store.Condition{IfAbsent: true})
	if !errors.Is(err, store.ErrPrecondition) {
		return err
	}
	same, err := p.holds(ctx, key, size, digest)
	if same || err != nil {
		return err
	}
	if _, err := r.Seek(0, io.SeekStart); err != nil {
		return err
	}
	_, err = p.Store.Put(ctx, key, r, size, store.Condition{})
	return err
}

// holds reports whether an object has the length and digest that it should.
func (p *Publisher) holds(ctx context.Context, key string, size int64, digest artifact.Digest) (bool, error) {
	body, info, err := p.Store.Get(ctx, key, 0)
	if errors.Is(err, store.ErrNotFound) {
		return false, nil
	}
	if err != nil {
		return false, fmt.Errorf("comparing what the store has already: %w", err)
	}
	defer body.Close()
	if info.Size >= 0 && info.Size != size {
		return false, nil
	}
	sum := sha256.New()
	n, err := io.Copy(sum, io.LimitReader(artifact.Stoppable(ctx, body), size+1))
	if err != nil {
		return false, fmt.Errorf("comparing what the store has already: %w", err)
	}
	return n == size && artifact.NewDigest([32]byte(sum.Sum(nil))) == digest, nil
}
