package store_test

import (
	"context"
	"errors"
	"io"
	"iter"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/corpus-agent/corpus-agent/artifact/store"
	"github.com/corpus-agent/corpus-agent/artifact/store/mem"
	"github.com/corpus-agent/corpus-agent/artifact/store/storetest"
	"github.com/corpus-agent/corpus-agent/state/diag"
)

// mute is a store whose bodies have no bytes, as of a server that sends headers and then nothing.
type mute struct{ store.Store }

func (s mute) Get(ctx context.Context, key string, from int64) (io.ReadCloser, store.Info, error) {
	body, info, err := s.Store.Get(ctx, key, from)
	return muteBody{body, ctx}, info, err
}

func (s mute) List(ctx context.Context, _ string) iter.Seq2[store.Info, error] {
	return func(yield func(store.Info, error) bool) {
		<-ctx.Done()
		yield(store.Info{}, ctx.Err())
	}
}

type muteBody struct {
	io.ReadCloser
	ctx context.Context
}

func (b muteBody) Read([]byte) (int, error) {
	<-b.ctx.Done()
	return 0, b.ctx.Err()
}

// TestHangingStoreIsGivenUpInTime checks that each request to a store that does not answer, or sends headers and then
// nothing, ends within the total time for retries, with a hint.
func TestHangingStoreIsGivenUpInTime(t *testing.T) {
	requests := requestsOf(func(ctx context.Context, s store.Store) error {
		_, err := getAll(ctx, s, "key", store.Range{})
		return err
	})
	for _, total := range []time.Duration{0, 2 * time.Second, 40 * time.Second, 3 * time.Minute} {
		for name, do := range requests {
			for _, headers := range []bool{false, true} {
				synctest.Test(t, func(t *testing.T) {
					inner := mem.New()
					mustPut(t, inner, "key", []byte("content"))
					var s store.Store = storetest.NewFaulty(inner, storetest.Fault{Hang: true})
					if headers && (name == "Get" || name == "List") {
						s = mute{inner}
					}
					limit, start := total, time.Now()
					if total == 0 {
						limit = time.Minute
					}
					err := do(t.Context(), store.Stack(s, store.Settings{Retry: store.RetryPolicy{Total: total}}))
					took := time.Since(start)
					if !errors.Is(err, store.ErrUnreachable) || took < limit/2 || took > limit+2*time.Second ||
						!strings.Contains(diag.HintOf(err), "does not answer") {
						t.Errorf("%s with --retry %v, headers %v: after %v: %v (hint %q)", name, total, headers, took, err,
							diag.HintOf(err))
					}
				})
			}
		}
	}
}
