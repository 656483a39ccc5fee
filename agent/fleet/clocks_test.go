package fleet_test

import (
	"context"
	"fmt"
	"iter"
	"strings"
	"testing"
	"time"

	"github.com/corpus-agent/corpus-agent/agent/fleet"
	"github.com/corpus-agent/corpus-agent/agent/hostrecord"
	"github.com/corpus-agent/corpus-agent/artifact/store"
	"github.com/corpus-agent/corpus-agent/artifact/store/mem"
)

// offStore is a store whose clock is off.
type offStore struct {
	store.Store
	by time.Duration
}

func (s offStore) List(ctx context.Context, prefix string) iter.Seq2[store.Info, error] {
	return func(yield func(store.Info, error) bool) {
		for info, err := range s.Store.List(ctx, prefix) {
			info.Modified = info.Modified.Add(s.by)
			if !yield(info, err) {
				return
			}
		}
	}
}

// TestClockOfTheStoreIsNotBlamedOnHosts looks at hosts that report in a store whose clock is a day behind or ahead, and
// which sends its time or does not, and at one host whose clock is a day ahead.
func TestClockOfTheStoreIsNotBlamedOnHosts(t *testing.T) {
	const day = 24 * time.Hour
	for _, c := range []struct {
		store time.Duration
		sends bool          // the store sends its time
		host  time.Duration // of one of three hosts
		want  string
	}{
		{want: ""},
		{store: -day, want: fleet.StoreClock + " : it is about 24h0m0s behind"},
		{store: -day, sends: true, want: fleet.StoreClock + " : it is about 24h0m0s behind"},
		{store: day, want: fleet.StoreClock + " : it is about 24h0m0s ahead of"},
		{host: day, want: fleet.Ahead + " h0: "},
		{store: -day, host: day, want: fleet.StoreClock + " : it is about 24h0m0s behind, " + fleet.Ahead + " h0: "},
	} {
		t.Run(fmt.Sprint(c.store, c.sends, c.host), func(t *testing.T) {
			s, now := offStore{mem.New(), c.store}, time.Now()
			for i := range 3 {
				h := newReporting(t, s, fmt.Sprint("h", i), hostrecord.Flags{})
				began := now.Add(-time.Minute)
				if i == 0 {
					began = began.Add(c.host)
				}
				h.record.Run, h.record.Sequence = began.UTC().Format(hostrecord.RunTime), 2
				if err := h.Write(t.Context(), h.record, hostrecord.Detail{}); err != nil {
					t.Fatal(err)
				}
			}
			q := fleet.Query{Store: s, Now: now, Viewer: now, SilentAfter: time.Hour}
			if c.sends {
				q.Now = now.Add(c.store)
			}
			v, err := fleet.Look(t.Context(), q)
			if err != nil {
				t.Fatal(err)
			}
			var got []string
			for _, a := range v.Attention {
				text := a.What + " " + strings.Join(a.Hosts, " ") + ": " + a.Why
				text, _, _ = strings.Cut(text, " the clocks of")
				got = append(got, text)
			}
			if text := strings.Join(got, ", "); text != c.want {
				t.Errorf("what needs a person is %q, want %q", text, c.want)
			}
		})
	}
}
