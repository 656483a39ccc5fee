package roots_test

import (
	"context"
	"io"
	"testing"
	"time"

	"github.com/corpus-agent/corpus-agent/artifact/publish"
	"github.com/corpus-agent/corpus-agent/artifact/publish/keyring"
	"github.com/corpus-agent/corpus-agent/artifact/publish/roots"
	"github.com/corpus-agent/corpus-agent/artifact/store"
	"github.com/corpus-agent/corpus-agent/artifact/store/mem"
)

// losing is a store that loses every other response to a write. With careless it ignores conditions.
type losing struct {
	store.Store
	careless bool
	writes   *int
}

func (l losing) Put(ctx context.Context, key string, r io.Reader, size int64, cond store.Condition) (store.Info,
	error) {
	if l.careless {
		cond = store.Condition{}
	}
	info, err := l.Store.Put(ctx, key, r, size, cond)
	if *l.writes++; *l.writes%2 == 1 {
		return store.Info{}, &store.Error{Op: store.OpPut, Object: key, Kind: store.ErrUnreachable, Again: true}
	}
	return info, err
}

// TestInitProbeWithLostAnswers checks that init reports the store's support for conditional writes correctly although
// responses are lost.
func TestInitProbeWithLostAnswers(t *testing.T) {
	t.Parallel()
	for _, careless := range []bool{false, true} {
		ring := keyring.Ring{Dir: t.TempDir()}
		for _, role := range []string{"root", "targets", "snapshot", "timestamp"} {
			if _, err := ring.New(role, 1); err != nil {
				t.Fatal(err)
			}
		}
		s := store.Retry(losing{mem.New(), careless, new(int)}, store.RetryPolicy{First: time.Millisecond})
		p := &publish.Publisher{Store: s, Keys: ring, Seen: t.TempDir()}
		result, err := roots.Init(t.Context(), p, 0)
		if err != nil || result.Conditional == careless {
			t.Errorf("a store that ignores conditions: %v; init reports conditional: %v, %v", careless, result.Conditional, err)
		}
	}
}
