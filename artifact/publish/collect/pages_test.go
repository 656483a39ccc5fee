package collect_test

import (
	"slices"
	"testing"
	"time"

	"github.com/corpus-agent/corpus-agent/artifact/artifacttest"
	"github.com/corpus-agent/corpus-agent/artifact/publish"
	"github.com/corpus-agent/corpus-agent/artifact/publish/collect"
	"github.com/corpus-agent/corpus-agent/artifact/store/mem"
	"github.com/corpus-agent/corpus-agent/artifact/trust"
)

func pageKeys(t *testing.T, p *publish.Publisher) []string {
	t.Helper()
	var all []string
	for info, err := range p.Store.List(t.Context(), trust.PagePrefix("myapp")) {
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, info.Key)
	}
	slices.Sort(all)
	return all
}

// TestCollectRemovesPagesOfReplacedHeads checks that pages of replaced heads stay until the grace period has passed:
// hosts may be about to read them.
func TestCollectRemovesPagesOfReplacedHeads(t *testing.T) {
	t.Parallel()
	p := artifacttest.Publisher(t, mem.New())
	for _, version := range []string{"1", "2", "3"} {
		release(t, p, version, "version "+version)
	}
	before := pageKeys(t, p)
	if len(before) != 3 {
		t.Fatalf("the store has %d pages, want one of each head", len(before))
	}
	if got := collected(t, p, 0, false).Pages; got != (collect.Tally{Young: 2, Kept: 1}) || len(pageKeys(t, p)) != 3 {
		t.Errorf("at once: %+v, and %d pages remain", got, len(pageKeys(t, p)))
	}
	if got := collected(t, p, 2, true).Pages; got.Removed != 2 || len(pageKeys(t, p)) != 3 {
		t.Errorf("a dry run: %+v, and %d pages remain", got, len(pageKeys(t, p)))
	}
	if got := collected(t, p, 2, false).Pages; got.Removed != 2 || len(pageKeys(t, p)) != 1 {
		t.Errorf("two days later: %+v, and %d pages remain", got, len(pageKeys(t, p)))
	}
	role, err := artifacttest.Client(t, p).Whole(t.Context(), "myapp")
	if err != nil || len(trust.Releases("myapp", role)) != 3 {
		t.Errorf("the project has %d versions, %v", len(trust.Releases("myapp", role)), err)
	}
}

// TestCollectKeepsOldPagesOfAHeadReplacedNow checks that an old page stays if its head was replaced just before.
func TestCollectKeepsOldPagesOfAHeadReplacedNow(t *testing.T) {
	t.Parallel()
	p := artifacttest.Publisher(t, mem.New())
	release(t, p, "1", "version 1")
	time.Sleep(20 * time.Millisecond)
	written := time.Now()
	release(t, p, "2", "version 2")
	collector, now := artifacttest.Beside(t, p), time.Now()
	collector.Now = func() time.Time { return now }
	grace := collect.Grace{Packs: now.Sub(written), Drafts: time.Hour}
	all, err := collect.Garbage(t.Context(), collector, grace, false)
	if err != nil || all.Pages.Removed != 0 || len(pageKeys(t, p)) != 2 {
		t.Errorf("%+v, %v: %d pages are left", all.Pages, err, len(pageKeys(t, p)))
	}
}
