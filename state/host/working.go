package host

import (
	"context"
	"sync/atomic"
)

// workKey is the key of a context's counter of work that must not be cut off.
type workKey struct{}

// Tracking is ctx with a counter of work that goes on though ctx is done. busy reports whether there is
// any.
func Tracking(ctx context.Context) (tracked context.Context, busy func() bool) {
	var n atomic.Int32
	return context.WithValue(ctx, workKey{}, &n), func() bool { return n.Load() > 0 }
}

func Working(ctx context.Context, n int32) {
	if count, ok := ctx.Value(workKey{}).(*atomic.Int32); ok {
		count.Add(n)
	}
}
