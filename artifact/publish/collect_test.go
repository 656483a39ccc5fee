package publish_test

import (
	"context"
	"fmt"
	"iter"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/corpus-agent/corpus-agent/artifact/chunk"
	"github.com/corpus-agent/corpus-agent/artifact/publish"
	"github.com/corpus-agent/corpus-agent/artifact/store"
	"github.com/corpus-agent/corpus-agent/artifact/store/mem"
	"github.com/corpus-agent/corpus-agent/artifact/trust"
)

// usual are the defaults of `corpus gc`.
func usual() publish.Grace { return publish.Grace{Packs: 24 * time.Hour, Drafts: 30 * 24 * time.Hour} }

// noise is content that is worth an index, the same for the same seed.
func noise(seed byte) string {
	data := make([]byte, 1<<20)
	_, _ = rand.NewChaCha8([32]byte{seed}).Read(data) // never fails
	return string(data)
}

// release publishes content as a version.
func release(t *testing.T, p *publish.Publisher, version, content string) {
	t.Helper()
	if _, err := p.Publish(t.Context(), publish.Request{Project: "myapp", Version: version, File: pack(t, content), Channel: "testing"}); err != nil {
		t.Fatal(err)
	}
}

// collected lets somebody collect garbage after so many days.
func collected(t *testing.T, p *publish.Publisher, days int, dry bool) publish.Collected {
	t.Helper()
	later := beside(t, p)
	later.Now = func() time.Time { return time.Now().Add(time.Duration(days)*24*time.Hour + time.Minute) }
	all, err := later.Collect(t.Context(), usual(), dry)
	if err != nil {
		t.Fatal(err)
	}
	return all
}

// lost are the packs that signed indexes name and the store has not.
func lost(t *testing.T, p *publish.Publisher) []string {
	t.Helper()
	c := host(t, p)
	role, err := c.Whole(t.Context(), "myapp")
	if err != nil {
		t.Fatal(err)
	}
	var missing []string
	for _, r := range trust.Releases("myapp", role) {
		signed, err := c.FetchSidecar(t.Context(), r, trust.KindIndex)
		if err != nil {
			t.Fatal(err)
		}
		index, err := chunk.Parse(signed)
		if err != nil {
			t.Fatal(err)
		}
		for _, digest := range index.Packs {
			key := chunk.PackKey("myapp", digest)
			body, _, err := p.Store.Get(t.Context(), key, 0)
			if err != nil {
				missing = append(missing, fmt.Sprintf("%s of %s", key, r.Version))
				continue
			}
			_ = body.Close() // it was asked for its being there
		}
	}
	return missing
}

func keys(t *testing.T, s store.Store, suffix string) []string {
	t.Helper()
	var all []string
	for info, err := range s.List(t.Context(), "deploy/") {
		if err != nil {
			t.Fatal(err)
		}
		if strings.HasSuffix(info.Key, suffix) {
			all = append(all, info.Key)
		}
	}
	return all
}

// orphan leaves the pack of a publisher who was killed before he signed.
func orphan(t *testing.T, p *publish.Publisher, content string) {
	t.Helper()
	cut := beside(t, p)
	cut.Hand = func(*publish.Draft) error { return context.Canceled }
	_, err := cut.Publish(t.Context(), publish.Request{Project: "myapp", Version: "cut", File: pack(t, content)})
	if err == nil {
		t.Fatal("he was not cut short")
	}
	for _, note := range keys(t, p.Store, ".draft") {
		if err := p.Store.Delete(t.Context(), note); err != nil {
			t.Fatal(err)
		}
	}
}

func TestCollectRemovesWhatNobodyNames(t *testing.T) {
	p := publisher(t, mem.New())
	release(t, p, "1", noise(1))
	orphan(t, p, noise(2))
	if got, want := collected(t, p, 0, false), (publish.Collected{Kept: 1, Young: 1}); got != want {
		t.Errorf("at once: %+v, want %+v", got, want)
	}
	if got := collected(t, p, 2, true); got.Packs != 1 || len(keys(t, p.Store, ".pack")) != 2 {
		t.Errorf("a dry run: %+v, and it left %d packs", got, len(keys(t, p.Store, ".pack")))
	}
	if got := collected(t, p, 2, false); got.Packs != 1 || got.Bytes < 1<<20 || got.Kept != 1 {
		t.Errorf("two days later: %+v, want one removed", got)
	}
	if missing := lost(t, p); len(missing) > 0 {
		t.Errorf("it removed %v", missing)
	}
}

// A withdrawal can be taken back, so what a withdrawn version brought stays.
func TestCollectKeepsWithdrawnVersions(t *testing.T) {
	p := publisher(t, mem.New())
	release(t, p, "1", noise(1))
	release(t, p, "2", noise(2))
	if _, err := p.Yank(t.Context(), "myapp", "1", "loses sessions"); err != nil {
		t.Fatal(err)
	}
	if got, want := collected(t, p, 400, false), (publish.Collected{Kept: 2}); got != want {
		t.Errorf("%+v, want %+v", got, want)
	}
	if missing := lost(t, p); len(missing) > 0 {
		t.Errorf("it removed %v", missing)
	}
}

// drafted hands a version round to be signed.
func drafted(t *testing.T, p *publish.Publisher, version, content string) *publish.Draft {
	t.Helper()
	offline := beside(t, p)
	var draft *publish.Draft
	offline.Hand = func(d *publish.Draft) error { draft = d; return nil }
	if _, err := offline.Publish(t.Context(), publish.Request{Project: "myapp", Version: version, File: pack(t, content), Channel: "testing"}); err != nil {
		t.Fatal(err)
	}
	return draft
}

func TestCollectKnowsDrafts(t *testing.T) {
	p := publisher(t, mem.New())
	release(t, p, "1", noise(1))
	draft := drafted(t, p, "2", noise(2))
	if got, want := collected(t, p, 20, false), (publish.Collected{Kept: 1, Pending: 1}); got != want {
		t.Errorf("20 days later: %+v, want %+v", got, want)
	}
	if _, err := beside(t, p).Import(t.Context(), draft); err != nil {
		t.Fatal(err)
	}
	if missing := lost(t, p); len(missing) > 0 {
		t.Errorf("the draft came too late for %v", missing)
	}
	if got, want := collected(t, p, 20, false), (publish.Collected{Kept: 2}); got != want || len(keys(t, p.Store, ".draft")) != 0 {
		t.Errorf("when it is signed: %+v, want %+v and no note left: %v", got, want, keys(t, p.Store, ".draft"))
	}
	drafted(t, p, "3", noise(3))
	if got := collected(t, p, 31, false); got.Packs != 1 || got.Kept != 2 || len(keys(t, p.Store, ".draft")) != 0 {
		t.Errorf("a draft that nobody signs for a month: %+v, left %v", got, keys(t, p.Store, ".draft"))
	}
}

// A draft of before there were notes, or one that is signed too late, has lost its chunks. The version can be
// deployed all the same, who imports it is told, nobody builds on what is gone, and it can be mended.
func TestDraftWhoseChunksAreGone(t *testing.T) {
	p := publisher(t, mem.New())
	release(t, p, "1", noise(1))
	draft := drafted(t, p, "2", noise(2))
	for _, note := range keys(t, p.Store, ".draft") {
		if err := p.Store.Delete(t.Context(), note); err != nil {
			t.Fatal(err)
		}
	}
	if got := collected(t, p, 2, false); got.Packs != 1 {
		t.Fatalf("collected %+v, want the pack that nobody knows of", got)
	}
	imported, err := beside(t, p).Import(t.Context(), draft)
	if err != nil || !slices.Equal(imported.WithoutChunks, []string{"2"}) {
		t.Errorf("importing says %+v, %v, want that 2 has lost its chunks", imported, err)
	}
	release(t, p, "3", noise(2)+"and more")
	if missing := lost(t, p); len(missing) != 1 || !strings.HasSuffix(missing[0], " of 2") {
		t.Errorf("lost is %v, want what 2 brought alone", missing)
	}
	release(t, p, "2", noise(2))
	if missing := lost(t, p); len(missing) > 0 {
		t.Errorf("published again, there is still lost %v", missing)
	}
}

// meddled is a store in which something happens after a listing of packs, and before each write.
type meddled struct {
	store.Store
	listed func()
}

func (m *meddled) List(ctx context.Context, prefix string) iter.Seq2[store.Info, error] {
	var all []store.Info
	var failed error
	for info, err := range m.Store.List(ctx, prefix) {
		all, failed = append(all, info), err
	}
	if m.listed != nil && strings.HasSuffix(prefix, "/chunks/") {
		m.listed()
	}
	return func(yield func(store.Info, error) bool) {
		for i, info := range all {
			if i == len(all)-1 && failed != nil {
				yield(info, failed)
				return
			}
			if !yield(info, nil) {
				return
			}
		}
	}
}

// A draft is imported, and its note collected by somebody else, while a collection is between its
// listing and what it reads next.
func TestCollectBesideAnImportAndAnotherCollection(t *testing.T) {
	p := publisher(t, mem.New())
	release(t, p, "1", noise(1))
	draft := drafted(t, p, "2", noise(2))
	slow := beside(t, p)
	slow.Store = &meddled{Store: p.Store, listed: func() {
		if _, err := beside(t, p).Import(t.Context(), draft); err != nil {
			t.Error(err)
		}
		collected(t, p, 20, false)
	}}
	slow.Now = func() time.Time { return time.Now().Add(20 * 24 * time.Hour) }
	if _, err := slow.Collect(t.Context(), usual(), false); err != nil {
		t.Fatal(err)
	}
	if missing := lost(t, p); len(missing) > 0 {
		t.Errorf("%v is signed and gone", missing)
	}
}

// A publisher brings the very chunks that one who was cut short long ago left behind, and a collection
// that has seen those is still at work when he has signed.
func TestCollectBesideAPublisherOfOldChunks(t *testing.T) {
	p := publisher(t, mem.New())
	release(t, p, "1", noise(1))
	orphan(t, p, noise(2))
	old := keys(t, p.Store, ".pack")
	deleting := beside(t, p)
	late := &lateDeletes{Store: p.Store}
	deleting.Store = late
	deleting.Now = func() time.Time { return time.Now().Add(2 * 24 * time.Hour) }
	if _, err := deleting.Collect(t.Context(), usual(), false); err != nil || len(late.keys) != 1 {
		t.Fatalf("it would remove %v, %v", late.keys, err)
	}
	release(t, p, "2", noise(2))
	for _, key := range late.keys {
		if err := p.Store.Delete(t.Context(), key); err != nil {
			t.Fatal(err)
		}
	}
	if missing := lost(t, p); len(missing) > 0 {
		t.Errorf("%v is signed and gone", missing)
	}
	if now := keys(t, p.Store, ".pack"); len(now) != 2 || slices.Equal(now, old) {
		t.Errorf("the packs were %v, and are %v", old, now)
	}
}

// lateDeletes is a store whose deletions come later.
type lateDeletes struct {
	store.Store
	keys []string
}

func (l *lateDeletes) Delete(_ context.Context, key string) error {
	l.keys = append(l.keys, key)
	return nil
}
