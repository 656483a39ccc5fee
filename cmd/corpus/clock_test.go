package main

import (
	"context"
	"io"
	"testing"
	"time"

	"github.com/corpus-agent/corpus-agent/artifact/publish"
	"github.com/corpus-agent/corpus-agent/artifact/publish/refresh"
	"github.com/corpus-agent/corpus-agent/artifact/store"
	"github.com/corpus-agent/corpus-agent/artifact/store/stores"
)

// TestFastClockInTwoDeploys checks that the hint repairs a store after a publisher's clock was ahead more than once.
func TestFastClockInTwoDeploys(t *testing.T) {
	s := newStore(t)
	s.artifact("one", "1")
	s.expect(0, "publish myapp 1.0 @one.tar.zst --channel testing", "")
	old := s.host()
	s.follows("before", old, "myapp/testing")
	opened, err := stores.Open(s.env["CORPUS_STORE"], stores.Options{})
	if err != nil {
		t.Fatal(err)
	}
	for range 2 {
		p := &publish.Publisher{Store: noClock{opened}, Keys: publish.Keyring{Dir: s.path("keys")}, Seen: s.path("keys/seen"),
			Now: func() time.Time { return time.Now().Add(240 * time.Hour) }}
		if _, err := refresh.Roles(t.Context(), p, time.Hour); err != nil {
			t.Fatal(err)
		}
	}
	s.expect(4, "refresh", "corpus refresh --rebuild")
	s.expect(0, "refresh --rebuild", "made snapshot and timestamp again")
	s.follows("afterwards", old, "myapp/testing")
	s.expect(0, "keys rotate timestamp", "timestamp")
	s.expect(0, "refresh", "renewed")
	s.follows("in the end", old, "myapp/testing")
}

// noClock is a store that does not report its time.
type noClock struct{ store.Store }

// Get is part of store.Store.
func (n noClock) Get(ctx context.Context, key string, from int64) (io.ReadCloser, store.Info, error) {
	body, info, err := n.Store.Get(ctx, key, from)
	info.Now = time.Time{}
	return body, info, err
}
