package trust_test

import (
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/corpus-agent/corpus-agent/artifact/store"
)

// forbidding responds like S3 if the bucket may not be listed: 403 for an absent object, or with all for every object.
type forbidding struct {
	store.Store
	all bool
}

func (f forbidding) Get(ctx context.Context, key string, from int64) (io.ReadCloser, store.Info, error) {
	body, info, err := f.Store.Get(ctx, key, from)
	if f.all || errors.Is(err, store.ErrNotFound) {
		return nil, store.Info{}, fmt.Errorf("reading %s: %w", key, store.ErrForbidden)
	}
	return body, info, err
}
