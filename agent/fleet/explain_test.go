package fleet_test

import (
	"context"
	"io"
	"strings"
	"testing"
	"time"

	"github.com/corpus-agent/corpus-agent/agent/fleet"
	"github.com/corpus-agent/corpus-agent/agent/hostrecord"
	"github.com/corpus-agent/corpus-agent/artifact/store"
	"github.com/corpus-agent/corpus-agent/artifact/store/mem"
)

// forbidding is a store whose objects this reader may list and not read.
type forbidding struct{ store.Store }

// Get is part of store.Store.
func (forbidding) Get(context.Context, string, int64) (io.ReadCloser, store.Info, error) {
	return nil, store.Info{}, store.ErrForbidden
}

// TestFleetIsShownWithoutTheRightToReadErrors checks that a host whose error this reader may not read is listed, with
// the right that is missing in place of the error.
func TestFleetIsShownWithoutTheRightToReadErrors(t *testing.T) {
	s := mem.New()
	newReporting(t, s, "a", hostrecord.Flags{Unseeing: true})
	v, err := fleet.Look(t.Context(), fleet.Query{Store: s, Now: time.Now(), SilentAfter: time.Hour})
	if err != nil {
		t.Fatal(err)
	}
	if err := v.Explain(t.Context(), forbidding{s}); err != nil {
		t.Fatalf("the fleet is not shown: %v", err)
	}
	if a := v.Attention[0]; !strings.Contains(a.Why, "not shown") || !strings.Contains(a.Hint, "read below fleet/") {
		t.Errorf("the entry is %+v", a)
	}
}
