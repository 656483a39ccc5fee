package agent_test

import (
	"context"
	"io"
	"strings"
	"testing"
	"time"

	"github.com/corpus-agent/corpus-agent/agent/exit"
	"github.com/corpus-agent/corpus-agent/artifact/store"
)

// lockWaits is a store that records how long uploads of reports wait for the lock of another writer.
type lockWaits struct {
	store.Store
	asked []time.Duration
}

func (s *lockWaits) Put(ctx context.Context, key string, r io.Reader, size int64, cond store.Condition) (store.Info,
	error) {
	if strings.HasPrefix(key, "reports/") {
		s.asked = append(s.asked, store.LockWaitOf(ctx))
	}
	return s.Store.Put(ctx, key, r, size, cond)
}

// TestUploadWaitsShortlyForOtherWriters checks the limit: the run holds the lock of the host meanwhile.
func TestUploadWaitsShortlyForOtherWriters(t *testing.T) {
	t.Parallel()
	l := newLab(t)
	l.Config.UploadReports = true
	waits := &lockWaits{Store: l.repo.Store}
	l.OpenStore = func(string) (store.Store, error) { return waits, nil }
	l.publish("1")
	l.expect(exit.OK)
	if len(waits.asked) != 1 || waits.asked[0] <= 0 || waits.asked[0] > 10*time.Second {
		t.Errorf("the uploads wait %v, want one that waits some seconds", waits.asked)
	}
}
