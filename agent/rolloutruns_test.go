package agent_test

import (
	"context"
	"fmt"
	"io"
	"iter"
	"math/rand/v2"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/corpus-agent/corpus-agent/agent"
	"github.com/corpus-agent/corpus-agent/agent/exit"
	"github.com/corpus-agent/corpus-agent/agent/hook"
	"github.com/corpus-agent/corpus-agent/agent/report"
	"github.com/corpus-agent/corpus-agent/artifact/artifacttest"
	plans "github.com/corpus-agent/corpus-agent/artifact/rollout"
	"github.com/corpus-agent/corpus-agent/artifact/store"
	"github.com/corpus-agent/corpus-agent/state"
)

// TestRolloutsOnAVirtualClock runs real agents in one process through rollouts, on a virtual clock. At random steps
// hosts are killed, the store does not answer, or a response is lost. One release fails on every host, one on every
// twentieth, and one is good. CORPUS_TEST_RUNS is the number of seeds, and CORPUS_TEST_HOSTS the number of hosts.
func TestRolloutsOnAVirtualClock(t *testing.T) {
	artifacttest.Long(t)
	seeds, many := fromEnv("CORPUS_TEST_RUNS", 1), fromEnv("CORPUS_TEST_HOSTS", 12)
	for seed := range seeds {
		t.Run(fmt.Sprintf("seed %d", seed+1), func(t *testing.T) {
			t.Parallel()
			c := newChaos(t, uint64(seed+1), many)
			c.failsEverywhere()
			c.failsOnSomeHosts()
			c.reachesAllHosts()
			c.isAborted()
			t.Logf("%d hosts, %d runs: %d killed, %d without the store; %d answers lost", many, c.runs, c.killed, c.away, c.lost)
		})
	}
}

func fromEnv(name string, otherwise int) int {
	if n, err := strconv.Atoi(os.Getenv(name)); err == nil && n > 0 {
		return n
	}
	return otherwise
}

// chaos is a fleet whose hosts and store fail at random, reproducibly for each seed.
type chaos struct {
	*rolling
	random *rand.Rand
	armed  bool                       // whether hosts are killed and the store fails
	out    time.Time                  // the end of the store's outage
	tried  map[string]map[string]bool // hosts that converged a version, by version
	began  func(h *rollHost, version string)
	during *rollHost       // the host that runs
	deep   int             // depth of nested runs
	failed map[string]int  // failures in the store when the run of a host began, by host
	struck map[string]bool // hosts that were killed since the version was published

	runs, killed, away, lost int
}

// wasKilled is the panic with which a host is killed.
type wasKilled struct{}

func newChaos(t *testing.T, seed uint64, many int) *chaos {
	t.Helper()
	plan := plans.Default()
	plan.Waves, _ = plans.ParseWaves("30%:1h,60%:1h,100%")
	c := &chaos{rolling: newRolling(t, 0, plan), random: rand.New(rand.NewPCG(seed, 19)),
		tried: map[string]map[string]bool{}, failed: map[string]int{}, began: func(*rollHost, string) {}}
	for i := range many {
		h := c.add(fmt.Sprintf("myapp-production-useast1-%d", i+1))
		whole := h.OpenStore
		h.OpenStore = func(url string) (store.Store, error) {
			s, err := whole(url)
			return unreliable{s, c}, err
		}
		h.Sinks = []report.Sink{killingSink{c}}
		h.engine.during = func(state.Request) { c.converges(h) }
	}
	c.armed = true
	return c
}

// converges records the host and its version, and runs other hosts at the same time.
func (c *chaos) converges(h *rollHost) {
	_, version, _ := strings.Cut(h.engine.last(), "+")
	if !c.tried[version][h.name] {
		if c.tried[version] == nil {
			c.tried[version] = map[string]bool{}
		}
		c.tried[version][h.name] = true
		c.began(h, version)
	}
	if c.deep < 3 && c.chance(0.2) {
		if other := c.hosts[c.random.IntN(len(c.hosts))]; other != h && other != c.during {
			c.host(other)
		}
	}
}

func (c *chaos) chance(p float64) bool { return c.armed && c.random.Float64() < p }

// killAtRandom kills the running host with a probability.
func (c *chaos) killAtRandom(p float64) {
	if c.chance(p) {
		c.killed++
		panic(wasKilled{})
	}
}

// host runs the agent once on a host.
func (c *chaos) host(h *rollHost) {
	c.runs++
	c.deep++
	outer := c.during
	c.during, c.failed[h.name] = h, c.recordedFailures()
	defer func() {
		c.deep--
		c.during = outer
		if r := recover(); r != nil {
			if _, ours := r.(wasKilled); !ours {
				panic(r)
			}
			c.struck[h.name] = true
		}
	}()
	_, err := c.try(h, agent.Given{}, false)
	switch exit.Code(err) {
	case exit.OK, exit.RolledBack:
	case exit.Unreachable:
		c.away++
	case exit.Locked: // a nested run of the same host
	default:
		c.t.Errorf("%s: %v", h.name, err)
	}
}

// round runs every host once, in random order.
func (c *chaos) round(hosts []*rollHost) {
	if c.chance(0.1) {
		c.out = c.store.now.Add(time.Duration(c.random.IntN(90)) * time.Minute)
	}
	for _, h := range hosts {
		c.host(h)
		c.store.now = c.store.now.Add(time.Second)
	}
	c.store.now = c.store.now.Add(20 * time.Minute)
}

// shuffled returns the hosts in random order.
func (c *chaos) shuffled() []*rollHost {
	hosts := slices.Clone(c.hosts)
	c.random.Shuffle(len(hosts), func(i, j int) { hosts[i], hosts[j] = hosts[j], hosts[i] })
	return hosts
}

// published starts the rollout of a version. No host is killed meanwhile.
func (c *chaos) published(version, before string) {
	c.armed, c.struck = false, map[string]bool{}
	c.start(version, before)
	c.armed = true
}

// failsEverywhere rolls out a release that fails on every host: no host beyond the first wave deploys it.
func (c *chaos) failsEverywhere() {
	c.published("2-broken", "1")
	first := len(c.inOrder()[0])
	c.began = func(h *rollHost, version string) {
		if version != "2-broken" {
			return
		}
		if failed := c.failed[h.name]; failed >= c.plan.Halt.Hosts && !c.struck[h.name] {
			c.t.Errorf("%s deployed a release that had failed on %d hosts", h.name, failed)
		}
		if c.wave(h) > 0 {
			c.t.Errorf("%s of wave %d deployed a release that fails on every host", h.name, c.wave(h)+1)
		}
	}
	for range 8 {
		c.round(c.shuffled())
	}
	if n := len(c.tried["2-broken"]); n == 0 || n > first {
		c.t.Errorf("a release that fails on every host was deployed on %d hosts, and its first wave has %d", n, first)
	}
	c.runAll("1", nil)
}

// failsOnSomeHosts rolls out a release that fails on every twentieth host: a limit of 10 % does not halt it.
func (c *chaos) failsOnSomeHosts() {
	plan := c.plan
	plan.Halt = plans.Halt{Share: 10 * plans.Percent}
	c.setPlan(plan)
	c.published("3", "1")
	inOrder := c.byPlace()
	bad := map[string]bool{}
	for i := 14; i < len(inOrder); i += 20 {
		h := inOrder[i]
		bad[h.name], h.engine.fails = true, failsOn("3")
	}
	c.began = c.checkEvidence("3")
	c.until("3", bad, func() []*rollHost { return inOrder })
	c.runAll("3", bad)
	for _, h := range c.hosts {
		h.engine.fails = nil
		if was := c.has(h); bad[h.name] && was != "1" {
			c.t.Errorf("%s, on which 3 fails, runs %q", h.name, was)
		}
	}
}

// reachesAllHosts rolls out a release without failures: every host deploys it, in spite of kills and outages.
func (c *chaos) reachesAllHosts() {
	c.published("4", "3")
	c.began = c.checkEvidence("4")
	c.until("4", nil, c.shuffled)
	c.runAll("4", nil)
}

// isAborted has a person abort a release during its rollout: every host that deployed it returns to the earlier one,
// also if it is killed meanwhile.
func (c *chaos) isAborted() {
	c.published("5", "4")
	c.began = c.checkEvidence("5")
	for range 5 {
		c.round(c.shuffled())
	}
	c.armed = false
	c.abort()
	c.armed = true
	for range 4 {
		c.round(c.shuffled())
	}
	c.runAll("4", nil)
}

// until runs hosts for at most a day, until all except some have a version.
func (c *chaos) until(version string, but map[string]bool, hosts func() []*rollHost) {
	for range 72 {
		c.round(hosts())
		if !slices.ContainsFunc(c.hosts, func(h *rollHost) bool { return !but[h.name] && c.has(h) != version }) {
			return
		}
	}
}

// runAll runs every host, except some, until one of its runs is complete, and checks its version.
func (c *chaos) runAll(version string, but map[string]bool) {
	c.t.Helper()
	c.armed, c.out = false, time.Time{}
	c.round(c.hosts)
	for _, h := range c.hosts {
		if got := c.has(h); !but[h.name] && got != version {
			c.t.Errorf("%s runs %q, want %q", h.name, got, version)
		}
	}
	c.armed = true
}

// byPlace returns the hosts in the order of their places.
func (c *chaos) byPlace() []*rollHost {
	release := string(c.digests[c.newest()])
	hosts := slices.Clone(c.hosts)
	place := func(h *rollHost) int {
		return int(c.plan.Place(release, plans.Host{Name: h.name + ".example.com", Region: "useast1"}))
	}
	slices.SortFunc(hosts, func(a, b *rollHost) int { return place(a) - place(b) })
	return hosts
}

func (c *chaos) newest() string {
	newest := ""
	for version := range c.digests {
		newest = max(newest, version)
	}
	return newest
}

// checkEvidence checks each deploy against the results in the store: enough hosts of each earlier wave have been
// healthy for as long as that wave waits.
func (c *chaos) checkEvidence(version string) func(*rollHost, string) {
	waves := c.inOrder()
	start := c.ids
	return func(h *rollHost, undeployingCommands string) {
		if undeployingCommands != version {
			return
		}
		for w := range c.wave(h) {
			healthy := 0
			for _, before := range waves[w] {
				if at, recorded := c.recordedHealthy(start, before); recorded && !at.After(c.store.now.Add(-time.Hour)) {
					healthy++
				}
			}
			if need := c.plan.Healthy.Of(len(waves[w])); healthy < need {
				c.t.Errorf("%s of wave %d deploys %s while %d of the %d hosts of wave %d that it takes are healthy for an hour",
					h.name, c.wave(h)+1, version, healthy, need, w+1)
			}
		}
	}
}

// recordedHealthy returns the time of the store at which a host recorded a healthy result.
func (c *chaos) recordedHealthy(id int, h *rollHost) (at time.Time, recorded bool) {
	prefix := fmt.Sprintf("%sresults/%s.example.com/healthy.", plans.Prefix(production, fmt.Sprintf("%d-c0ffee", id)),
		h.name)
	c.store.mu.Lock()
	defer c.store.mu.Unlock()
	for key, t := range c.store.times {
		if strings.HasPrefix(key, prefix) && (!recorded || t.Before(at)) {
			at, recorded = t, true
		}
	}
	return at, recorded
}

// recordedFailures returns the number of hosts that recorded a failure in the current rollout. A host whose answer was
// lost may have recorded it twice.
func (c *chaos) recordedFailures() int {
	prefix := plans.Prefix(production, fmt.Sprintf("%d-c0ffee", c.ids)) + "results/"
	failed := map[string]bool{}
	c.store.mu.Lock()
	defer c.store.mu.Unlock()
	for key := range c.store.times {
		host, result, ours := strings.Cut(strings.TrimPrefix(key, prefix), "/")
		if ours && strings.HasPrefix(key, prefix) && !strings.HasPrefix(result, "healthy.") {
			failed[host] = true
		}
	}
	return len(failed)
}

// unreliable is the store with the failures that hosts see.
type unreliable struct {
	store.Store
	c *chaos
}

// about reports whether a request is for an object of a rollout: the run makes these itself, others run in parallel.
func about(key string) bool { return strings.HasPrefix(key, "rollouts/") }

func (s unreliable) reach(op store.Op, key string) error {
	if s.c.store.now.Before(s.c.out) || about(key) && s.c.chance(0.05) {
		return &store.Error{Op: op, Object: key, Kind: store.ErrUnreachable}
	}
	return nil
}

func (s unreliable) Put(ctx context.Context, key string, r io.Reader, size int64, cond store.Condition) (store.Info,
	error) {
	if err := s.reach(store.OpPut, key); err != nil {
		return store.Info{}, err
	}
	if !about(key) {
		return s.Store.Put(ctx, key, r, size, cond)
	}
	s.c.killAtRandom(0.02)
	info, err := s.Store.Put(ctx, key, r, size, cond)
	s.c.killAtRandom(0.05)
	if err == nil && s.c.chance(0.1) {
		s.c.lost++
		return store.Info{}, &store.Error{Op: store.OpPut, Object: key, Kind: store.ErrUnreachable}
	}
	return info, err
}

func (s unreliable) Get(ctx context.Context, key string, from int64) (io.ReadCloser, store.Info, error) {
	if err := s.reach(store.OpGet, key); err != nil {
		return nil, store.Info{}, err
	}
	return s.Store.Get(ctx, key, from)
}

func (s unreliable) List(ctx context.Context, prefix string) iter.Seq2[store.Info, error] {
	if err := s.reach(store.OpList, prefix); err != nil {
		return func(yield func(store.Info, error) bool) { yield(store.Info{}, err) }
	}
	return s.Store.List(ctx, prefix)
}

// killingSink kills hosts at the start of a stage.
type killingSink struct{ c *chaos }

func (killingSink) Begin(*report.Report)          {}
func (s killingSink) Stage(string, string)        { s.c.killAtRandom(0.01) }
func (killingSink) Fetching(string, int64, int64) {}
func (killingSink) Step(report.Step)              {}
func (killingSink) Hook(string, hook.Result)      {}
func (killingSink) Note(string)                   {}
func (killingSink) End(*report.Report)            {}
