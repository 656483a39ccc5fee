package fleet_test

import (
	"context"
	"fmt"
	"iter"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/corpus-agent/corpus-agent/agent/fleet"
	"github.com/corpus-agent/corpus-agent/agent/hostkey"
	"github.com/corpus-agent/corpus-agent/agent/hostrecord"
	"github.com/corpus-agent/corpus-agent/artifact/store"
)

// flooded is a store with one host, whose record and key come before n other objects of its name.
type flooded struct {
	store.Store
	key, record string
	object      func(i int) string
	n           int
	lists       []string // prefixes that were listed
}

func (f *flooded) List(_ context.Context, prefix string) iter.Seq2[store.Info, error] {
	f.lists = append(f.lists, prefix)
	registered := time.Now().Add(-time.Hour)
	return func(yield func(store.Info, error) bool) {
		for i := range f.n + 2 {
			name, at := f.object(i), registered.Add(time.Duration(i)*time.Millisecond)
			switch i {
			case 0:
				name = f.record
			case 1:
				name = f.key
			}
			if strings.HasPrefix(name, prefix) && !yield(store.Info{Key: name, Modified: at}, nil) {
				return
			}
		}
	}
}

// TestFloodOfObjectsIsBoundedAndNamed checks that very many objects below the name of a host take no memory each, that
// they are reported with their number, and that the host keeps its key and its record.
func TestFloodOfObjectsIsBoundedAndNamed(t *testing.T) {
	const n = 10_000
	key := hostKey(t)
	r := hostrecord.Record{Project: "myapp", Host: "h", Run: "20260501T115500.000000", Sequence: 5, Outcome: "converged",
		Service: &hostrecord.Place{Channel: "production", Version: "1", Digest: "0a000000"}}
	object, err := r.Key(key)
	if err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		object func(i int) string
		says   string
		flood  int
	}{
		"keys": {func(i int) string { return fmt.Sprintf("hosts/h/%07d%s.json", i, key.Public()[7:]) }, fleet.Conflict, 0},
		"forged records": {func(i int) string { return strings.Replace(object, ",5,", fmt.Sprintf(",%d,", i+6), 1) },
			fleet.Flooded, n},
		"other names": {func(i int) string { return fmt.Sprintf("fleet/myapp/h/%0100d.json", i) }, fleet.Flooded, n},
	} {
		s := &flooded{key: hostkey.Place("h", key.Public()), record: object, object: c.object, n: n}
		before := heap()
		v, err := fleet.Look(t.Context(), fleet.Query{Store: s, Now: time.Now(), SilentAfter: 2 * time.Hour})
		if err != nil {
			t.Fatal(err)
		}
		if grown := heap() - before; grown > n*20 {
			t.Errorf("%s: the view of one host takes %d bytes", name, grown)
		}
		if len(v.Hosts) != 1 || !v.Hosts[0].Signed || v.Hosts[0].Sequence != 5 || v.Hosts[0].State != fleet.Healthy {
			t.Errorf("%s: the hosts are %+v", name, v.Hosts)
		}
		if v.Hosts[0].Replaced {
			t.Errorf("%s: the host counts as replaced", name)
		}
		if len(v.Attention) != 1 || v.Attention[0].What != c.says || v.Attention[0].Hosts[0] != "h" {
			t.Errorf("%s: what needs attention is %+v", name, v.Attention)
		}
		if missing := c.flood - v.Flooded["h"]; missing < 0 || missing > 64 {
			t.Errorf("%s: %d objects are reported, want about %d", name, v.Flooded["h"], c.flood)
		}
		if c.says == fleet.Conflict && v.Hosts[0].Conflicts != n {
			t.Errorf("%s: %d conflicts, want %d", name, v.Hosts[0].Conflicts, n)
		}
		if v.Known["h"][0].Key != key.Public() {
			t.Errorf("%s: another key counts: %v", name, v.Known["h"][0])
		}
	}
}

// heap returns the bytes of live objects.
func heap() int {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int(m.HeapAlloc)
}

// TestSecondKeyIsSeenWithKeysOfAnEarlierLook checks that a conflict shows although the keys of an earlier look still
// count, as soon as a record is signed with the other key, and that later looks do not read the keys again for it.
func TestSecondKeyIsSeenWithKeysOfAnEarlierLook(t *testing.T) {
	first, second := hostKey(t), hostKey(t)
	r := hostrecord.Record{Project: "myapp", Host: "h", Run: "20260501T115500.000000", Sequence: 5, Outcome: "converged"}
	own, err := r.Key(first)
	if err != nil {
		t.Fatal(err)
	}
	for name, sequence := range map[string]int64{"older": 1, "newer": 9} {
		s := &flooded{key: hostkey.Place("h", first.Public()), record: own, n: 0, object: func(int) string { return "" }}
		q := fleet.Query{Store: s, Now: time.Now(), SilentAfter: 2 * time.Hour}
		v, err := fleet.Look(t.Context(), q)
		if err != nil || v.Hosts[0].Conflicts != 0 {
			t.Fatal(v, err)
		}
		other := r
		other.Sequence = sequence
		object, err := other.Key(second)
		if err != nil {
			t.Fatal(err)
		}
		also := []string{"", "", object, hostkey.Place("h", second.Public())}
		s.n, s.object = 2, func(i int) string { return also[i] }
		q.Known = v.Known
		if v, err = fleet.Look(t.Context(), q); err != nil || len(v.Hosts) != 1 || v.Hosts[0].Conflicts != 1 ||
			v.Hosts[0].Sequence != 5 {
			t.Errorf("%s: %+v, %v, want one conflict", name, v.Hosts, err)
		}
		q.Known, s.lists = v.Known, nil
		if v, err = fleet.Look(t.Context(), q); err != nil || v.Hosts[0].Conflicts != 1 || len(s.lists) != 1 {
			t.Errorf("%s: then %+v, %v, with the listings %q", name, v.Hosts, err, s.lists)
		}
	}
}
