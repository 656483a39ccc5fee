package collect_test

import (
	"context"
	"iter"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/corpus-agent/corpus-agent/artifact/publish"
	"github.com/corpus-agent/corpus-agent/artifact/publish/collect"
	"github.com/corpus-agent/corpus-agent/artifact/store"
	"github.com/corpus-agent/corpus-agent/artifact/store/mem"
)

// aged is a store that received each object at the time in the name of its run.
type aged struct{ store.Store }

func (s aged) List(ctx context.Context, prefix string) iter.Seq2[store.Info, error] {
	return func(yield func(store.Info, error) bool) {
		for info, err := range s.Store.List(ctx, prefix) {
			name := info.Key[strings.LastIndexByte(info.Key, '/')+1:]
			if at, wrong := time.Parse("20060102T150405.000000.json", name); wrong == nil {
				info.Modified = at
			}
			if !yield(info, err) {
				return
			}
		}
	}
}

// TestOldReportsAreRemoved checks that the newest report of a host with a record stays, since such a host may have had
// no change to report for longer than that, and that other objects stay.
func TestOldReportsAreRemoved(t *testing.T) {
	s := aged{mem.New()}
	names := func() (keys []string) {
		for info, err := range s.List(t.Context(), "") {
			if err != nil {
				t.Fatal(err)
			}
			keys = append(keys, info.Key)
		}
		return keys
	}
	const old, older, young = "20260101T000000.000000.json", "20251201T000000.000000.json", "20260420T000000.000000.json"
	for _, key := range []string{
		"reports/app/calm/" + older, "reports/app/calm/" + old, "fleet/app/calm/a/b.json",
		"reports/app/busy/" + old, "reports/app/busy/" + young, "fleet/app/busy/b.json",
		"reports/app/gone/" + older, "reports/app/gone/" + old, "reports/app/notes.txt", "reports/app/gone/notes.json",
	} {
		if _, err := s.Put(t.Context(), key, strings.NewReader("12"), 2, store.Condition{}); err != nil {
			t.Fatal(err)
		}
	}
	p := &publish.Publisher{Store: s, Now: func() time.Time { return time.Date(2026, 5, 1, 0, 0, 0, 0, time.UTC) }}
	before := names()
	want := collect.Tally{Removed: 4, Kept: 2}
	tally, bytes, err := collect.Reports(t.Context(), p, 90*24*time.Hour, true)
	if err != nil || tally != want || bytes != 8 || !slices.Equal(names(), before) {
		t.Fatalf("a dry run: %+v, %d bytes, %v; the reports are %q", tally, bytes, err, names())
	}
	if tally, _, err = collect.Reports(t.Context(), p, 90*24*time.Hour, false); err != nil || tally != want {
		t.Errorf("%+v, %v", tally, err)
	}
	left := []string{"fleet/app/busy/b.json", "fleet/app/calm/a/b.json", "reports/app/busy/" + young,
		"reports/app/calm/" + old, "reports/app/gone/notes.json", "reports/app/notes.txt"}
	if got := names(); !slices.Equal(got, left) {
		t.Errorf("the reports are %q, want %q", got, left)
	}
}
