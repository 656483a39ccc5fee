package rollout_test

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"github.com/corpus-agent/corpus-agent/agent/rollout"
	plans "github.com/corpus-agent/corpus-agent/artifact/rollout"
	"github.com/corpus-agent/corpus-agent/artifact/store"
	"github.com/corpus-agent/corpus-agent/artifact/store/dir"
)

// TestObstacleInPlaceOfLease puts something else in place of the only lease of a cluster in a directory store, or of
// the directories above it, as every host with access to the directory can, and checks that a host takes the place
// within two runs, and that another one then does not.
func TestObstacleInPlaceOfLease(t *testing.T) {
	link := func(to string) func(string) error { return func(at string) error { return os.Symlink(to, at) } }
	for what, obstacle := range map[string]func(at string) error{
		"link to nowhere":   link("nowhere"),
		"link out":          link("/etc/passwd"),
		"link to itself":    link("0.json"),
		"link to directory": link("."),
		"link to roster":    link("../../roster.json"),
		"pipe":              func(at string) error { return syscall.Mkfifo(at, 0o644) },
		"file":              func(at string) error { return os.WriteFile(at, []byte("x"), 0o644) },
		"directory":         func(at string) error { return os.MkdirAll(filepath.Join(at, "x"), 0o755) },
	} {
		for _, where := range []string{"0.json", ".", ".."} {
			f := newFleet(t, 4) // one place
			top := t.TempDir()
			s := dir.New(top)
			data, _, err := f.Roster.Content()
			if err != nil {
				t.Fatal(err)
			}
			roster := plans.RosterKey(production, f.Start.ID)
			if _, err := s.Put(store.Creating(t.Context()), roster, bytes.NewReader(data), int64(len(data)),
				store.Condition{}); err != nil {
				t.Fatal(err)
			}
			at := filepath.Join(top, plans.Prefix(production, f.Start.ID), "leases/myapp-production-useast1", where)
			if err := os.MkdirAll(filepath.Dir(at), 0o755); err != nil {
				t.Fatal(err)
			}
			if err := obstacle(at); err != nil {
				t.Fatal(err)
			}
			acquire := func(i int) bool {
				t.Helper()
				e, err := f.Read(t.Context(), s, time.Now())
				if err != nil {
					t.Fatalf("%s at %s: %v", what, where, err)
				}
				host := f.Roster.Hosts[i].Name
				l, _, err := f.Acquire(t.Context(), s, f.keys[host], place(host), runID, e, time.Now())
				if err != nil {
					t.Errorf("%s at %s: %v", what, where, err)
				}
				return l != nil
			}
			if first := acquire(0); !first && !acquire(0) {
				t.Errorf("%s at %s: the host took no place", what, where)
			}
			if acquire(1) {
				t.Errorf("%s at %s: two hosts have the only place", what, where)
			}
		}
	}
}

// TestLeaseFromTheFutureExpires checks that a lease whose object has a time in the future keeps its place only for as
// long as another one would.
func TestLeaseFromTheFutureExpires(t *testing.T) {
	const year = 365 * 24 * time.Hour
	for ahead, taken := range map[time.Duration]bool{time.Minute: true, 2 * time.Hour: false, year: false} {
		f := newFleet(t, 4) // one place
		s := newTimed()
		holder, other := f.Roster.Hosts[0].Name, f.Roster.Hosts[1].Name
		now := s.now
		s.now = now.Add(ahead)
		l, _, err := f.Acquire(t.Context(), s, f.keys[holder], place(holder), runID, f.read(t, s), s.now)
		if l == nil || err != nil {
			t.Fatal(l, err)
		}
		s.now = now
		l, _, err = f.Acquire(t.Context(), s, f.keys[other], place(other), runID, f.read(t, s), s.now)
		if err != nil || (l == nil) != taken {
			t.Errorf("a lease from %v in the future: the other host got %v, %v", ahead, l, err)
		}
	}
}

// TestLeasesOfPlacesThatDoNotExistCountForNothing checks that a host of the rollout that writes leases of clusters and
// of places that the rollout does not have holds only its own place, and that a list that is cut says so.
func TestLeasesOfPlacesThatDoNotExistCountForNothing(t *testing.T) {
	f, s := newFleet(t, 4), newTimed() // one place
	thief := f.Roster.Hosts[0].Name
	lease := func(name string) {
		t.Helper()
		key := plans.Prefix(production, f.Start.ID) + "leases/" + name
		data, err := f.keys[thief].Seal(key, []byte(`{"host":"`+thief+`","run":"`+runID+`"}`))
		if err != nil {
			t.Fatal(err)
		}
		s.put(t, key, string(data))
	}
	for i := range 30 {
		lease(fmt.Sprintf("a-%d/0.json", i))
	}
	for i := range 7 {
		lease(fmt.Sprintf("myapp-production-useast1/%d.json", i))
	}
	e := f.read(t, s)
	holders, more, err := f.Holders(t.Context(), s, e, s.now)
	if err != nil || more != 0 || len(holders) != 1 || holders[0].Host != thief {
		t.Errorf("held are %+v and %d more, %v, want the only place", holders, more, err)
	}
	if len(e.Ignored) != rollout.MostIgnored {
		t.Errorf("%d names are said to count for nothing", len(e.Ignored))
	}
	f.Plan.AtOnce = plans.All
	if holders, _, _ := f.Holders(t.Context(), s, f.read(t, s), s.now); len(holders) > 0 {
		t.Errorf("without a limit, places are held: %+v", holders)
	}
}
