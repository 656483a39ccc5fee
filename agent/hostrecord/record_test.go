package hostrecord

import (
	"context"
	"errors"
	"fmt"
	"math"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/corpus-agent/corpus-agent/agent/hostkey"
	"github.com/corpus-agent/corpus-agent/artifact/store"
	"github.com/corpus-agent/corpus-agent/artifact/store/mem"
)

func newKey(t testing.TB) hostkey.Key {
	t.Helper()
	key, damaged, err := hostkey.Open(filepath.Join(t.TempDir(), "host.key"))
	if err != nil || damaged != nil {
		t.Fatal(err, damaged)
	}
	return key
}

func sample(sequence int64) Record {
	return Record{
		Project: "myapp", Host: "myapp-production-3", Run: "20260501T120000.000000", Sequence: sequence,
		Outcome: "rolled-back", Exit: 7, Flags: Flags{Held: true, OtherRoot: true}, Agent: "1.2.0+abc", Form: 2,
		Service: &Place{"production", "1.1~rc1+2", "68cb9278"}, Base: &Place{"production", "1.0", "712908a6"},
		Wanted: &Place{"production", "1.2", "a40a59dc"},
	}
}

// TestRecordNameEncodesTheRecord also checks versions with characters that stores treat differently, and long names.
func TestRecordNameEncodesTheRecord(t *testing.T) {
	key := newKey(t)
	long := sample(1)
	long.Service = &Place{strings.Repeat("c", 63), strings.Repeat("v", 128), "68cb9278"}
	long.Wanted.Channel = long.Service.Channel
	long.Base = &Place{strings.Repeat("d", 63), strings.Repeat("w", 128), "68cb9278"}
	for name, r := range map[string]Record{"usual": sample(12), "long": long, "nothing deployed": {
		Project: "p", Host: "h", Run: "20260501T120000.000000", Outcome: "failed", Exit: 5,
		Wanted: &Place{"", "1", "aa01bb02"},
	}} {
		object, err := r.Key(key)
		if err != nil {
			t.Fatal(err)
		}
		for segment := range strings.SplitSeq(object, "/") {
			if len(segment) > 255 {
				t.Errorf("%s: a segment of %d bytes is too long for a file name", name, len(segment))
			}
		}
		if strings.ContainsAny(object, "~+ ") {
			t.Errorf("%s: %s has characters that stores treat differently", name, object)
		}
		got, text, signature, err := parse(object)
		if err != nil || !reflect.DeepEqual(got, r) {
			t.Errorf("%s: %+v, %v, want %+v", name, got, err, r)
		}
		if !key.Public().SignedName(text, signature) {
			t.Errorf("%s: the signature is invalid", name)
		}
	}
}

// write writes a record of a host with this key.
func write(t *testing.T, s store.Store, key hostkey.Key, file string, r Record) {
	t.Helper()
	w := Writer{Store: s, URL: "mem:", Key: key, File: file}
	if err := w.Write(t.Context(), r, Detail{Error: "it failed", Hint: "look"}); err != nil {
		t.Fatal(err)
	}
}

func objects(t *testing.T, s store.Store) (keys []string) {
	t.Helper()
	for info, err := range s.List(t.Context(), Prefix) {
		if err != nil {
			t.Fatal(err)
		}
		keys = append(keys, info.Key)
	}
	return keys
}

// TestAHostHasOneRecord checks that one record remains after each run, also after a power failure between writing a
// record and deleting the earlier one.
func TestAHostHasOneRecord(t *testing.T) {
	s, key, file := mem.New(), newKey(t), filepath.Join(t.TempDir(), "record.json")
	for i := range int64(3) {
		write(t, s, key, file, sample(i))
		if keys := objects(t, s); len(keys) != 1 {
			t.Fatalf("after run %d the records are %q", i, keys)
		}
	}
	cut := Writer{Store: undeletable{s, errors.New("the power is gone")}, URL: "mem:", Key: key, File: file}
	if err := cut.Write(t.Context(), sample(3), Detail{}); err == nil || len(objects(t, s)) != 2 {
		t.Fatalf("%v, %q", err, objects(t, s))
	}
	known := hostkey.Registry{"myapp-production-3": {{Key: key.Public()}}}
	if hosts, ignored := check(t, s, known); len(hosts) != 1 || hosts[0].Sequence != 3 || len(ignored) != 0 {
		t.Errorf("%+v, %v", hosts, ignored)
	}
	write(t, s, key, file, sample(4))
	if keys := objects(t, s); len(keys) != 1 || !strings.Contains(keys[0], ",4,rolled-back,") {
		t.Errorf("the records are %q", keys)
	}
	hosts, _ := check(t, s, known)
	if d, err := Read(t.Context(), s, known, hosts[0]); err != nil || d.Error != "it failed" || d.Hint != "look" {
		t.Errorf("%+v, %v", d, err)
	}
}

type undeletable struct {
	store.Store
	err error
}

func (u undeletable) Delete(context.Context, string) error { return u.err }

// TestHostWithoutDeletePermission checks that the error names the missing right, and that the newest record counts.
func TestHostWithoutDeletePermission(t *testing.T) {
	s, key, file := mem.New(), newKey(t), filepath.Join(t.TempDir(), "record.json")
	write(t, s, key, file, sample(1))
	refused := undeletable{s, &store.Error{Op: store.OpDelete, Kind: store.ErrForbidden}}
	err := Writer{Store: refused, URL: "mem:", Key: key, File: file}.Write(t.Context(), sample(2), Detail{})
	if err == nil || !errors.Is(err, store.ErrForbidden) {
		t.Fatal(err)
	}
	hosts, _ := check(t, s, hostkey.Registry{"myapp-production-3": {{Key: key.Public()}}})
	if len(hosts) != 1 || hosts[0].Sequence != 2 {
		t.Errorf("%+v", hosts)
	}
	write(t, s, key, file, sample(3))
	if keys := objects(t, s); len(keys) != 1 {
		t.Errorf("the earlier record still exists: %q", keys)
	}
}

// ownOnly is a store where a host may delete only objects below its own name.
type ownOnly struct {
	store.Store
	own string
}

func (o ownOnly) Delete(ctx context.Context, key string) error {
	if !strings.HasPrefix(key, o.own) {
		return &store.Error{Op: store.OpDelete, Kind: store.ErrForbidden}
	}
	return o.Store.Delete(ctx, key)
}

// TestRecordsUnderAnEarlierNameDoNotAccumulate checks a host that may not delete the record under its earlier name: one
// run reports it, and each run leaves one record under the new name.
func TestRecordsUnderAnEarlierNameDoNotAccumulate(t *testing.T) {
	s, key, file := mem.New(), newKey(t), filepath.Join(t.TempDir(), "record.json")
	earlier := sample(1)
	earlier.Host = "vm"
	write(t, s, key, file, earlier)
	w := Writer{Store: ownOnly{s, PrefixOf("myapp") + "myapp-production-3/"}, URL: "mem:", Key: key, File: file}
	if err := w.Write(t.Context(), sample(2), Detail{}); !errors.Is(err, store.ErrForbidden) {
		t.Errorf("the first run under the new name: %v, want a refused deletion", err)
	}
	for run := range int64(3) {
		if err := w.Write(t.Context(), sample(3+run), Detail{}); err != nil {
			t.Errorf("a later run: %v", err)
		}
		if keys := objects(t, s); len(keys) != 2 {
			t.Errorf("the records are %q, want one record under each name", keys)
		}
	}
}

func check(t *testing.T, s store.Store, known hostkey.Registry) ([]Listed, []Ignored) {
	t.Helper()
	records, err := List(t.Context(), s, "", known)
	if err != nil {
		t.Fatal(err)
	}
	return records.Check(known)
}

// TestRecordsThatDoNotCount checks records signed with another key, copied from another host, with another state, and
// old records that were stored again.
func TestRecordsThatDoNotCount(t *testing.T) {
	key, other := newKey(t), newKey(t)
	real, err := sample2(5).Key(key)
	if err != nil {
		t.Fatal(err)
	}
	old, _ := sample2(4).Key(key)
	foreign, _ := sample2(9).Key(other)
	bad := sample2(9)
	bad.Service = &Place{"production", "1.0", "9\"}\n# \x1b[31m"}
	badDigest, _ := bad.Key(key)
	known := hostkey.Registry{"h": {{Key: key.Public()}, {Key: other.Public()}}}
	for name, c := range map[string]struct {
		also    []string
		counts  int
		ignored int
	}{
		"no other record":         {nil, 1, 0},
		"of another key":          {[]string{foreign}, 1, 0},
		"old, stored again later": {[]string{old}, 1, 0},
		"with another state":      {[]string{strings.Replace(real, ",5,converged,", ",6,failed,", 1)}, 1, 0},
		"no records": {[]string{"fleet/x", "fleet/myapp/h/x.json", "fleet/a/b/c/d/e", "fleet/myapp/h/,,,,,.json"},
			1, 0},
		"with a digest that is none": {[]string{badDigest}, 1, 0},
		"of another host":            {[]string{strings.Replace(real, "/h/", "/g/", 1)}, 1, 1},
	} {
		s := mem.New()
		for _, object := range append([]string{real}, c.also...) {
			time.Sleep(time.Millisecond) // the store's clock orders them
			if _, err := s.Put(t.Context(), object, strings.NewReader("{}"), 2, store.Condition{}); err != nil {
				t.Fatal(err)
			}
		}
		known["g"] = []hostkey.Registered{{Key: other.Public()}}
		hosts, ignored := check(t, s, known)
		if len(hosts) != c.counts || hosts[0].Sequence != 5 || !hosts[0].Signed || len(ignored) != c.ignored {
			t.Errorf("%s: %+v, ignored %v", name, hosts, ignored)
		}
		if d, err := Read(t.Context(), s, known, hosts[0]); err != nil || d != (Detail{}) {
			t.Errorf("%s: an object that the host did not sign is read as %+v, %v", name, d, err)
		}
	}
}

// TestRestoredDiskContinuesFromEarlierSequence has a host continue from an earlier sequence number. Its new records
// count, and an old record that another user stores again does not.
func TestRestoredDiskContinuesFromEarlierSequence(t *testing.T) {
	key, s := newKey(t), mem.New()
	now := time.Now().UTC()
	put := func(sequence int64, at time.Time) string {
		t.Helper()
		r := sample2(sequence)
		r.Run = at.Format("20060102T150405.000000")
		object, err := r.Key(key)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := s.Put(t.Context(), object, strings.NewReader("{}"), 2, store.Condition{}); err != nil {
			t.Fatal(err)
		}
		return object
	}
	counts := func(sequence int64, twice bool) {
		t.Helper()
		hosts, _ := check(t, s, hostkey.Registry{"h": {{Key: key.Public()}}})
		if len(hosts) != 1 || hosts[0].Sequence != sequence || hosts[0].Twice != twice || !hosts[0].Signed {
			t.Errorf("%+v, want number %d, twice %v", hosts, sequence, twice)
		}
	}
	put(50, now.Add(-3*time.Hour))
	put(9, now.Add(time.Minute))
	counts(9, false)
	put(5, now.Add(time.Hour)) // a run on another day with a clock that is ahead
	counts(9, false)
	put(3, now.Add(-time.Hour))
	counts(9, false)
}

// TestTwoMachinesWithOneKey checks records of two machines, one of which writes while the record of the other is new.
func TestTwoMachinesWithOneKey(t *testing.T) {
	now := time.Now()
	record := func(key string, sequence int64, started, seen time.Duration) Listed {
		r := *sample2(sequence)
		r.Run = now.Add(started).UTC().Format("20060102T150405.000000")
		return Listed{Record: r, Key: key, Seen: now.Add(seen)}
	}
	for name, c := range map[string]struct {
		other Listed
		twice bool
	}{
		"repeated meanwhile":      {record("b", 8, -40*time.Minute, 0), true},
		"left by a power failure": {record("b", 8, -40*time.Minute, -35*time.Minute), false},
	} {
		if got := chosen([]Listed{record("a", 9, -30*time.Minute, 0), c.other}); got.Sequence != 9 ||
			got.Twice != c.twice {
			t.Errorf("%s: %+v", name, got)
		}
	}
}

func sample2(sequence int64) *Record {
	return &Record{Project: "myapp", Host: "h", Run: "20260501T120000.000000", Sequence: sequence, Outcome: "converged"}
}

// TestAHostThatFloodsItsPrefix checks that it counts as one host, with its latest run, and that other hosts are not
// affected.
func TestAHostThatFloodsItsPrefix(t *testing.T) {
	key := newKey(t)
	s := mem.New()
	for i := range int64(300) {
		object, _ := sample2(i).Key(key)
		if i%2 == 0 { // with an invalid signature
			object = strings.Replace(object, ",converged,", ",failed,", 1)
		}
		if _, err := s.Put(t.Context(), object, strings.NewReader("{}"), 2, store.Condition{}); err != nil {
			t.Fatal(err)
		}
	}
	hosts, ignored := check(t, s, hostkey.Registry{"h": {{Key: key.Public()}}})
	if len(hosts) != 1 || hosts[0].Sequence != 299 || len(ignored) != 0 {
		t.Errorf("%+v, %v", hosts, ignored)
	}
}

// FuzzParse checks that Parse does not panic, and that a parsed record is written with the same key.
func FuzzParse(f *testing.F) {
	key := newKey(f)
	for i := range int64(2) {
		r := sample(i)
		object, err := r.Key(key)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(object)
	}
	f.Add("fleet/a/b/,,,!,!2,!zz,x.json")
	f.Fuzz(func(t *testing.T, object string) {
		r, text, signature, err := parse(object)
		if err != nil {
			return
		}
		again, err := r.Key(key)
		if err != nil {
			return // the name is too long, for example because of its characters
		}
		back, _, _, err := parse(again)
		if err != nil || fmt.Sprintf("%+v", flat(back)) != fmt.Sprintf("%+v", flat(r)) {
			t.Errorf("%q is %+v, and %q %+v, %v", object, flat(r), again, flat(back), err)
		}
		if key.Public().SignedName(text, signature) && !slices.Contains([]int64{0, 1}, r.Sequence) {
			t.Errorf("%q is accepted", object)
		}
	})
}

// flat returns a record as text that is equal for equal content.
func flat(r Record) string {
	all := r.text()
	r.Service, r.Base, r.Wanted, r.WantedBase = nil, nil, nil, nil
	return fmt.Sprintf("%+v %s", r, all)
}

// TestForgedNumbersDoNotHideAHost checks that a record with a negative number is invalid and said to be, and that one
// with the highest number and a run in the future is used only until the host writes another one.
func TestForgedNumbersDoNotHideAHost(t *testing.T) {
	s, key := mem.New(), newKey(t)
	forge := func(sequence int64, run string) {
		t.Helper()
		r := sample(sequence)
		r.Run = run
		write(t, s, key, filepath.Join(t.TempDir(), "record.json"), r)
	}
	known := hostkey.Registry{"myapp-production-3": {{Key: key.Public()}}}
	forge(-5, "20260501T120000.000000")
	if hosts, ignored := check(t, s, known); len(hosts) != 0 || len(ignored) != 1 || ignored[0].Why != Invalid {
		t.Errorf("a negative number: %+v, %+v", hosts, ignored)
	}
	forge(math.MaxInt64, "99991231T235959.000000")
	if hosts, _ := check(t, s, known); len(hosts) != 1 || !hosts[0].Ahead() {
		t.Errorf("a run in the future: %+v", hosts)
	}
	write(t, s, key, filepath.Join(t.TempDir(), "record.json"), sample(7))
	if hosts, _ := check(t, s, known); len(hosts) != 1 || hosts[0].Sequence != 7 || !hosts[0].Twice {
		t.Errorf("after the host's own record: %+v", hosts)
	}
}
