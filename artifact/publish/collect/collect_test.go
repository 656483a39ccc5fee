package collect_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"iter"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/corpus-agent/corpus-agent/artifact/artifacttest"
	"github.com/corpus-agent/corpus-agent/artifact/chunk"
	"github.com/corpus-agent/corpus-agent/artifact/publish"
	"github.com/corpus-agent/corpus-agent/artifact/publish/collect"
	"github.com/corpus-agent/corpus-agent/artifact/publish/drafts"
	"github.com/corpus-agent/corpus-agent/artifact/publish/releases"
	"github.com/corpus-agent/corpus-agent/artifact/store"
	"github.com/corpus-agent/corpus-agent/artifact/store/dir"
	"github.com/corpus-agent/corpus-agent/artifact/store/mem"
	"github.com/corpus-agent/corpus-agent/artifact/trust"
	"github.com/corpus-agent/corpus-agent/state/diag"
)

// usual returns the defaults of `corpus gc`.
func usual() collect.Grace { return collect.Grace{Packs: 24 * time.Hour, Drafts: 30 * 24 * time.Hour} }

// noise returns content that is large enough for an index, the same for the same seed.
func noise(seed byte) string {
	data := make([]byte, 1<<20)
	_, _ = rand.NewChaCha8([32]byte{seed}).Read(data) // never fails
	return string(data)
}

// release publishes content as a version.
func release(t *testing.T, p *publish.Publisher, version, content string) {
	t.Helper()
	if _, err := releases.Publish(t.Context(), p, releases.Request{Project: "myapp", Version: version,
		File: artifacttest.App(t, content), Channel: "testing"}); err != nil {
		t.Fatal(err)
	}
}

// collectedPacks is like collected, for tests of packs only.
func collectedPacks(t *testing.T, p *publish.Publisher, days int, dry bool) collect.Collected {
	t.Helper()
	all := collected(t, p, days, dry)
	all.Objects, all.Pages = collect.Tally{}, collect.Tally{}
	if all.Packs == 0 {
		all.Bytes = 0
	}
	return all
}

// collected collects garbage as another publisher would after so many days.
func collected(t *testing.T, p *publish.Publisher, days int, dry bool) collect.Collected {
	t.Helper()
	later := artifacttest.Beside(t, p)
	later.Now = func() time.Time { return time.Now().Add(time.Duration(days)*24*time.Hour + time.Minute) }
	all, err := collect.Garbage(t.Context(), later, usual(), dry)
	if err != nil {
		t.Fatal(err)
	}
	return all
}

// lost returns the packs that signed indexes name and the store does not have.
func lost(t *testing.T, p *publish.Publisher) []string {
	t.Helper()
	c := artifacttest.Client(t, p)
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
			_ = body.Close() // only its existence is checked
		}
	}
	return missing
}

// orphan uploads the pack of a publisher that is interrupted before it signs.
func orphan(t *testing.T, p *publish.Publisher, content string) {
	t.Helper()
	cut := artifacttest.Beside(t, p)
	cut.Hand = func(*publish.Draft) error { return context.Canceled }
	_, err := releases.Publish(t.Context(), cut, releases.Request{Project: "myapp", Version: "cut",
		File: artifacttest.App(t, content)})
	if err == nil {
		t.Fatal("the publisher was not interrupted")
	}
	for _, note := range artifacttest.Stored(t, p.Store, ".draft") {
		if err := p.Store.Delete(t.Context(), note); err != nil {
			t.Fatal(err)
		}
	}
}

func TestCollectRemovesUnreferencedPacks(t *testing.T) {
	t.Parallel()
	p := artifacttest.Publisher(t, mem.New())
	release(t, p, "1", noise(1))
	orphan(t, p, noise(2))
	if got, want := collectedPacks(t, p, 0, false), (collect.Collected{Kept: 1, Young: 1}); got != want {
		t.Errorf("at once: %+v, want %+v", got, want)
	}
	if got := collectedPacks(t, p, 2, true); got.Packs != 1 || len(artifacttest.Stored(t, p.Store, ".pack")) != 2 {
		t.Errorf("a dry run: %+v, and it left %d packs", got, len(artifacttest.Stored(t, p.Store, ".pack")))
	}
	if got := collectedPacks(t, p, 2, false); got.Packs != 1 || got.Bytes < 1<<20 || got.Kept != 1 {
		t.Errorf("two days later: %+v, want one removed", got)
	}
	if missing := lost(t, p); len(missing) > 0 {
		t.Errorf("the collection removed %v", missing)
	}
}

// TestCollectKeepsWithdrawnVersions checks that the objects of a withdrawn version stay, since a withdrawal can be
// undone.
func TestCollectKeepsWithdrawnVersions(t *testing.T) {
	t.Parallel()
	p := artifacttest.Publisher(t, mem.New())
	release(t, p, "1", noise(1))
	release(t, p, "2", noise(2))
	if _, err := releases.Yank(t.Context(), p, "myapp", "1", "loses sessions"); err != nil {
		t.Fatal(err)
	}
	if got, want := collectedPacks(t, p, 400, false), (collect.Collected{Kept: 2}); got != want {
		t.Errorf("%+v, want %+v", got, want)
	}
	if missing := lost(t, p); len(missing) > 0 {
		t.Errorf("the collection removed %v", missing)
	}
}

// drafted returns a draft of a version that is not signed yet.
func drafted(t *testing.T, p *publish.Publisher, version, content string) *publish.Draft {
	t.Helper()
	offline := artifacttest.Beside(t, p)
	var draft *publish.Draft
	offline.Hand = func(d *publish.Draft) error { draft = d; return nil }
	if _, err := releases.Publish(t.Context(), offline, releases.Request{Project: "myapp", Version: version,
		File: artifacttest.App(t, content), Channel: "testing"}); err != nil {
		t.Fatal(err)
	}
	return draft
}

func TestCollectKeepsObjectsOfDrafts(t *testing.T) {
	t.Parallel()
	p := artifacttest.Publisher(t, mem.New())
	release(t, p, "1", noise(1))
	draft := drafted(t, p, "2", noise(2))
	if got, want := collectedPacks(t, p, 20, false), (collect.Collected{Kept: 1, Pending: 1}); got != want {
		t.Errorf("20 days later: %+v, want %+v", got, want)
	}
	if _, err := drafts.Import(t.Context(), artifacttest.Beside(t, p), draft); err != nil {
		t.Fatal(err)
	}
	if missing := lost(t, p); len(missing) > 0 {
		t.Errorf("the draft came too late for %v", missing)
	}
	if got, want := collectedPacks(t, p, 20, false), (collect.Collected{Kept: 2}); got != want ||
		len(artifacttest.Stored(t, p.Store, ".draft")) != 0 {
		t.Errorf("when it is signed: %+v, want %+v and no note left: %v", got, want,
			artifacttest.Stored(t, p.Store, ".draft"))
	}
	drafted(t, p, "3", noise(3))
	if got := collectedPacks(t, p, 31, false); got.Packs != 1 || got.Kept != 2 ||
		len(artifacttest.Stored(t, p.Store, ".draft")) != 0 {
		t.Errorf("a draft without a signature for a month: %+v, left %v", got, artifacttest.Stored(t, p.Store, ".draft"))
	}
}

func removed(t *testing.T, s store.Store, keys ...string) {
	t.Helper()
	for _, key := range keys {
		if err := s.Delete(t.Context(), key); err != nil {
			t.Fatal(err)
		}
	}
}

// TestCollectRemovesOrphanObjects checks that the objects of an interrupted publish are removed after the grace period,
// and no others.
func TestCollectRemovesOrphanObjects(t *testing.T) {
	t.Parallel()
	p := artifacttest.Publisher(t, mem.New())
	release(t, p, "1", noise(1))
	signed := artifacttest.Stored(t, p.Store, "")
	orphan(t, p, noise(2))
	later := artifacttest.Beside(t, p)
	for _, at := range []struct {
		after time.Duration
		dry   bool
		want  collect.Tally
	}{
		{time.Hour, false, collect.Tally{Young: 3, Kept: 3}},
		{25 * time.Hour, true, collect.Tally{Removed: 3, Kept: 3}},
		{25 * time.Hour, false, collect.Tally{Removed: 3, Kept: 3}},
		{25 * time.Hour, false, collect.Tally{Kept: 3}},
	} {
		later.Now = func() time.Time { return time.Now().Add(at.after) }
		if got, err := collect.Garbage(t.Context(), later, usual(), at.dry); err != nil || got.Objects != at.want {
			t.Errorf("after %v: %+v, %v, want %+v", at.after, got, err, at.want)
		}
	}
	if left := artifacttest.Stored(t, p.Store, ""); !slices.Equal(left, signed) {
		t.Errorf("the objects are %v, want the signed ones: %v", left, signed)
	}
}

// TestCollectKeepsArtifactsOfDrafts checks that a draft keeps its artifact as long as its chunks, whether or not its
// note names objects, as older notes do not. A later import of the draft is refused, since hosts could fetch nothing.
func TestCollectKeepsArtifactsOfDrafts(t *testing.T) {
	t.Parallel()
	for _, old := range []bool{false, true} {
		p := artifacttest.Publisher(t, mem.New())
		release(t, p, "1", noise(1))
		draft := drafted(t, p, "2", noise(2))
		if old {
			forgetObjects(t, p.Store)
		}
		later := artifacttest.Beside(t, p)
		later.Now = func() time.Time { return time.Now().Add(20 * 24 * time.Hour) }
		if got, err := collect.Garbage(t.Context(), later, usual(), false); err != nil ||
			got.Objects != (collect.Tally{Kept: 3, Pending: 3}) {
			t.Fatalf("20 days later: %+v, %v", got, err)
		}
		late := drafted(t, p, "3", "small")
		later.Now = func() time.Time { return time.Now().Add(31 * 24 * time.Hour) }
		if got, err := collect.Garbage(t.Context(), later, usual(), false); err != nil || got.Objects.Removed == 0 ||
			got.Objects.Pending != 0 {
			t.Fatalf("31 days later: %+v, %v", got, err)
		}
		for _, d := range []*publish.Draft{draft, late} {
			if _, err := drafts.Import(t.Context(), artifacttest.Beside(t, p), d); err == nil ||
				!strings.Contains(err.Error(), "not in the store") {
				t.Errorf("a draft whose artifact was removed: %v", err)
			}
		}
	}
}

// forgetObjects replaces notes by those of an earlier corpus.
func forgetObjects(t *testing.T, s store.Store) {
	t.Helper()
	for _, key := range artifacttest.Stored(t, s, ".draft") {
		body, _, err := s.Get(t.Context(), key, 0)
		if err != nil {
			t.Fatal(err)
		}
		var note map[string]any
		if err := errors.Join(json.NewDecoder(body).Decode(&note), body.Close()); err != nil {
			t.Fatal(err)
		}
		delete(note, "objects")
		data, err := json.Marshal(note)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := s.Put(t.Context(), key, bytes.NewReader(data), int64(len(data)), store.Condition{}); err != nil {
			t.Fatal(err)
		}
	}
}

// TestCollectDuringPublishOfOldObjects checks that a release is complete if a publisher signs objects that an earlier
// attempt left long ago, while a collection that considers them old is running, in either order.
func TestCollectDuringPublishOfOldObjects(t *testing.T) {
	t.Parallel()
	for name, between := range map[string]func(t *testing.T, p *publish.Publisher, collect func()){
		"publish first": func(t *testing.T, p *publish.Publisher, collect func()) {
			release(t, p, "cut", noise(2))
			collect()
		},
		"collect first": func(t *testing.T, p *publish.Publisher, collect func()) {
			slow := artifacttest.Beside(t, p)
			slow.Store = beforeCommit{p.Store, collect}
			release(t, slow, "cut", noise(2))
		},
	} {
		t.Run(name, func(t *testing.T) {
			p := artifacttest.Publisher(t, mem.New())
			release(t, p, "1", noise(1))
			orphan(t, p, noise(2))
			collector := artifacttest.Beside(t, p)
			collector.Now = func() time.Time { return time.Now().Add(2 * 24 * time.Hour) }
			listed, published := make(chan struct{}), make(chan struct{})
			collector.Store = &hooked{Store: p.Store, listed: func() { close(listed); <-published }}
			done := make(chan error, 1)
			go func() { _, err := collect.Garbage(t.Context(), collector, usual(), false); done <- err }()
			<-listed
			between(t, p, func() {
				close(published)
				if err := <-done; err != nil {
					t.Error(err)
				}
			})
			for _, name := range []string{".cut.tar.zst", ".cut.tar.zst.index", ".cut.tar.zst.blocks"} {
				if len(artifacttest.Stored(t, p.Store, name)) == 0 {
					t.Errorf("%s is signed and was removed", name)
				}
			}
		})
	}
}

// beforeCommit is a store that calls a function before a timestamp is written.
type beforeCommit struct {
	store.Store
	do func()
}

func (b beforeCommit) Put(ctx context.Context, key string, r io.Reader, size int64, cond store.Condition) (store.Info,
	error) {
	if key == trust.TimestampKey {
		b.do()
	}
	return b.Store.Put(ctx, key, r, size, cond)
}

// TestImportOfDraftWithMissingChunks imports a draft without a note, or one that is signed too late, whose chunks were
// removed. The version can be deployed nevertheless, the result of the import names it, later versions do not use the
// lost chunks, and it can be repaired.
func TestImportOfDraftWithMissingChunks(t *testing.T) {
	t.Parallel()
	p := artifacttest.Publisher(t, mem.New())
	release(t, p, "1", noise(1))
	before := artifacttest.Stored(t, p.Store, ".pack")
	draft := drafted(t, p, "2", noise(2))
	for _, pack := range artifacttest.Stored(t, p.Store, ".pack") {
		if !slices.Contains(before, pack) {
			removed(t, p.Store, pack)
		}
	}
	imported, err := drafts.Import(t.Context(), artifacttest.Beside(t, p), draft)
	if err != nil || !slices.Equal(imported.WithoutChunks, []string{"2"}) {
		t.Errorf("the import returns %+v, %v, want that 2 has lost its chunks", imported, err)
	}
	release(t, p, "3", noise(2)+"and more")
	if missing := lost(t, p); len(missing) != 1 || !strings.HasSuffix(missing[0], " of 2") {
		t.Errorf("the lost packs are %v, want only those of version 2", missing)
	}
	release(t, p, "2", noise(2))
	if missing := lost(t, p); len(missing) > 0 {
		t.Errorf("after publishing again, %v is still lost", missing)
	}
}

// hooked is a store that calls functions after a listing of packs, and before each write.
type hooked struct {
	store.Store
	listed func()
}

func (m *hooked) List(ctx context.Context, prefix string) iter.Seq2[store.Info, error] {
	var all []store.Info
	var failed error
	for info, err := range m.Store.List(ctx, prefix) {
		all, failed = append(all, info), err
	}
	if m.listed != nil && prefix == "deploy/myapp/" {
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

// TestCollectDuringImportAndOtherCollection imports a draft, whose note another collection removes, while a collection
// is between its listing and the next read.
func TestCollectDuringImportAndOtherCollection(t *testing.T) {
	t.Parallel()
	p := artifacttest.Publisher(t, mem.New())
	release(t, p, "1", noise(1))
	draft := drafted(t, p, "2", noise(2))
	slow := artifacttest.Beside(t, p)
	slow.Store = &hooked{Store: p.Store, listed: func() {
		if _, err := drafts.Import(t.Context(), artifacttest.Beside(t, p), draft); err != nil {
			t.Error(err)
		}
		collectedPacks(t, p, 20, false)
	}}
	slow.Now = func() time.Time { return time.Now().Add(20 * 24 * time.Hour) }
	if _, err := collect.Garbage(t.Context(), slow, usual(), false); err != nil {
		t.Fatal(err)
	}
	if missing := lost(t, p); len(missing) > 0 {
		t.Errorf("%v is signed and was removed", missing)
	}
}

// TestCollectDuringPublishOfOldChunks publishes chunks that an interrupted publisher left long ago, while a collection
// that considers them old is running.
func TestCollectDuringPublishOfOldChunks(t *testing.T) {
	t.Parallel()
	p := artifacttest.Publisher(t, mem.New())
	release(t, p, "1", noise(1))
	orphan(t, p, noise(2))
	old := artifacttest.Stored(t, p.Store, ".pack")
	deleting := artifacttest.Beside(t, p)
	late := &lateDeletes{Store: p.Store}
	deleting.Store = late
	deleting.Now = func() time.Time { return time.Now().Add(2 * 24 * time.Hour) }
	if _, err := collect.Garbage(t.Context(), deleting, usual(), false); err != nil || len(late.keys) != 4 {
		t.Fatalf("the collection would remove %v, %v", late.keys, err)
	}
	release(t, p, "2", noise(2))
	for _, key := range late.keys[:1] { // of the packs
		if err := p.Store.Delete(t.Context(), key); err != nil {
			t.Fatal(err)
		}
	}
	if missing := lost(t, p); len(missing) > 0 {
		t.Errorf("%v is signed and was removed", missing)
	}
	if now := artifacttest.Stored(t, p.Store, ".pack"); len(now) != 2 || slices.Equal(now, old) {
		t.Errorf("the packs were %v and are now %v", old, now)
	}
}

// lateDeletes is a store that delays deletions.
type lateDeletes struct {
	store.Store
	keys []string
}

func (l *lateDeletes) Delete(_ context.Context, key string) error {
	l.keys = append(l.keys, key)
	return nil
}

// withUploads is a store with unfinished uploads.
type withUploads struct {
	store.Store
	unfinished []store.Unfinished
	aborted    []string
}

func (w *withUploads) Unfinished(context.Context, string) ([]store.Unfinished, error) {
	return w.unfinished, nil
}

func (w *withUploads) Abort(_ context.Context, u store.Unfinished) error {
	w.aborted = append(w.aborted, u.ID)
	return nil
}

func TestCollectAbortsOldUploads(t *testing.T) {
	t.Parallel()
	p := artifacttest.Publisher(t, mem.New())
	uploads := &withUploads{Store: p.Store, unfinished: []store.Unfinished{
		{Key: "deploy/a", ID: "old", Begun: time.Now().Add(-25 * time.Hour)},
		{Key: "deploy/b", ID: "young", Begun: time.Now().Add(-23 * time.Hour)},
	}}
	p.Store = store.Stack(uploads, store.Settings{Observe: func(store.Request) {}})
	for _, dry := range []bool{true, false} {
		got, err := collect.Garbage(t.Context(), p, usual(), dry)
		if want := (collect.Tally{Removed: 1, Young: 1}); err != nil || got.Uploads != want {
			t.Errorf("%+v, %v, want %+v", got.Uploads, err, want)
		}
		if want := map[bool]int{true: 0, false: 1}[dry]; len(uploads.aborted) != want ||
			want == 1 && uploads.aborted[0] != "old" {
			t.Errorf("dry is %v, and aborted %v", dry, uploads.aborted)
		}
	}
}

// TestCollectWithALostIndex checks that the loss of one index keeps the packs, and nothing else, from being collected.
func TestCollectWithALostIndex(t *testing.T) {
	t.Parallel()
	p := artifacttest.Publisher(t, mem.New())
	release(t, p, "1", noise(1))
	release(t, p, "2", noise(2))
	orphan(t, p, noise(3))
	for _, key := range artifacttest.Stored(t, p.Store, ".1.tar.zst.index") {
		if err := p.Store.Delete(t.Context(), key); err != nil {
			t.Fatal(err)
		}
	}
	before := len(artifacttest.Stored(t, p.Store, ".pack"))
	later := artifacttest.Beside(t, p)
	later.Now = func() time.Time { return time.Now().Add(49 * time.Hour) }
	all, err := collect.Garbage(t.Context(), later, usual(), false)
	if err == nil || !strings.Contains(err.Error(), "the index of the chunks of myapp 1 cannot be read") ||
		!strings.Contains(diag.HintOf(err), "corpus publish") {
		t.Errorf("the error is %v, hint %q", err, diag.HintOf(err))
	}
	if all.Objects.Removed == 0 || all.Packs != 0 || len(artifacttest.Stored(t, p.Store, ".pack")) != before {
		t.Errorf("%+v, and %d of %d packs are left", all, len(artifacttest.Stored(t, p.Store, ".pack")), before)
	}
}

// TestClockYearsAheadRemovesNothing checks the clock against the signed metadata: in a directory nothing else tells the
// time.
func TestClockYearsAheadRemovesNothing(t *testing.T) {
	t.Parallel()
	p := artifacttest.Publisher(t, mem.New())
	if err := collect.CheckClock(t.Context(), p); err != nil {
		t.Error(err)
	}
	p.Now = func() time.Time { return time.Now().AddDate(3, 0, 0) }
	if err := collect.CheckClock(t.Context(), p); err == nil || !strings.Contains(diag.HintOf(err), "set the clock") {
		t.Errorf("the error is %v", err)
	}
}

// TestTemporaryFilesOfDeadPublishersAreRemoved checks a directory, in which a killed publisher leaves temporary files.
func TestTemporaryFilesOfDeadPublishersAreRemoved(t *testing.T) {
	t.Parallel()
	root := t.TempDir()
	p := artifacttest.Publisher(t, dir.New(root))
	release(t, p, "1", "x")
	old := time.Now().Add(-2 * time.Minute)
	for _, name := range []string{"deploy/myapp/.corpus-put-a", "deploy/myapp/chunks/.corpus-put-b"} {
		name = filepath.Join(root, name)
		if err := errors.Join(os.MkdirAll(filepath.Dir(name), 0o755), os.WriteFile(name, nil, 0o644),
			os.Chtimes(name, old, old)); err != nil {
			t.Fatal(err)
		}
	}
	for _, dry := range []bool{true, false} {
		all, err := collect.Garbage(t.Context(), p, usual(), dry)
		if err != nil || all.Uploads.Removed != 2 {
			t.Errorf("dry %v: %+v, %v", dry, all, err)
		}
	}
	if all, err := collect.Garbage(t.Context(), p, usual(), false); err != nil || all.Uploads != (collect.Tally{}) {
		t.Errorf("again: %+v, %v", all, err)
	}
}
