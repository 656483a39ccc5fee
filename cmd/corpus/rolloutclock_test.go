package main

import (
	"context"
	"io"
	"testing"
	"time"

	"github.com/corpus-agent/corpus-agent/artifact"
	"github.com/corpus-agent/corpus-agent/artifact/publish"
	"github.com/corpus-agent/corpus-agent/artifact/store"
	"github.com/corpus-agent/corpus-agent/artifact/store/stores"
)

// clocked is a store whose clock is ahead of this machine's.
type clocked struct {
	store.Store
	by time.Duration
}

// Get is part of store.Store.
func (c clocked) Get(ctx context.Context, key string, from int64) (io.ReadCloser, store.Info, error) {
	body, info, err := c.Store.Get(ctx, key, from)
	info.Now = time.Now().Add(c.by)
	return body, info, err
}

// TestRolloutsAreReadByTheStoresClock checks that a machine whose clock is wrong reads a rollout at the time of the
// store, up to which a resume forgives failures.
func TestRolloutsAreReadByTheStoresClock(t *testing.T) {
	s := newStore(t)
	s.artifact("one", "1")
	s.artifact("two", "2")
	s.expect(0, "publish myapp 1.0 @one.tar.zst --channel production", "")
	s.expect(0, "project rollout myapp production --waves 100%", "")
	s.expect(0, "publish myapp 1.1 @two.tar.zst --channel production --urgent", "has started")
	opened, err := stores.Open(s.env["CORPUS_STORE"], stores.Options{})
	if err != nil {
		t.Fatal(err)
	}
	for _, by := range []time.Duration{-30 * time.Minute, 0, 30 * time.Minute} {
		p := &publish.Publisher{Store: clocked{opened, by}, Keys: publish.Keyring{Dir: s.path("keys")},
			Seen: s.path("keys/seen")}
		u, err := publisherRollout(t.Context(), p, artifact.Ref{Project: "myapp", Channel: "production"})
		if err != nil {
			t.Fatal(err)
		}
		if off := time.Until(u.now) - by; off.Abs() > time.Minute {
			t.Errorf("with a store that is %v ahead, the rollout is read %v away from the store's time", by, off)
		}
	}
}

// TestAddressOfPagesInABucket checks the address of the first page where the URL of the bucket has a query.
func TestAddressOfPagesInABucket(t *testing.T) {
	p := &program{}
	for into, want := range map[string]string{
		"minio://127.0.0.1:9900/pages?tls=0": "minio://127.0.0.1:9900/pages/index.html?tls=0",
		"s3://bucket/fleet/":                 "s3://bucket/fleet/index.html",
	} {
		if _, first, err := p.pagesInto(into); err != nil || first != want {
			t.Errorf("%s: %q, %v; want %q", into, first, err, want)
		}
	}
}
