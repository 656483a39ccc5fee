package rollout_test

import (
	"encoding/json"
	"fmt"
	"math"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/corpus-agent/corpus-agent/artifact"
	"github.com/corpus-agent/corpus-agent/artifact/rollout"
)

func TestPlansAreReadAsWritten(t *testing.T) {
	waves, err := rollout.ParseWaves("canary=1%:1h,10%:4h, 50%:90m,100%")
	if err != nil {
		t.Fatal(err)
	}
	halt, err := rollout.ParseHalt("2,5%")
	if err != nil {
		t.Fatal(err)
	}
	p := rollout.Default()
	p.Waves, p.Halt, p.Windows = waves, halt, []rollout.Window{"Mon-Thu 09:00-16:00 Europe/Paris", "22:00-04:00"}
	if err := p.Check(); err != nil {
		t.Error(err)
	}
	data, err := json.Marshal(p)
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{`{"name":"canary","share":"1%","soak":"1h"}`, `{"share":"50%","soak":"1h30m"}`,
		`"share":"5%"`} {
		if !strings.Contains(string(data), want) {
			t.Errorf("%s has no %s", data, want)
		}
	}
	var again rollout.Plan
	if err := json.Unmarshal(data, &again); err != nil || !reflect.DeepEqual(p, again) {
		t.Errorf("%+v, %v; want %+v", again, err, p)
	}
}

func TestMistakesInPlans(t *testing.T) {
	for _, text := range []string{"", "1", "1%:x", "101%", "-1%", "0.001%", "1e1%", "=1%", "a b=1%"} {
		if waves, err := rollout.ParseWaves(text); err == nil {
			t.Errorf("waves %q: %v", text, waves)
		}
	}
	for _, text := range []string{"", "x", "0", "-1", "2,x", "200%"} {
		if halt, err := rollout.ParseHalt(text); err == nil {
			t.Errorf("halt %q: %v", text, halt)
		}
	}
	for what, change := range map[string]func(*rollout.Plan){
		"no waves":         func(p *rollout.Plan) { p.Waves = nil },
		"shares that fall": func(p *rollout.Plan) { p.Waves[1].Share = p.Waves[0].Share },
		"no last wave":     func(p *rollout.Plan) { p.Waves = p.Waves[:2] },
		"a long soak":      func(p *rollout.Plan) { p.Waves[0].Soak = rollout.Duration(999 * time.Hour) },
		"no place":         func(p *rollout.Plan) { p.AtOnce = 0 },
		"a bad pattern":    func(p *rollout.Plan) { p.First = []string{"[a"} },
		"a bad window":     func(p *rollout.Plan) { p.Windows = []rollout.Window{"Mon 25:00-26:00"} },
		"no such zone":     func(p *rollout.Plan) { p.Windows = []rollout.Window{"09:00-16:00 Europe/Pariss"} },
		"no such day":      func(p *rollout.Plan) { p.Windows = []rollout.Window{"Mo 09:00-16:00"} },
	} {
		p := rollout.Default()
		if change(&p); p.Check() == nil {
			t.Errorf("the mistake %q is not reported", what)
		}
	}
}

// TestStricterLimitsStopNoRolloutThatHasArrived tightens the limits of a plan before and after enough hosts are
// healthy.
func TestStricterLimitsStopNoRolloutThatHasArrived(t *testing.T) {
	p := rollout.Default()
	p.Waves = []rollout.Wave{{Share: 50 * rollout.Percent}, {Share: rollout.All}}
	p.Halt, p.Healthy = rollout.Halt{Hosts: 2}, 75*rollout.Percent
	at := time.Now().Truncate(time.Second)
	s := p.NewStart("1-a", "sha256:"+strings.Repeat("0a", 32), at, fleet(8, 1))
	s.Hosts = []int{4, 4}
	results := []rollout.Result{{Host: "failed", Failed: true, At: at}}
	for i := range 3 {
		results = append(results, rollout.Result{Host: fmt.Sprint("first", i), At: at},
			rollout.Result{Host: fmt.Sprint("second", i), Wave: 1, At: at})
	}
	reason := func(p rollout.Plan, s rollout.Start, results []rollout.Result) rollout.Reason {
		now := at.Add(time.Hour)
		return rollout.Decide(p, s, 1, now, rollout.NewTally(2, results, nil).AsOf(now)).Reason
	}
	failed := append(slices.Clone(results), rollout.Result{Host: "later", Failed: true, At: at})
	healthy, halt, older := p, p, s
	healthy.Healthy, halt.Halt.Hosts, older.Limits = rollout.All, 1, nil
	for what, got := range map[string][2]rollout.Reason{
		"healthy hosts, after it arrived":    {reason(healthy, s, results), rollout.Turn},
		"healthy hosts, of an older program": {reason(healthy, older, results), rollout.TooFew},
		"healthy hosts, before it arrived":   {reason(healthy, s, results[:3]), rollout.TooFew},
		"failed hosts, after it arrived":     {reason(halt, s, results), rollout.Turn},
		"failed hosts, before it arrived":    {reason(halt, s, results[:4]), rollout.Stops},
		"failed hosts, after more failures":  {reason(halt, s, failed), rollout.Stops},
	} {
		if got[0] != got[1] {
			t.Errorf("stricter limits of %s: %s, want %s", what, got[0], got[1])
		}
	}
	if got := p.Within(s, rollout.View{}); got.Healthy != p.Healthy {
		t.Errorf("without results the plan has %v", got)
	}
}

func fleet(n, regions int) (hosts []rollout.Host) {
	for i := range n {
		region := fmt.Sprintf("r%d", i%regions)
		hosts = append(hosts, rollout.Host{Name: fmt.Sprintf("app-production-%s-%d", region, i), Region: region})
	}
	return hosts
}

// TestEveryWaveHasHostsOfEachRegionInProportion also checks that with another release other hosts are the first.
func TestEveryWaveHasHostsOfEachRegionInProportion(t *testing.T) {
	p, hosts := rollout.Default(), fleet(10_000, 8)
	cuts, counts := p.Cut("sha256:1", hosts)
	if want := []int{100, 900, 4000, 5000}; !reflect.DeepEqual(counts, want) {
		t.Errorf("waves have %v hosts, want %v", counts, want)
	}
	seen := map[string]int{}
	first, same := 0, 0
	other, _ := p.Cut("sha256:2", hosts)
	for _, h := range hosts {
		wave := p.Wave("sha256:1", h, cuts)
		seen[fmt.Sprint(h.Region, wave)]++
		if wave == 0 {
			first++
			if p.Wave("sha256:2", h, other) == 0 {
				same++
			}
		}
	}
	for wave, n := range counts {
		for region := range 8 {
			got, want := float64(seen[fmt.Sprintf("r%d%d", region, wave)]), float64(n)/8
			if math.Abs(got-want) > 5*math.Sqrt(want) {
				t.Errorf("wave %d has %v hosts of region %d, want about %v", wave, got, region, want)
			}
		}
	}
	if same > first/10 {
		t.Errorf("%d of the %d first hosts are first in another release as well", same, first)
	}
}

// TestAddedHostsMoveNoOther also checks that a small fleet has a host in each wave.
func TestAddedHostsMoveNoOther(t *testing.T) {
	p := rollout.Default()
	hosts := fleet(10, 2)
	cuts, counts := p.Cut("sha256:1", hosts)
	if want := []int{1, 1, 3, 5}; !reflect.DeepEqual(counts, want) {
		t.Errorf("ten hosts are in waves of %v, want %v", counts, want)
	}
	before := map[string]int{}
	for _, h := range hosts {
		before[h.Name] = p.Wave("sha256:1", h, cuts)
	}
	for _, h := range fleet(50, 2) {
		if wave, known := before[h.Name]; known && wave != p.Wave("sha256:1", h, cuts) {
			t.Errorf("%s moved", h.Name)
		}
	}
	_, counts = p.Cut("sha256:1", fleet(2, 1))
	if want := []int{1, 1, 0, 0}; !reflect.DeepEqual(counts, want) {
		t.Errorf("two hosts are in waves of %v, want %v", counts, want)
	}
}

// TestHostsThatAreAlwaysFirstOrLast also checks the order of regions.
func TestHostsThatAreAlwaysFirstOrLast(t *testing.T) {
	p, hosts := rollout.Default(), fleet(100, 4)
	p.First, p.Last, p.Regions = []string{"*-99"}, []string{"*-0"}, []string{"r2", "r1"}
	cuts, _ := p.Cut("sha256:1", hosts)
	latest := map[string]uint32{}
	earliest := map[string]uint32{"r2": math.MaxUint32, "r1": math.MaxUint32, "r0": math.MaxUint32, "r3": math.MaxUint32}
	for _, h := range hosts {
		wave, place := p.Wave("sha256:1", h, cuts), p.Place("sha256:1", h)
		if strings.HasSuffix(h.Name, "-99") && wave != 0 || strings.HasSuffix(h.Name, "-0") && wave != 3 {
			t.Errorf("%s is in wave %d", h.Name, wave)
		}
		latest[h.Region], earliest[h.Region] = max(latest[h.Region], place), min(earliest[h.Region], place)
	}
	if latest["r2"] > earliest["r1"] || latest["r1"] > earliest["r0"] || latest["r1"] > earliest["r3"] {
		t.Errorf("regions are mixed: %v to %v", earliest, latest)
	}
}

func TestClosedWindowReportsNextOpening(t *testing.T) {
	plan := rollout.Default()
	for _, c := range []struct {
		windows []rollout.Window
		at      time.Time // 2026-01-05 is a Monday
		opens   string
	}{
		{[]rollout.Window{"Mon-Thu 09:00-16:00 Europe/Paris"}, time.Date(2026, 1, 5, 7, 59, 0, 0, time.UTC),
			"2026-01-05 08:00:00 UTC"},
		{[]rollout.Window{"Mon-Thu 09:00-16:00 Europe/Paris"}, time.Date(2026, 1, 8, 15, 0, 0, 0, time.UTC),
			"2026-01-12 08:00:00 UTC"},
		{[]rollout.Window{"Mon 09:00-16:00"}, time.Date(2026, 1, 5, 16, 0, 0, 0, time.UTC), "2026-01-12 09:00:00 UTC"},
		{[]rollout.Window{"Mon 09:00-10:00", "Sat 22:00-04:00"}, time.Date(2026, 1, 5, 16, 0, 0, 0, time.UTC),
			"2026-01-10 22:00:00 UTC"},
		{[]rollout.Window{"02:30-03:00 Europe/Paris"}, time.Date(2026, 3, 28, 12, 0, 0, 0, time.UTC),
			"2026-03-29 01:30:00 UTC"},
	} {
		plan.Windows = c.windows
		v := plan.Early(rollout.Start{At: c.at}, 0, c.at)
		if v.Reason != rollout.Closed || !strings.HasSuffix(v.String(), "the next one opens at "+c.opens) {
			t.Errorf("%v at %s: %q", c.windows, c.at, v)
		}
	}
}

func TestWindows(t *testing.T) {
	at := func(text string) time.Time {
		t.Helper()
		at, err := time.Parse("2006-01-02 15:04", text)
		if err != nil {
			t.Fatal(err)
		}
		return at
	}
	for _, c := range []struct {
		window rollout.Window
		at     string // UTC; 2026-01-05 is a Monday
		open   bool
	}{
		{"Mon-Thu 09:00-16:00", "2026-01-05 09:00", true},
		{"Mon-Thu 09:00-16:00", "2026-01-05 16:00", false},
		{"Mon-Thu 09:00-16:00", "2026-01-09 10:00", false},
		{"Sat-Mon,Wed 09:00-16:00", "2026-01-04 10:00", true},
		{"Sat-Mon,Wed 09:00-16:00", "2026-01-06 10:00", false},
		{"Mon 09:00-16:00 Europe/Paris", "2026-01-05 08:30", true},
		{"Mon 09:00-16:00 Europe/Paris", "2026-07-06 07:30", true}, // summer time
		{"Mon 22:00-04:00", "2026-01-06 03:59", true},
		{"Mon 22:00-04:00", "2026-01-05 03:59", false},
		{"00:00-24:00", "2026-01-05 23:59", true},
	} {
		if open, err := c.window.Open(at(c.at)); err != nil || open != c.open {
			t.Errorf("%s at %s: %v, %v", c.window, c.at, open, err)
		}
	}
}

func TestDecisions(t *testing.T) {
	start := time.Date(2026, 1, 5, 8, 0, 0, 0, time.UTC)
	p := rollout.Default()
	s := rollout.Start{At: start, Hosts: []int{2, 5, 10, 20}}
	healthy := func(wave, n int, after time.Duration) (results []rollout.Result) {
		for i := range n {
			results = append(results, rollout.Result{Host: fmt.Sprint(wave, "-", i), Wave: wave, At: start.Add(after)})
		}
		return results
	}
	failed := rollout.Result{Host: "bad", Failed: true, At: start.Add(time.Minute)}
	for name, c := range map[string]struct {
		change  func(*rollout.Plan, *rollout.Start)
		wave    int
		after   time.Duration
		results []rollout.Result
		halted  []time.Time
		want    rollout.Reason
	}{
		"the first wave": {want: rollout.Turn},
		"the next one, too soon": {wave: 1, after: 59 * time.Minute, results: healthy(
			0, 2, time.Minute), want: rollout.Waits},
		"its soak counts from the health of the wave before": {wave: 1, after: time.Hour, results: healthy(
			0, 2, time.Minute), want: rollout.Waits},
		"the next one":     {wave: 1, after: 61 * time.Minute, results: healthy(0, 2, time.Minute), want: rollout.Turn},
		"without evidence": {wave: 1, after: 100 * time.Hour, want: rollout.TooFew},
		"of another wave":  {wave: 1, after: 100 * time.Hour, results: healthy(1, 5, 0), want: rollout.TooFew},
		"one failure":      {results: []rollout.Result{failed}, want: rollout.Turn},
		"two failures": {results: []rollout.Result{failed, {Host: "worse", Failed: true, At: start}}, after: time.Hour,
			want: rollout.Stops},
		"one host that failed twice": {results: []rollout.Result{failed, failed}, after: time.Hour, want: rollout.Turn},
		"a recorded halt": {halted: []time.Time{start}, want: rollout.Halted, change: func(
			_ *rollout.Plan, s *rollout.Start) {
			s.Resumed = start.Add(-time.Hour)
		}},
		"resumed": {halted: []time.Time{start}, results: []rollout.Result{
			failed, {Host: "worse", Failed: true, At: start}}, after: time.Hour,
			change: func(_ *rollout.Plan, s *rollout.Start) { s.Resumed = start.Add(time.Minute) }, want: rollout.Turn},
		"paused":       {change: func(_ *rollout.Plan, s *rollout.Start) { s.Paused = true }, want: rollout.Paused},
		"aborted":      {change: func(_ *rollout.Plan, s *rollout.Start) { s.Aborted = true }, want: rollout.Aborted},
		"urgent":       {wave: 3, change: func(_ *rollout.Plan, s *rollout.Start) { s.Urgent = true }, want: rollout.Urgent},
		"skipped wave": {wave: 1, change: func(_ *rollout.Plan, s *rollout.Start) { s.Skipped = 1 }, want: rollout.Turn},
		"closed": {change: func(p *rollout.Plan, _ *rollout.Start) {
			p.Windows = []rollout.Window{
				"Tue 09:00-10:00"}
		}, want: rollout.Closed},
		"a zone that the host lacks": {change: func(p *rollout.Plan, _ *rollout.Start) {
			p.Windows = []rollout.Window{
				"08:00-10:00 No/Where"}
		},
			want: rollout.Closed},
	} {
		t.Run(name, func(t *testing.T) {
			p, s := p, s
			if c.change != nil {
				c.change(&p, &s)
			}
			now := start.Add(c.after)
			v := rollout.Decide(p, s, c.wave, now, rollout.NewTally(4, c.results, c.halted).AsOf(now))
			if v.Reason != c.want || v.Take != (c.want == rollout.Turn || c.want == rollout.Urgent) || v.String() == "" {
				t.Errorf("%+v (%s), want %s", v, v, c.want)
			}
		})
	}
}

// TestAShareCountsFromTwentyHosts checks this because any failure is a large share of a few hosts.
func TestAShareCountsFromTwentyHosts(t *testing.T) {
	now := time.Date(2026, 1, 5, 8, 0, 0, 0, time.UTC)
	p := rollout.Default()
	p.Halt = rollout.Halt{Share: 5 * rollout.Percent}
	for n, stops := range map[int]bool{18: false, 19: true, 25: false} {
		results := []rollout.Result{{Host: "bad", Failed: true, At: now}}
		for i := range n {
			results = append(results, rollout.Result{Host: fmt.Sprint(i), At: now})
		}
		v := rollout.Decide(p, rollout.Start{At: now}, 0, now, rollout.NewTally(4, results, nil).AsOf(now))
		if (v.Reason == rollout.Stops) != stops {
			t.Errorf("1 failed of %d: %s", n+1, v)
		}
	}
}

// TestAbortedReleasesAreLeft checks from which releases the next rollout has hosts roll back.
func TestAbortedReleasesAreLeft(t *testing.T) {
	digest := func(n int) string { return fmt.Sprintf("sha256:%064d", n) }
	var none *rollout.Start
	if left := none.LeftBy(rollout.Start{Release: digest(2)}); left != nil {
		t.Errorf("without an earlier rollout: %q", left)
	}
	running := &rollout.Start{Release: digest(1)}
	if left := running.LeftBy(rollout.Start{Release: digest(2)}); left != nil {
		t.Errorf("after a rollout that was not aborted: %q", left)
	}
	last := &rollout.Start{Release: digest(1), Aborted: true}
	for n := 2; n < 20; n++ {
		next := rollout.Start{Release: digest(n), Aborted: true}
		next.Left = last.LeftBy(next)
		last = &next
	}
	if n := len(last.Left); n != 8 || last.Left[n-1] != digest(18) {
		t.Errorf("after many aborts: %q", last.Left)
	}
	again := rollout.Start{Release: digest(18),
		Before: &rollout.Before{Version: "17", Digest: artifact.Digest(digest(17))}}
	left := last.LeftBy(again)
	if strings.Contains(strings.Join(left, " "), digest(18)) || strings.Contains(strings.Join(left, " "), digest(17)) ||
		left[len(left)-1] != digest(19) {
		t.Errorf("a release that comes again is left: %q", left)
	}
}

func TestPatternsOfNoHost(t *testing.T) {
	p := rollout.Default()
	p.First, p.Last = []string{"web-*", "app-*-1"}, []string{"db-*"}
	if idle := p.Idle([]rollout.Host{{Name: "app-production-1"}, {Name: "db-1"}}); !slices.Equal(idle, []string{"web-*"}) {
		t.Errorf("idle %q", idle)
	}
}

// TestStartInTheFutureDelaysNoWave checks a rollout that started while the store's clock was a day ahead: the first
// wave takes the release at once, and later waves only with the healthy hosts of the one before, after its soak.
func TestStartInTheFutureDelaysNoWave(t *testing.T) {
	now := time.Date(2026, 5, 1, 12, 0, 0, 0, time.UTC)
	p := rollout.Plan{Waves: []rollout.Wave{{Share: 1000, Soak: rollout.Duration(time.Hour)}, {Share: rollout.All}},
		Healthy: rollout.All}
	s := rollout.Start{At: now.Add(24 * time.Hour), Hosts: []int{1, 9}}
	healthy := []rollout.Result{{Host: "a", At: now}}
	for name, c := range map[string]struct {
		wave    int
		at      time.Time
		results []rollout.Result
		want    rollout.Reason
	}{
		"the first wave":                     {0, now, nil, rollout.Turn},
		"the next one, without a result":     {1, now, nil, rollout.TooFew},
		"the next one, before the soak":      {1, now.Add(59 * time.Minute), healthy, rollout.Waits},
		"the next one, after the soak":       {1, now.Add(61 * time.Minute), healthy, rollout.Turn},
		"once the start is not far ahead":    {0, now.Add(24*time.Hour - 2*time.Minute), nil, rollout.Waits},
		"the next one, once it has started":  {1, now.Add(24*time.Hour + time.Minute), healthy, rollout.Waits},
		"the next one, a soak after a start": {1, now.Add(25*time.Hour + time.Minute), healthy, rollout.Turn},
	} {
		v := rollout.Decide(p, s, c.wave, c.at, rollout.NewTally(2, c.results, nil).AsOf(c.at))
		if v.Reason != c.want {
			t.Errorf("%s: %+v, want %s", name, v, c.want)
		}
		if early := p.Early(s, c.wave, c.at); v.Take && !early.Take {
			t.Errorf("%s: the host does not ask the store: %+v", name, early)
		}
	}
}
