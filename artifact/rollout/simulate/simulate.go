// Package simulate simulates a rollout on a virtual clock: thousands of hosts that decide with rollout.Decide as real
// hosts do, a store that loses answers, is unreachable or returns stale listings, and hosts that stop. A simulation
// can be repeated with its seed.
package simulate

import (
	"cmp"
	"fmt"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/corpus-agent/corpus-agent/artifact/rollout"
)

// Result is the result of a simulated rollout.
type Result struct {
	Hosts   int    `json:"hosts"`
	Waves   []int  `json:"waves"` // hosts of each
	Tried   int    `json:"tried"` // hosts that took the release
	Healthy int    `json:"healthy"`
	Failed  int    `json:"failed"`
	Dead    int    `json:"dead"`
	Stopped string `json:"stopped,omitempty"` // reason why it stopped by itself
	// reason why the remaining hosts wait forever; empty if it stopped
	Waits    string        `json:"waits,omitempty"`
	StopAt   time.Duration `json:"stop_ns,omitempty"` // time at which the limit was reached
	Ended    time.Duration `json:"ended_ns"`          // when the last host was finished
	Requests int           `json:"listings"`          // listings of results by all hosts
	Starts   []Event       `json:"-"`
	Broken   []string      `json:"broken,omitempty"` // invariants that did not hold
}

// Event is the start of a host's deploy.
type Event struct {
	At   time.Duration
	Wave int
	Host int
}

type host struct {
	rollout.Host
	wave    int
	phase   time.Duration
	not     time.Time // the turn of the host is not before this time
	state   state
	ends    time.Time
	pending bool // its result has not reached the store
}

type state uint8

const (
	waiting state = iota
	deploying
	finished
	dead
)

// run is a simulation under way.
type run struct {
	Params
	start   rollout.Start
	hosts   []host
	random  *rand.Rand
	tally   *rollout.Tally
	leases  map[string][]lease
	slots   map[string]int
	ending  endings
	outages []span
	result  Result
	checks  checks
	left    int // hosts that are neither finished nor dead
	stopped bool
	changed time.Time // time of the last event
	awaited time.Time // latest time at which something happens by itself
}

type lease struct {
	host    int
	expires time.Time
}

type span struct{ from, to time.Time }

var began = time.Date(2026, 1, 5, 8, 0, 0, 0, time.UTC) // a Monday

// Began returns the time of the virtual clock at which each simulation begins, for people: windows count from there.
func Began() time.Time { return began }

// Run simulates one rollout.
func Run(p Params) Result {
	r := newRun(p.Defaults())
	for round := began; r.left > 0 && round.Sub(began) < r.Most && !r.over(round); round = round.Add(r.Tick) {
		for i := range r.hosts {
			r.tick(i, round.Add(r.hosts[i].phase))
		}
	}
	r.settle(began.Add(r.Most))
	r.result.Waits = r.waitsFor(began.Add(r.Most))
	r.result.Broken = append(r.result.Broken, r.checks.after(r)...)
	return r.result
}

// waitsFor returns the reason why the hosts of the first wave that did not take the release wait in the end.
func (r *run) waitsFor(end time.Time) string {
	wave := len(r.Plan.Waves)
	for _, h := range r.hosts {
		if h.state == waiting {
			wave = min(wave, h.wave)
		}
	}
	if r.stopped || wave == len(r.Plan.Waves) {
		return ""
	}
	return rollout.Decide(r.Plan, r.start, wave, end, r.tally.AsOf(end)).String()
}

// names returns the simulated hosts.
func (p Params) names() []rollout.Host {
	names := make([]rollout.Host, p.Hosts)
	for i := range names {
		region := p.Region(i / p.Cluster % p.Regions)
		names[i] = rollout.Host{Name: fmt.Sprintf("%s-%s-%d", cmp.Or(p.Prefix, "app-production"), region, i+1),
			Region: region, Cluster: p.cluster(i)}
	}
	return names
}

// Example returns the name of a simulated host.
func (p Params) Example() string { return p.names()[0].Name }

// Idle returns the patterns of the plan's first and last hosts that match none of the simulated hosts.
func (p Params) Idle() []string { return p.Plan.Idle(p.names()) }

func newRun(p Params) *run {
	r := &run{Params: p, random: rand.New(rand.NewPCG(p.Seed, 1)), leases: map[string][]lease{}, slots: map[string]int{},
		left: p.Hosts, changed: began}
	release := fmt.Sprintf("sha256:%016x", p.Seed)
	names := p.names()
	for _, h := range names {
		r.slots[h.Cluster]++
	}
	r.start = p.Plan.NewStart("simulated", release, began, names)
	r.start.Urgent = p.Urgent
	for _, h := range names {
		r.hosts = append(r.hosts, host{Host: h, wave: p.Plan.Wave(release, h, r.start.Cuts),
			phase: time.Duration(r.random.Int64N(int64(p.Tick))).Truncate(time.Millisecond)})
	}
	slices.SortFunc(r.hosts, func(a, b host) int { return int(a.phase - b.phase) })
	for cluster, n := range r.slots {
		r.slots[cluster] = p.Plan.Slots(n)
	}
	for range p.Faults.Outages {
		from := began.Add(time.Duration(r.random.Int64N(int64(24 * time.Hour))))
		r.outages = append(r.outages, span{from, from.Add(p.Faults.Outage)})
	}
	r.tally = rollout.NewTally(len(p.Plan.Waves), nil, nil)
	r.result = Result{Hosts: p.Hosts, Waves: r.start.Hosts}
	return r
}

// quiet is the time without an event after which nothing will happen any more: every host has run often enough by then,
// in spite of failed requests, and the leases of dead hosts have expired.
const quiet = 3 * time.Hour

// over reports whether nothing will happen until a person acts.
func (r *run) over(now time.Time) bool {
	last := r.changed
	for _, o := range r.outages {
		if o.to.After(last) && o.from.Before(now) {
			last = o.to
		}
	}
	if r.awaited.After(last) {
		last = r.awaited
	}
	return len(r.ending) == 0 && now.Sub(last) > quiet
}

// tick is one run of a host.
func (r *run) tick(i int, now time.Time) {
	h := &r.hosts[i]
	if h.state == dead || h.state == finished && !h.pending {
		return
	}
	r.settle(now)
	switch {
	case h.state == deploying:
	case h.pending:
		r.report(i, now)
	case h.state == waiting && !now.Before(h.not) && !r.away(now):
		r.decide(i, now)
	}
}

// decide makes the decision of a host after it has read the results of the others from the store.
func (r *run) decide(i int, now time.Time) {
	h := &r.hosts[i]
	r.result.Requests++
	seen := now.Add(-r.upTo(r.Faults.Stale))
	verdict := rollout.Decide(r.Plan, r.start, h.wave, now, r.tally.AsOf(seen))
	switch {
	case verdict.Reason == rollout.Stops:
		r.stop(verdict.String(), now)
	case verdict.Take:
		if r.place(i, now) {
			r.take(i, now)
		}
	default:
		r.wait(h, verdict, now)
	}
}

// wait sets the time of a host's next attempt.
func (r *run) wait(h *host, v rollout.Verdict, now time.Time) {
	h.not = v.Not
	switch {
	case v.Reason == rollout.Closed:
		r.awaited = now.Add(8 * 24 * time.Hour) // a window opens each week
	case v.Reason == rollout.Waits && v.Not.After(r.awaited):
		r.awaited = v.Not
	}
}

// away reports whether the store does not respond.
func (r *run) away(now time.Time) bool {
	return r.chance(r.Faults.Refused) ||
		slices.ContainsFunc(r.outages, func(o span) bool { return !now.Before(o.from) && now.Before(o.to) })
}

func (r *run) chance(p float64) bool { return p > 0 && r.random.Float64() < p }

func (r *run) upTo(d time.Duration) time.Duration {
	if d <= 0 {
		return 0
	}
	return time.Duration(r.random.Int64N(int64(d) + 1))
}

// stop records a halt, unless the request to the store fails.
func (r *run) stop(why string, now time.Time) {
	if !r.stopped {
		r.stopped = true
		r.result.Stopped, r.result.StopAt = why, now.Sub(began)
	}
	if !r.chance(r.Faults.Lost) {
		r.tally.AddHalt(now)
		r.changed = now
	}
}

// place acquires a lease in the host's cluster.
func (r *run) place(i int, now time.Time) bool {
	cluster := r.hosts[i].Cluster
	held := slices.DeleteFunc(r.leases[cluster], func(l lease) bool { return !l.expires.After(now) })
	r.leases[cluster] = held
	mine := slices.IndexFunc(held, func(l lease) bool { return l.host == i })
	if mine < 0 && len(held) >= r.slots[cluster] {
		return false
	}
	if mine < 0 {
		r.leases[cluster] = append(held, lease{i, now.Add(r.Faults.LeaseTTL)})
	}
	return !r.chance(r.Faults.Lost) // the lease exists, and the host finds it in its next run
}

func (r *run) release(i int) {
	cluster := r.hosts[i].Cluster
	r.leases[cluster] = slices.DeleteFunc(r.leases[cluster], func(l lease) bool { return l.host == i })
}
