package publish_test

import (
	"context"
	"errors"
	"io"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/corpus-agent/corpus-agent/artifact/artifacttest"
	"github.com/corpus-agent/corpus-agent/artifact/publish"
	"github.com/corpus-agent/corpus-agent/artifact/publish/refresh"
	"github.com/corpus-agent/corpus-agent/artifact/publish/releases"
	"github.com/corpus-agent/corpus-agent/artifact/store"
	"github.com/corpus-agent/corpus-agent/artifact/store/s3"
	"github.com/corpus-agent/corpus-agent/artifact/store/storetest/fakes3"
	"github.com/corpus-agent/corpus-agent/artifact/trust"
	"github.com/corpus-agent/corpus-agent/state/diag"
)

// beforeSnapshotRead is a store that calls a function after the timestamp was read.
type beforeSnapshotRead struct {
	store.Store
	after func()
}

func (m *beforeSnapshotRead) Get(ctx context.Context, key string, from int64) (io.ReadCloser, store.Info, error) {
	body, info, err := m.Store.Get(ctx, key, from)
	if key == trust.TimestampKey {
		m.after()
	}
	return body, info, err
}

// TestPublishersWithOneKeysDirectory runs two publishers with one directory of keys: the second one commits between the
// first one's reads of the timestamp and of the snapshot, at every timestamp that the first one reads.
func TestPublishersWithOneKeysDirectory(t *testing.T) {
	t.Parallel()
	repo := artifacttest.New(t)
	repo.Release("myapp", "1", "testing", artifacttest.Files{"app": "1"})
	other := &publish.Publisher{Store: repo.Publisher.Store, Keys: repo.Publisher.Keys, Seen: repo.Publisher.Seen}
	first := &publish.Publisher{Store: repo.Publisher.Store, Keys: repo.Publisher.Keys, Seen: repo.Publisher.Seen}
	var once sync.Mutex
	reads := 0
	done := make(chan error, 10)
	first.Store = &beforeSnapshotRead{repo.Publisher.Store, func() {
		once.Lock()
		defer once.Unlock()
		if reads++; reads > 4 {
			return
		}
		ended := make(chan struct{})
		go func() {
			var err error
			for range 2 { // the second one keeps the files that the first one wrote
				_, e := releases.Promote(context.WithoutCancel(t.Context()), other, "myapp", "testing", "staging")
				err = errors.Join(err, e)
			}
			done <- err
			close(ended)
		}()
		select { // with a lock between the two, the second one waits for the first
		case <-ended:
		case <-time.After(200 * time.Millisecond):
		}
	}}
	if _, err := releases.Promote(t.Context(), first, "myapp", "testing", "production"); err != nil {
		t.Errorf("the first publisher: %v", err)
	}
	once.Lock()
	defer once.Unlock()
	for range min(reads, 4) {
		if err := <-done; err != nil {
			t.Errorf("the second publisher: %v", err)
		}
	}
}

// TestClockFarFromTheStores checks that a publisher whose clock differs too much from the store's signs nothing, and
// that the error has the difference and a hint.
func TestClockFarFromTheStores(t *testing.T) {
	server := fakes3.Start(t, nil)
	s := s3.New(s3.Options{Bucket: fakes3.Bucket, Endpoint: "http://" + server.Host})
	repo := artifacttest.On(t, s)
	repo.Release("myapp", "1", "testing", artifacttest.Files{"app": "1"})
	before := repo.Object(trust.TimestampKey)
	for off, says := range map[time.Duration]string{47 * time.Minute: "ahead of", -20 * time.Minute: "behind"} {
		p := &publish.Publisher{Store: s, Keys: repo.Publisher.Keys, Seen: repo.Publisher.Seen}
		p.Now = func() time.Time { return time.Now().Add(off) }
		for name, do := range map[string]func() error{
			"promote": func() error { _, err := releases.Promote(t.Context(), p, "myapp", "testing", "staging"); return err },
			"refresh": func() error { _, err := refresh.Roles(t.Context(), p, time.Hour); return err },
		} {
			err := do()
			var refused *trust.Refused
			if !errors.As(err, &refused) || refused.Check != trust.CheckClock ||
				!strings.Contains(err.Error(), says+" the store's") ||
				!strings.Contains(diag.HintOf(err), "Either clock may be wrong: compare both times") ||
				!strings.Contains(diag.HintOf(err), "timedatectl") || !strings.Contains(diag.HintOf(err), "clock of its server") {
				t.Errorf("%s, %v off: %v (hint %s)", name, off, err, diag.HintOf(err))
			}
		}
		if string(repo.Object(trust.TimestampKey)) != string(before) {
			t.Errorf("%v off: the store was changed", off)
		}
	}
	p := &publish.Publisher{Store: s, Keys: repo.Publisher.Keys, Seen: repo.Publisher.Seen}
	p.Now = func() time.Time { return time.Now().Add(2 * time.Minute) }
	if _, err := releases.Promote(t.Context(), p, "myapp", "testing", "staging"); err != nil {
		t.Errorf("2 minutes off: %v", err)
	}
}
