package rollout_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"iter"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/corpus-agent/corpus-agent/agent/hostkey"
	"github.com/corpus-agent/corpus-agent/agent/rollout"
	"github.com/corpus-agent/corpus-agent/artifact"
	plans "github.com/corpus-agent/corpus-agent/artifact/rollout"
	"github.com/corpus-agent/corpus-agent/artifact/store"
	"github.com/corpus-agent/corpus-agent/artifact/store/dir"
	"github.com/corpus-agent/corpus-agent/artifact/store/mem"
	"github.com/corpus-agent/corpus-agent/state/diag"
)

var (
	production = artifact.Ref{Project: "myapp", Channel: "production"}
	began      = time.Date(2026, 1, 5, 8, 0, 0, 0, time.UTC)
	release    = "sha256:" + strings.Repeat("ab", 32)
)

const runID = "20260105T090000.000001"

// timed is a store with a fake clock that counts requests.
type timed struct {
	*mem.Store
	now      time.Time
	mu       sync.Mutex
	times    map[string]time.Time // under mu
	unlisted error
	lists    int
}

// newTimed returns a store with an object in place of the roster of newFleet's rollout, since listings include it.
func newTimed() *timed {
	s := &timed{Store: mem.New(), now: began, times: map[string]time.Time{}}
	if _, err := s.Put(context.Background(), plans.RosterKey(production, rolloutID), strings.NewReader("{}"), 2,
		store.Condition{}); err != nil {
		panic(err)
	}
	return s
}

const rolloutID = "1-c0ffee"

func (s *timed) Put(ctx context.Context, key string, r io.Reader, size int64, cond store.Condition) (store.Info,
	error) {
	info, err := s.Store.Put(ctx, key, r, size, cond)
	if err == nil {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.times[key] = s.now
	}
	return info, err
}

func (s *timed) Get(ctx context.Context, key string, from int64) (io.ReadCloser, store.Info, error) {
	body, info, err := s.Store.Get(ctx, key, from)
	info.Modified, info.Now = s.modified(key), s.now
	return body, info, err
}

func (s *timed) List(ctx context.Context, prefix string) iter.Seq2[store.Info, error] {
	return func(yield func(store.Info, error) bool) {
		if s.lists++; s.unlisted != nil {
			yield(store.Info{}, &store.Error{Op: store.OpList, Object: prefix, Kind: s.unlisted})
			return
		}
		for info, err := range s.Store.List(ctx, prefix) {
			info.Modified = s.modified(info.Key)
			if !yield(info, err) {
				return
			}
		}
	}
}

func (s *timed) modified(key string) time.Time {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.times[key]
}

func (s *timed) put(t *testing.T, key, content string) {
	t.Helper()
	if _, err := s.Put(t.Context(), key, strings.NewReader(content), int64(len(content)), store.Condition{}); err != nil {
		t.Fatal(err)
	}
}

// fleet is a rollout with hosts and their keys.
type fleet struct {
	rollout.Rollout
	keys map[string]hostkey.Key
}

func newFleet(t *testing.T, n int) fleet {
	t.Helper()
	keys, dir := map[string]hostkey.Key{}, t.TempDir()
	var roster rollout.Roster
	for i := range n {
		name := fmt.Sprintf("myapp-production-useast1-%d", i+1)
		key, _, err := hostkey.Open(filepath.Join(dir, name))
		if err != nil {
			t.Fatal(err)
		}
		keys[name] = key
		roster.Hosts = append(roster.Hosts, rollout.Member{Name: name, Region: "useast1", Cluster: "myapp-production-useast1",
			Key: key.Public()})
	}
	plan := plans.Default()
	start := plan.NewStart(rolloutID, release, began, roster.Places())
	data, digest, err := roster.Content()
	if err != nil {
		t.Fatal(err)
	}
	if roster, err = rollout.ParseRoster(data, digest); err != nil {
		t.Fatal(err)
	}
	start.Roster = digest
	return fleet{rollout.New(production, plan, start, roster), keys}
}

// inWave returns the hosts of a wave.
func (f fleet) inWave(wave int) (names []string) {
	for _, h := range f.Roster.Places() {
		if f.Wave(h) == wave {
			names = append(names, h.Name)
		}
	}
	return names
}

func (f fleet) record(t *testing.T, s store.Store, host string, o rollout.Outcome) {
	t.Helper()
	if err := f.Record(t.Context(), s, f.keys[host], host, o, runID); err != nil {
		t.Fatal(err)
	}
}

func (f fleet) read(t *testing.T, s *timed) rollout.Evidence {
	t.Helper()
	e, err := f.Read(t.Context(), s, s.now)
	if err != nil {
		t.Fatal(err)
	}
	return e
}

func place(name string) plans.Host {
	return plans.Host{Name: name, Region: "useast1", Cluster: "myapp-production-useast1"}
}

func TestOneListingReadsResultsOfHosts(t *testing.T) {
	f, s := newFleet(t, 40), newTimed()
	first, later := f.inWave(0), f.inWave(1)[0]
	e := f.read(t, s)
	if v := f.Decide(place(later), e, s.now.Add(2*time.Hour)); v.Take || v.Reason != plans.TooFew {
		t.Errorf("without results of the first wave, the second one is %+v", v)
	}
	for _, host := range first {
		f.record(t, s, host, rollout.Healthy)
		f.record(t, s, host, rollout.Healthy) // a record whose response was lost is written again
	}
	s.lists = 0
	e = f.read(t, s)
	if s.lists != 1 || len(e.Results) != len(first) || len(e.Ignored) != 0 {
		t.Errorf("%d listings show %+v, and ignore %v", s.lists, e.Results, e.Ignored)
	}
	if v := f.Decide(place(later), e, s.now.Add(59*time.Minute)); v.Take || v.Reason != plans.Waits {
		t.Errorf("before the first wave has soaked, the second one is %+v", v)
	}
	if v := f.Decide(place(later), e, s.now.Add(time.Hour)); !v.Take {
		t.Errorf("after the first wave has soaked, the second one is %+v", v)
	}
}

func TestSlowClockDoesNotHideFailure(t *testing.T) {
	f, s := newFleet(t, 40), newTimed()
	for _, host := range f.inWave(2)[:2] {
		f.record(t, s, host, rollout.Failed)
	}
	e := f.read(t, s)
	for _, now := range []time.Time{s.now.Add(-24 * time.Hour), s.now, s.now.Add(24 * time.Hour)} {
		if v := f.Decide(place(f.inWave(0)[0]), e, now); v.Reason != plans.Stops {
			t.Errorf("at %s: %+v", now, v)
		}
	}
}

func TestIgnoredResults(t *testing.T) {
	f, s := newFleet(t, 40), newTimed()
	host, other := f.inWave(0)[0], f.inWave(1)[0]
	prefix := plans.Prefix(production, f.Start.ID)
	changed := func(change func(*rollout.Rollout)) rollout.Rollout {
		r := f.Rollout
		change(&r)
		return r
	}
	// forged: signed with the key of another host
	if err := f.Record(t.Context(), s, f.keys[other], host, rollout.Failed, runID); err != nil {
		t.Fatal(err)
	}
	// foreign: a host that is not in the roster
	unlisted, _, err := hostkey.Open(filepath.Join(t.TempDir(), "key"))
	if err != nil {
		t.Fatal(err)
	}
	if err := f.Record(t.Context(), s, unlisted, "myapp-production-useast1-999", rollout.Failed, runID); err != nil {
		t.Fatal(err)
	}
	// replayed: of the same release in an earlier rollout, of another release, and of another channel
	for what, from := range map[string]rollout.Rollout{
		"an earlier rollout": changed(func(r *rollout.Rollout) { r.Start.ID = "0-c0ffee" }),
		"another channel":    changed(func(r *rollout.Rollout) { r.Ref.Channel = "testing" }),
		"another release":    changed(func(r *rollout.Rollout) { r.Start.Release = "sha256:" + strings.Repeat("cd", 32) }),
	} {
		elsewhere := newTimed()
		if err := from.Record(t.Context(), elsewhere, f.keys[host], host, rollout.Failed, runID); err != nil {
			t.Fatal(err)
		}
		for info, err := range elsewhere.List(t.Context(), plans.Prefix(from.Ref, from.Start.ID)) {
			if err != nil {
				t.Fatal(err)
			}
			s.put(t, prefix+strings.TrimPrefix(info.Key, plans.Prefix(from.Ref, from.Start.ID)), "{}")
			_ = what
		}
	}
	// a name below the wrong host, and invalid names
	good := newTimed()
	f.record(t, good, host, rollout.Failed)
	for info := range good.List(t.Context(), prefix+"results/") {
		s.put(t, strings.Replace(info.Key, host, other, 1), "{}")
		s.put(t, strings.Replace(info.Key, "failed.", "healthy.", 1), "{}")
		s.put(t, strings.Replace(info.Key, runID, "20260105T090000.000002", 1), "{}")
	}
	s.put(t, prefix+"results/"+host+"/failed.json", "{}")
	s.put(t, prefix+"results/"+strings.Repeat("a", 300)+"/x", "{}")
	s.put(t, prefix+"other/"+strings.Repeat("a", 700), strings.Repeat("x", 1<<20))
	e := f.read(t, s)
	if len(e.Results) != 0 || len(e.Halts) != 0 {
		t.Errorf("the counted results are %+v, the halts %+v", e.Results, e.Halts)
	}
	if len(e.Ignored) != 11 {
		t.Errorf("ignored: %q", e.Ignored)
	}
}

func TestLatestResultOfHostCounts(t *testing.T) {
	f, s := newFleet(t, 40), newTimed()
	host := f.inWave(0)[0]
	outcome := func() rollout.Outcome {
		e := f.read(t, s)
		if len(e.Results) != 1 {
			t.Fatalf("%+v", e.Results)
		}
		return e.Results[0].Outcome
	}
	f.record(t, s, host, rollout.Healthy)
	s.now = s.now.Add(time.Hour)
	f.record(t, s, host, rollout.RolledBack)
	if got := outcome(); got != rollout.RolledBack {
		t.Errorf("a host that was rolled back later counts as %s", got)
	}
	s.now = s.now.Add(time.Hour)
	f.Start.Resumed = s.now
	s.now = s.now.Add(time.Hour)
	if err := f.Record(t.Context(), s, f.keys[host], host, rollout.Healthy, "20260105T120000.000001"); err != nil {
		t.Fatal(err)
	}
	if got := outcome(); got != rollout.Healthy {
		t.Errorf("a host that was corrected after the resume counts as %s", got)
	}
	s.now = s.now.Add(time.Hour)
	if err := f.Record(t.Context(), s, f.keys[host], host, rollout.Failed, "20260105T130000.000001"); err != nil {
		t.Fatal(err)
	}
	if got := outcome(); got != rollout.Failed {
		t.Errorf("a host that failed again counts as %s", got)
	}
}

func TestHaltRecordHasReasons(t *testing.T) {
	f, s := newFleet(t, 40), newTimed()
	for _, host := range f.inWave(1)[:2] {
		f.record(t, s, host, rollout.Failed)
	}
	finder := f.inWave(2)[0]
	if err := f.RecordHalt(t.Context(), s, f.keys[finder], finder, runID, f.read(t, s), s.now); err != nil {
		t.Fatal(err)
	}
	e := f.read(t, s)
	if len(e.Halts) != 1 {
		t.Fatalf("%+v", e)
	}
	g, err := f.Grounds(t.Context(), s, e.Halts[0])
	if err != nil || g.Failed != 2 || g.Host != finder || len(g.Hosts) != 2 || g.Limit != "2,5%" {
		t.Errorf("%+v, %v", g, err)
	}
	if v := f.Decide(place(f.inWave(2)[1]), e, s.now); v.Reason != plans.Halted {
		t.Errorf("%+v", v)
	}
	// The body of its object may be replaced by one without a signature of the host.
	key := plans.Prefix(production, f.Start.ID) + e.Halts[0].String()
	s.put(t, key, `{"host":"x","why":"<script>"}`)
	if g, err := f.Grounds(t.Context(), s, e.Halts[0]); err == nil {
		t.Errorf("unsigned grounds: %+v", g)
	}
	// A person resumes the rollout: earlier records do not count any more, even if they are written again later.
	f.Start.Resumed = s.now.Add(time.Minute)
	s.now = s.now.Add(time.Hour)
	s.put(t, key, "{}")
	if e = f.read(t, s); len(e.Halts) != 0 {
		t.Errorf("after the resume: %+v", e.Halts)
	}
	if v := f.Decide(place(f.inWave(0)[0]), e, s.now); !v.Take {
		t.Errorf("after the resume: %+v", v)
	}
}

func TestFloodBelowNameOfAnotherHostIsNotAttributed(t *testing.T) {
	f, s := newFleet(t, 3), newTimed()
	prefix := plans.Prefix(production, f.Start.ID)
	for i := range 20_100 { // a policy for leases/* permits such a name
		s.put(t, fmt.Sprintf("%sresults/%s/leases/%d.json", prefix, f.inWave(0)[0], i), "")
	}
	_, err := f.Read(t.Context(), s, s.now)
	if !errors.Is(err, rollout.ErrNoEvidence) || strings.Contains(err.Error(), f.inWave(0)[0]) ||
		!strings.Contains(err.Error(), "names that no host writes") ||
		!strings.Contains(diag.HintOf(err), "no host of the rollout writes such names") {
		t.Errorf("%v, hint %s", err, diag.HintOf(err))
	}
}

func TestFloodingHostPausesRollout(t *testing.T) {
	f, s := newFleet(t, 3), newTimed()
	host := f.inWave(0)[0]
	prefix := plans.Prefix(production, f.Start.ID)
	f.record(t, s, host, rollout.Healthy)
	for i := range 15_000 {
		s.put(t, fmt.Sprintf("%sresults/%s/%d", prefix, host, i), "")
	}
	if e := f.read(t, s); len(e.Results) != 1 || len(e.Ignored) > 20 {
		t.Errorf("a few thousand invalid names change the evidence: %d, %d", len(e.Results), len(e.Ignored))
	}
	for i := range 6_000 {
		s.put(t, fmt.Sprintf("%sresults/%s/x%d", prefix, host, i), "")
	}
	_, err := f.Read(t.Context(), s, s.now)
	if !errors.Is(err, rollout.ErrNoEvidence) || !strings.Contains(err.Error(), host) ||
		!strings.Contains(diag.HintOf(err), "below "+prefix+"results/"+host+"/ and ") ||
		!strings.Contains(diag.HintOf(err), "and no others, such as roster.json") {
		t.Errorf("%v, hint %s", err, diag.HintOf(err))
	}
	// People see what hosts signed nevertheless.
	later := f.inWave(2)[0]
	f.record(t, s, later, rollout.Failed)
	e, err := f.ReadFlooded(t.Context(), s, s.now)
	if err != nil || len(e.Results) != 2 || len(e.Ignored) > 20 {
		t.Errorf("of the flooded rollout: %+v, ignored %d, %v", e.Results, len(e.Ignored), err)
	}
}

func TestAStoreThatCannotBeListedHasASummary(t *testing.T) {
	for _, kind := range []error{errors.ErrUnsupported, store.ErrForbidden} {
		f, s := newFleet(t, 40), newTimed()
		for _, host := range f.inWave(0) {
			f.record(t, s, host, rollout.Healthy)
		}
		f.record(t, s, f.inWave(1)[0], rollout.Failed)
		e := f.read(t, s)
		s.unlisted = kind
		if _, err := f.Read(t.Context(), s, s.now); !errors.Is(err, rollout.ErrNoEvidence) || diag.HintOf(err) == "" {
			t.Errorf("without a summary: %v", err)
		}
		if err := f.WriteSummary(t.Context(), s, e, s.now); err != nil {
			t.Fatal(err)
		}
		s.now = s.now.Add(10 * time.Minute)
		got := f.read(t, s)
		if len(got.Results) != len(e.Results) || got.Summary.IsZero() {
			t.Errorf("the summary shows %+v, and the listing %+v", got.Results, e.Results)
		}
		s.now = s.now.Add(30 * time.Minute)
		if _, err := f.Read(t.Context(), s, s.now); !errors.Is(err, rollout.ErrNoEvidence) {
			t.Errorf("with an old summary: %v", err)
		}
		s.put(t, rollout.SummaryKey(production, f.Start.ID), strings.Replace(fmt.Sprintf(
			`{"at":%q,"names":[{"name":"results/HOST/failed.r.%s.json","at":%q}]}`, s.now.Format(time.RFC3339),
			strings.Repeat("A", 86), s.now.Format(time.RFC3339)), "HOST", f.inWave(2)[0], 1))
		if e := f.read(t, s); len(e.Results) != 0 || len(e.Ignored) != 1 {
			t.Errorf("a forged summary shows %+v", e)
		}
	}
}

func TestAPlanWithMoreWavesDividesTheRosterAgain(t *testing.T) {
	f := newFleet(t, 100)
	waves, err := plans.ParseWaves("1%:1h,100%")
	if err != nil {
		t.Fatal(err)
	}
	plan := f.Plan
	plan.Waves = waves
	again := rollout.New(production, plan, f.Start, f.Roster)
	n := 0
	for _, h := range f.Roster.Places() {
		if again.Wave(h) == 0 {
			n++
		}
	}
	if n != 1 || len(again.Start.Hosts) != 2 || again.Start.Hosts[0] != 1 || again.Start.Hosts[1] != 99 {
		t.Errorf("the first wave has %d hosts of %v", n, again.Start.Hosts)
	}
}

func TestRenamedHostKeepsLease(t *testing.T) {
	f := newFleet(t, 10)
	host := f.Roster.Hosts[3].Name
	who, member := f.Who(f.keys[host].Public(), plans.Host{Name: "other-production-useast1-1"})
	if !member || who != place(host) {
		t.Errorf("%+v, %v", who, member)
	}
}

func TestRostersAreVerified(t *testing.T) {
	f, s := newFleet(t, 5), newTimed()
	if err := s.Delete(t.Context(), plans.RosterKey(production, f.Start.ID)); err != nil {
		t.Fatal(err)
	}
	digest, err := rollout.WriteRoster(t.Context(), s, production, f.Start.ID, f.Roster)
	if err != nil || digest != f.Start.Roster {
		t.Fatal(digest, err)
	}
	if _, err := rollout.WriteRoster(t.Context(), s, production, f.Start.ID, f.Roster); !errors.Is(err,
		store.ErrPrecondition) {
		t.Errorf("a roster replaced another: %v", err)
	}
	got, data, err := rollout.FetchRoster(t.Context(), s, production, f.Start)
	if err != nil || len(got.Hosts) != 5 {
		t.Fatal(got, err)
	}
	s.put(t, plans.RosterKey(production, f.Start.ID), strings.Replace(string(data), "useast1", "useast2", 1))
	if _, _, err := rollout.FetchRoster(t.Context(), s, production, f.Start); err == nil {
		t.Error("a changed roster was accepted")
	}
	for what, m := range map[string]rollout.Member{
		"a name that is a way":    {Name: "../x", Key: f.Roster.Hosts[0].Key},
		"a cluster that is a way": {Name: "x", Cluster: "../x", Key: f.Roster.Hosts[0].Key},
		"no key":                  {Name: "x"},
		"a host twice":            f.Roster.Hosts[0],
	} {
		bad := rollout.Roster{Hosts: append(f.Roster.Hosts[:5:5], m)}
		if _, _, err := bad.Content(); err == nil {
			t.Errorf("a roster with %s was written", what)
		}
	}
}

func TestNoMoreHostsThanPlacesDeployAtTheSameTime(t *testing.T) {
	f, s := newFleet(t, 8), newTimed() // 25 %: 2 places
	acquire := func(i int) *rollout.Lease {
		t.Helper()
		host := f.Roster.Hosts[i].Name
		l, _, err := f.Acquire(t.Context(), s, f.keys[host], place(host), runID, f.read(t, s), s.now)
		if err != nil {
			t.Fatal(err)
		}
		return l
	}
	a, b := acquire(0), acquire(1)
	if a == nil || b == nil || acquire(2) != nil {
		t.Fatal("want exactly two leases at the same time")
	}
	if acquire(0) == nil {
		t.Error("a host that was restarted does not get its lease")
	}
	if err := b.Release(t.Context()); err != nil {
		t.Fatal(err)
	}
	c := acquire(2)
	if c == nil || acquire(3) != nil {
		t.Error("a released lease is not free")
	}
	if err := b.Release(t.Context()); err != nil {
		t.Fatal(err) // the lease belongs to the other host now
	}
	if acquire(3) != nil {
		t.Error("a host released the lease of another one")
	}
	s.now = s.now.Add(rollout.LeaseTime)
	if acquire(3) == nil || acquire(4) == nil || acquire(5) != nil {
		t.Error("expired leases are not free")
	}
}

// TestLongDeployKeepsLease checks that a long deploy holds its lease until it releases it.
func TestLongDeployKeepsLease(t *testing.T) {
	f, s := newFleet(t, 4), newTimed() // one place
	acquire := func(i int) *rollout.Lease {
		t.Helper()
		host := f.Roster.Hosts[i].Name
		l, _, err := f.Acquire(t.Context(), s, f.keys[host], place(host), runID, f.read(t, s), s.now)
		if err != nil {
			t.Fatal(err)
		}
		return l
	}
	long := acquire(0)
	before := s.now
	s.now = s.now.Add(rollout.LeaseTime) // before the first renewal
	long.Keep(t.Context(), time.Millisecond)
	key := plans.Prefix(production, f.Start.ID) + "leases/myapp-production-useast1/0.json"
	for !s.modified(key).After(before) {
		time.Sleep(time.Millisecond)
	}
	if acquire(1) != nil {
		t.Error("the lease of a deploying host was free")
	}
	if err := long.Release(t.Context()); err != nil {
		t.Fatal(err)
	}
	if acquire(1) == nil {
		t.Error("a released lease is not free")
	}
}

func TestUnsignedLeaseIsFree(t *testing.T) {
	f, s := newFleet(t, 4), newTimed() // one place
	host, other := f.Roster.Hosts[0].Name, f.Roster.Hosts[1].Name
	key := plans.Prefix(production, f.Start.ID) + "leases/myapp-production-useast1/0.json"
	forged, err := f.keys[host].Seal(key, []byte(`{"host":"`+f.Roster.Hosts[2].Name+`","run":"x"}`))
	if err != nil {
		t.Fatal(err)
	}
	for what, content := range map[string]string{
		"unsigned": `{"host":"` + other + `","run":"x"}`, "another's": string(forged), "none": strings.Repeat("x", 1000),
		"too long": strings.Repeat("\x00", 70_000),
	} {
		s.put(t, key, content)
		l, _, err := f.Acquire(t.Context(), s, f.keys[host], place(host), runID, f.read(t, s), s.now)
		if l == nil || err != nil {
			t.Errorf("%s: %v, %v", what, l, err)
		}
	}
}

// TestDirectoryInPlaceOfLease has a directory with the name of the only lease, and checks that a host takes the place,
// that another one does not, and that the names of objects that are no leases are reported.
func TestDirectoryInPlaceOfLease(t *testing.T) {
	f := newFleet(t, 4) // one place
	s := dir.New(t.TempDir())
	s.Create = true
	put := func(key, content string) {
		t.Helper()
		if _, err := s.Put(t.Context(), key, strings.NewReader(content), int64(len(content)), store.Condition{}); err != nil {
			t.Fatal(err)
		}
	}
	data, _, err := f.Roster.Content()
	if err != nil {
		t.Fatal(err)
	}
	prefix := plans.Prefix(production, f.Start.ID)
	put(plans.RosterKey(production, f.Start.ID), string(data))
	put(prefix+"leases/myapp-production-useast1/0.json/x", "x")
	put(prefix+"leases/myapp-production-useast1/1.json", strings.Repeat("x", 70_000))
	e, err := f.Read(t.Context(), s, time.Now())
	if err != nil || len(e.Ignored) != 2 || !strings.HasSuffix(e.Ignored[0].Name, "/0.json/x") ||
		!strings.Contains(e.Ignored[1].Why, "longer than a lease") {
		t.Errorf("ignored are %+v, %v, want both objects", e.Ignored, err)
	}
	for i, want := range []bool{true, false} {
		host := f.Roster.Hosts[i].Name
		l, _, err := f.Acquire(t.Context(), s, f.keys[host], place(host), runID, e, time.Now())
		if err != nil || (l != nil) != want {
			t.Errorf("host %d: got a lease: %v, %v, want %v", i, l != nil, err, want)
		}
	}
}

func FuzzParseName(f *testing.F) {
	sig := strings.Repeat("A", 86)
	f.Add("results/myapp-production-useast1-1/healthy." + runID + "." + sig + ".json")
	f.Add("results/a.b/rolled-back.r." + sig + ".json")
	f.Add("halts/a/0." + runID + "." + sig + ".json")
	f.Add("halts/a/-0." + runID + "." + sig + ".json")
	f.Add("results//healthy.." + sig + ".json")
	f.Add("leases/x/1.json")
	f.Fuzz(func(t *testing.T, text string) {
		n, ok := rollout.ParseName(text)
		if !ok {
			return
		}
		if n.String() != text {
			t.Errorf("%q is read as %q", text, n.String())
		}
		if err := artifact.CheckHost(n.Host); err != nil {
			t.Error(err)
		}
		if err := store.CheckKey(text); err != nil {
			t.Error(err)
		}
	})
}

// TestNamesWithoutARunCountForNothing checks that only the ID of a run is one in the name of a result or of a halt,
// with the time of a resume for a failure.
func TestNamesWithoutARunCountForNothing(t *testing.T) {
	sig := "." + strings.Repeat("A", 86) + ".json"
	for name, want := range map[string]bool{
		"results/a/failed." + runID: true, "results/a/failed." + runID + ".r1767600000": true,
		"halts/a/0." + runID: true, "results/a/healthy." + runID: true, "results/a/failed.x": false,
		"results/a/healthy.x": false, "halts/a/0.x": false,
		"results/a/healthy." + runID + ".r1767600000": false, "results/a/failed." + runID + ".r01": false,
		"halts/a/0." + runID + ".r1": false, "results/a/failed.20261305T090000.000001": false,
	} {
		if _, ok := rollout.ParseName(name + sig); ok != want {
			t.Errorf("%s is a name: %v, want %v", name, ok, want)
		}
	}
}

func TestARosterThatIsLostHasAHint(t *testing.T) {
	_, _, err := rollout.FetchRoster(t.Context(), mem.New(), production, plans.Start{ID: "1-a"})
	if !errors.Is(err, store.ErrNotFound) || !strings.Contains(diag.HintOf(err), "corpus rollout abort myapp production") {
		t.Errorf("%v, hint %q", err, diag.HintOf(err))
	}
}

// TestHostsWithUnexpectedKeyAreReported checks that a host that signs with another key than the roster has is reported
// until it signs with that key, and that other invalid names report no host.
func TestHostsWithUnexpectedKeyAreReported(t *testing.T) {
	f, s := newFleet(t, 4), newTimed()
	const lost, fine = "myapp-production-useast1-2", "myapp-production-useast1-3"
	other, _, err := hostkey.Open(filepath.Join(t.TempDir(), "key"))
	if err != nil {
		t.Fatal(err)
	}
	for _, host := range []string{lost, fine, "myapp-production-useast1-99"} {
		if err := f.Record(t.Context(), s, other, host, rollout.Healthy, runID); err != nil {
			t.Fatal(err)
		}
	}
	f.record(t, s, fine, rollout.Healthy)
	s.put(t, plans.Prefix(production, f.Start.ID)+"results/myapp-production-useast1-1/junk", "x")
	e := f.read(t, s)
	if names, err := f.Rekeyed(t.Context(), s, e); err != nil || len(names) != 0 {
		t.Errorf("an unregistered key reports the hosts %v, %v", names, err)
	}
	if err := other.Register(t.Context(), s, hostkey.Registration{Host: lost}); err != nil {
		t.Fatal(err)
	}
	if names, err := f.Rekeyed(t.Context(), s, e); err != nil || !slices.Equal(names, []string{lost}) ||
		len(e.Results) != 1 {
		t.Errorf("hosts with another key are %v, %v, results %v", names, err, e.Results)
	}
}

// TestHaltsSignedInAdvanceDoNotCount checks that a stolen key does not stop a rollout again after a person has resumed
// it, although it signed halts for all future times.
func TestHaltsSignedInAdvanceDoNotCount(t *testing.T) {
	f, s := newFleet(t, 40), newTimed()
	stolen := f.inWave(2)[0]
	for i := range 20 {
		at := f
		at.Start.Resumed = s.now.Add(time.Duration(i) * time.Second)
		if err := at.RecordHalt(t.Context(), s, f.keys[stolen], stolen, runID, f.read(t, s), s.now); err != nil {
			t.Fatal(err)
		}
	}
	f.Start.Resumed = s.now.Add(5 * time.Second)
	s.now = s.now.Add(time.Minute)
	if e := f.read(t, s); len(e.Halts) != 0 || len(e.Ignored) != 20 {
		t.Errorf("halts that were signed in advance: %+v, ignored %d", e.Halts, len(e.Ignored))
	}
}

// TestAListingWithoutTheRosterIsNoEvidence checks that the response of another server, or of a store that lost objects,
// does not look like a rollout without failures.
func TestAListingWithoutTheRosterIsNoEvidence(t *testing.T) {
	f, s := newFleet(t, 40), newTimed()
	if err := s.Delete(t.Context(), plans.RosterKey(production, f.Start.ID)); err != nil {
		t.Fatal(err)
	}
	if _, err := f.Read(t.Context(), s, s.now); !errors.Is(err, rollout.ErrNoEvidence) || diag.HintOf(err) == "" {
		t.Errorf("%v", err)
	}
}

// TestStoreWhoseClockWasAheadDoesNotStretchASoak checks that results which the store received while its clock was a day
// ahead neither delay the next wave by a day nor let it begin before the soak has passed.
func TestStoreWhoseClockWasAheadDoesNotStretchASoak(t *testing.T) {
	f, s := newFleet(t, 40), newTimed()
	f.Plan.Waves, _ = plans.ParseWaves("5%:1h,100%")
	f.Start = f.Plan.NewStart(rolloutID, release, began, f.Roster.Places())
	s.now = began.Add(25 * time.Hour) // the hosts ran at 09:00, an hour after the start
	for _, name := range f.inWave(0) {
		f.record(t, s, name, rollout.Healthy)
	}
	next := place(f.inWave(1)[0])
	for _, c := range []struct {
		after time.Duration
		take  bool
	}{{61 * time.Minute, false}, {119 * time.Minute, false}, {121 * time.Minute, true}} {
		s.now = began.Add(c.after)
		if v := f.Decide(next, f.read(t, s), s.now); v.Take != c.take {
			t.Errorf("after %v: %+v", c.after, v)
		}
	}
}

// TestChangedPlanMovesNoHost changes what decides the waves of a plan under way: hosts stay in their waves. A start of
// an older program, which does not have it, follows the plan.
func TestChangedPlanMovesNoHost(t *testing.T) {
	f := newFleet(t, 40)
	last := f.inWave(3)[0]
	for what, change := range map[string]func(*plans.Plan){
		"first":   func(p *plans.Plan) { p.First = []string{last} },
		"last":    func(p *plans.Plan) { p.Last = []string{"*-1*"} },
		"regions": func(p *plans.Plan) { p.Regions = []string{"uswest2", "useast1"} },
	} {
		plan := f.Plan
		change(&plan)
		moved := func(start plans.Start) (n int) {
			now := rollout.New(f.Ref, plan, start, f.Roster)
			for _, h := range f.Roster.Places() {
				if now.Wave(h) != f.Wave(h) {
					n++
				}
			}
			return n
		}
		if n := moved(f.Start); n != 0 {
			t.Errorf("%s: %d hosts are in another wave", what, n)
		}
		older := f.Start
		if older.Order = nil; moved(older) == 0 {
			t.Errorf("%s: a start without order does not follow the plan", what)
		}
	}
	plan := f.Plan
	plan.Waves, plan.First = []plans.Wave{{Share: 50 * plans.Percent}, {Share: plans.All}}, []string{last}
	again := rollout.New(f.Ref, plan, f.Start, f.Roster)
	if m := (plans.Host{Name: last, Region: "useast1"}); again.Wave(m) != 1 || again.Start.Hosts[0] != 20 {
		t.Errorf("another number of waves: wave %d, hosts %v", again.Wave(m), again.Start.Hosts)
	}
}

// TestPlacesOfKilledRuns has a host whose runs were killed after they took places: it has one place at a time, and none
// once it has recorded the result of a later run, also if its old lease is written again.
func TestPlacesOfKilledRuns(t *testing.T) {
	f, s := newFleet(t, 8), newTimed() // 25 %: 2 places
	acquire := func(i int, run string) *rollout.Lease {
		t.Helper()
		host := f.Roster.Hosts[i].Name
		l, _, err := f.Acquire(t.Context(), s, f.keys[host], place(host), run, f.read(t, s), s.now)
		if err != nil {
			t.Fatal(err)
		}
		return l
	}
	holders := func(want ...string) {
		t.Helper()
		all, _, err := f.Holders(t.Context(), s, f.read(t, s), s.now)
		var names []string
		for _, h := range all {
			names = append(names, h.Host)
		}
		if err != nil || !slices.Equal(names, want) {
			t.Errorf("places of %q, %v, want %q", names, err, want)
		}
	}
	killed := f.Roster.Hosts[0].Name
	prefix := plans.Prefix(production, f.Start.ID) + "leases/myapp-production-useast1/"
	lease := func(slot, run string) {
		t.Helper()
		data, err := f.keys[killed].Seal(prefix+slot, []byte(`{"host":"`+killed+`","run":"`+run+`"}`))
		if err != nil {
			t.Fatal(err)
		}
		s.put(t, prefix+slot, string(data))
	}
	lease("0.json", "20260105T080000.000001")
	lease("1.json", "20260105T081000.000001")
	holders(killed)
	if acquire(0, "20260105T082000.000001") == nil || acquire(1, runID) == nil || acquire(2, runID) != nil {
		t.Error("the host holds another number of places than one")
	}
	s = newTimed()
	s.now = time.Date(2026, 1, 5, 9, 30, 0, 0, time.UTC)
	f.record(t, s, killed, rollout.Healthy) // of the run runID
	lease("0.json", "20260105T080000.000001")
	lease("1.json", runID)
	holders()
	if acquire(1, runID) == nil || acquire(2, runID) == nil || acquire(3, runID) != nil {
		t.Error("leases of runs that are over hold places")
	}
	lease("0.json", "20260105T091000.000001")
	holders(killed, f.Roster.Hosts[2].Name)
}
