package agent_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"iter"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/corpus-agent/corpus-agent/agent"
	"github.com/corpus-agent/corpus-agent/agent/exit"
	"github.com/corpus-agent/corpus-agent/agent/hostkey"
	"github.com/corpus-agent/corpus-agent/agent/layout"
	"github.com/corpus-agent/corpus-agent/agent/report"
	"github.com/corpus-agent/corpus-agent/agent/rollout"
	"github.com/corpus-agent/corpus-agent/agent/site"
	"github.com/corpus-agent/corpus-agent/artifact"
	"github.com/corpus-agent/corpus-agent/artifact/artifacttest"
	"github.com/corpus-agent/corpus-agent/artifact/publish"
	plans "github.com/corpus-agent/corpus-agent/artifact/rollout"
	"github.com/corpus-agent/corpus-agent/artifact/store"
	"github.com/corpus-agent/corpus-agent/artifact/trust"
	"github.com/corpus-agent/corpus-agent/state"
	"github.com/corpus-agent/corpus-agent/state/diag"
)

// timedStore is a store with a fake clock that records requests.
type timedStore struct {
	store.Store
	mu       sync.Mutex
	now      time.Time
	times    map[string]time.Time
	asked    []string // operation and key
	unlisted error
}

func (s *timedStore) note(op, key string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.asked = append(s.asked, op+" "+key)
}

// requests returns the requests since the last call.
func (s *timedStore) requests() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	asked := s.asked
	s.asked = nil
	return asked
}

func (s *timedStore) modified(key string) time.Time {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.times[key]
}

func (s *timedStore) Put(ctx context.Context, key string, r io.Reader, size int64, cond store.Condition) (store.Info,
	error) {
	s.note("put", key)
	info, err := s.Store.Put(ctx, key, r, size, cond)
	if err == nil {
		s.mu.Lock()
		s.times[key] = s.now
		s.mu.Unlock()
	}
	return info, err
}

func (s *timedStore) Get(ctx context.Context, key string, from int64) (io.ReadCloser, store.Info, error) {
	s.note("get", key)
	body, info, err := s.Store.Get(ctx, key, from)
	info.Modified, info.Now = s.modified(key), s.now
	return body, info, err
}

func (s *timedStore) List(ctx context.Context, prefix string) iter.Seq2[store.Info, error] {
	return func(yield func(store.Info, error) bool) {
		s.note("list", prefix)
		if s.unlisted != nil {
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

// rolling is a store with a plan for myapp/production, and hosts that follow that channel.
type rolling struct {
	t     *testing.T
	repo  *artifacttest.Repo
	store *timedStore
	plan  plans.Plan
	hosts []*rollHost
	ids   int

	digests map[string]artifact.Digest // by version
}

// rollHost is a host that follows the channel.
type rollHost struct {
	*agent.Agent
	name   string
	engine *engine
	off    time.Duration // error of its clock
}

var production = artifact.Ref{Project: "myapp", Channel: "production"}

// newRolling makes a store and hosts that run version 1.
func newRolling(t *testing.T, n int, plan plans.Plan) *rolling {
	t.Helper()
	f := &rolling{t: t, repo: artifacttest.New(t), plan: plan}
	f.store = &timedStore{Store: f.repo.Store, times: map[string]time.Time{}, now: time.Now().UTC().Truncate(time.Second)}
	f.digests = map[string]artifact.Digest{"1": f.repo.Release("myapp", "1", "production", app("1")).Digest}
	f.setPlan(plan)
	for i := range n {
		f.add(fmt.Sprintf("myapp-production-useast1-%d", i+1))
	}
	return f
}

func app(version string) artifacttest.Files {
	return artifacttest.Files{"version": version, "salt/config/states/top.sls": "base: {}"}
}

// add adds a new host and deploys the channel's release on it.
func (f *rolling) add(name string) *rollHost {
	f.t.Helper()
	h := f.newHost(name)
	f.run(h, exit.OK)
	f.hosts = append(f.hosts, h)
	return h
}

func (f *rolling) newHost(name string) *rollHost {
	f.t.Helper()
	h := &rollHost{name: name, engine: &engine{}}
	c := settings(f.t)
	c.UploadReports = true
	h.Agent = agent.New(site.Site{Layout: layout.At(f.t.TempDir()), Config: c,
		Hostname: func() (string, error) { return h.name + ".example.com", nil }})
	h.Now = func() time.Time { return f.store.now.Add(h.off) }
	h.Engine, h.OpenStore = h.engine, func(string) (store.Store, error) { return f.store, nil }
	return h
}

func (f *rolling) try(h *rollHost, g agent.Given, test bool) (*report.Report, error) {
	f.t.Helper()
	g.TrustRoot = filepath.Join(f.t.TempDir(), "root.json")
	if err := os.WriteFile(g.TrustRoot, f.repo.Root(), 0o600); err != nil {
		f.t.Fatal(err)
	}
	return h.Deploy(context.Background(), g, test)
}

func (f *rolling) run(h *rollHost, code int) *report.Report {
	f.t.Helper()
	r, err := f.try(h, agent.Given{}, false)
	if got := exit.Code(err); got != code {
		f.t.Fatalf("%s: exit code %d (%v), want %d", h.name, got, err, code)
	}
	return r
}

// has returns the version that a host runs.
func (f *rolling) has(h *rollHost) string {
	f.t.Helper()
	data, err := os.ReadFile(h.Layout.Path("/srv/service/current/version"))
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		f.t.Fatal(err)
	}
	return string(data)
}

func (f *rolling) runs(h *rollHost, version string) {
	f.t.Helper()
	if got := f.has(h); got != version {
		f.t.Errorf("%s runs %q, want %q", h.name, got, version)
	}
}

func (f *rolling) setPlan(plan plans.Plan) {
	f.t.Helper()
	f.plan = plan
	if err := f.repo.Publisher.Change(f.t.Context(), func(n *publish.Next) error {
		return trust.SetRollouts(n.Targets(), map[string]plans.Plan{production.String(): plan})
	}); err != nil {
		f.t.Fatal(err)
	}
}

func (f *rolling) pointer(change func(*trust.Pointer)) {
	f.t.Helper()
	if err := f.repo.Publisher.Change(f.t.Context(), func(n *publish.Next) error {
		role, err := n.Project(f.t.Context(), production.Project)
		if err != nil {
			return err
		}
		channels, err := trust.Channels(role)
		if err != nil {
			return err
		}
		p := channels[production.Channel]
		change(&p)
		p.Serial++
		channels[production.Channel] = p
		return trust.SetChannels(role, channels)
	}); err != nil {
		f.t.Fatal(err)
	}
}

// start publishes a version to the channel with the start of its rollout.
func (f *rolling) start(version, before string, more ...func(*plans.Start)) {
	f.t.Helper()
	release := f.repo.Release("myapp", version, "", app(version))
	f.digests[version] = release.Digest
	known, err := hostkey.List(f.t.Context(), f.store)
	if err != nil {
		f.t.Fatal(err)
	}
	var roster rollout.Roster
	for _, h := range f.hosts {
		roster.Hosts = append(roster.Hosts, rollout.Member{Name: h.name + ".example.com", Region: "useast1",
			Cluster: "myapp-production-useast1", Key: known[h.name+".example.com"][0].Key})
	}
	f.ids++
	start := f.plan.NewStart(fmt.Sprintf("%d-c0ffee", f.ids), string(release.Digest), f.store.now, roster.Places())
	if start.Roster, err = rollout.WriteRoster(f.t.Context(), f.store, production, start.ID, roster); err != nil {
		f.t.Fatal(err)
	}
	if before != "" {
		start.Before = &plans.Before{Version: before, Digest: f.digests[before]}
	}
	for _, change := range more {
		change(&start)
	}
	f.pointer(func(p *trust.Pointer) {
		*p = trust.Pointer{Version: version, Digest: release.Digest, Serial: p.Serial, Rollout: &start}
	})
	f.store.requests()
}

func (f *rolling) signed() *trust.Role {
	f.t.Helper()
	client, err := f.repo.Host().Client()
	if err != nil {
		f.t.Fatal(err)
	}
	role, err := client.Project(f.t.Context(), "myapp")
	if err != nil {
		f.t.Fatal(err)
	}
	return role
}

// move changes the signed start of the rollout.
func (f *rolling) move(change func(*plans.Start)) {
	f.t.Helper()
	f.pointer(func(p *trust.Pointer) { change(p.Rollout) })
}

// abort moves the channel back to the earlier release.
func (f *rolling) abort() {
	f.t.Helper()
	f.pointer(func(p *trust.Pointer) {
		p.Rollout.Aborted = true
		p.Version, p.Digest = p.Rollout.Before.Version, p.Rollout.Before.Digest
	})
}

// inOrder returns the hosts by waves of the current rollout.
func (f *rolling) inOrder() (waves [][]*rollHost) {
	f.t.Helper()
	channels, err := trust.Channels(f.signed())
	if err != nil {
		f.t.Fatal(err)
	}
	start := channels["production"].Rollout
	waves = make([][]*rollHost, len(f.plan.Waves))
	for _, h := range f.hosts {
		w := f.plan.Wave(start.Release, plans.Host{Name: h.name + ".example.com", Region: "useast1"}, start.Cuts)
		waves[w] = append(waves[w], h)
	}
	return waves
}

// rolloutRequests returns the requests for objects of rollouts.
func rolloutRequests(asked []string) (about []string) {
	for _, a := range asked {
		if _, key, _ := strings.Cut(a, " "); strings.HasPrefix(key, "rollouts/") {
			about = append(about, a)
		}
	}
	return about
}

func twoWaves() plans.Plan {
	plan := plans.Default()
	plan.Waves, _ = plans.ParseWaves("25%:1h,100%")
	plan.AtOnce = plans.All
	return plan
}

func TestHostsDeployAReleaseInWaves(t *testing.T) {
	t.Parallel()
	f := newRolling(t, 4, twoWaves())
	f.start("2", "1")
	waves := f.inOrder()
	first, later := waves[0][0], waves[1][0]

	// A host makes no requests before the earliest time of its turn.
	r := f.run(later, exit.OK)
	f.runs(later, "1")
	noted(t, r, "waits for the turn of this host")
	if about := rolloutRequests(f.store.requests()); len(about) != 0 {
		t.Errorf("a host before its turn made the requests %q", about)
	}
	if r.Outcome != report.Converged || r.Withheld == nil || r.Withheld.Service.Version != "2" {
		t.Errorf("outcome %s, withheld %v", r.Outcome, r.Withheld)
	}
	why, err := later.Why()
	if err != nil || !strings.Contains(why.Reason, "waits for its turn") || !strings.Contains(why.Reason, "wave 2") {
		t.Errorf("why: %q, %v", why.Reason, err)
	}
	if s, err := later.Status(); err != nil || len(s.Turns) != 1 || !s.Turns[0].Waits() || s.Turns[0].Not == nil {
		t.Errorf("status: %+v, %v", s.Turns, err)
	}

	f.run(first, exit.OK)
	f.runs(first, "2")
	lists := 0
	for _, a := range rolloutRequests(f.store.requests()) {
		if strings.HasPrefix(a, "list ") {
			lists++
		}
	}
	if lists != 1 {
		t.Errorf("a host in its turn made %d listings", lists)
	}
	f.run(first, exit.OK)
	if about := rolloutRequests(f.store.requests()); len(about) != 0 {
		t.Errorf("a host with the release made the requests %q", about)
	}

	f.store.now = f.store.now.Add(time.Hour)
	f.run(later, exit.OK)
	f.runs(later, "2")
	want := []string{"get roster.json", "list ", "put results/" + later.name}
	var got []string
	for _, a := range rolloutRequests(f.store.requests()) {
		op, key, _ := strings.Cut(a, " ")
		key = strings.TrimPrefix(key, plans.Prefix(production, "1-c0ffee"))
		got = append(got, op+" "+key[:min(len(key), len("results/"+later.name))])
	}
	if !slices.Equal(got, want) {
		t.Errorf("a host in its turn made the requests %q, want %q", got, want)
	}
}

func TestAWaveWaitsForHealthyHostsOfTheOneBefore(t *testing.T) {
	t.Parallel()
	f := newRolling(t, 4, twoWaves())
	f.start("2", "1")
	later := f.inOrder()[1][0]
	f.store.now = f.store.now.Add(24 * time.Hour)
	noted(t, f.run(later, exit.OK), "it asks again at its next run")
	f.runs(later, "1")
	f.store.requests()
	f.run(later, exit.OK)
	if about := rolloutRequests(f.store.requests()); len(about) != 1 || !strings.HasPrefix(about[0], "list ") {
		t.Errorf("a host that waits for others made the requests %q, want one listing", about)
	}
}

func TestARolloutStopsAndIsResumed(t *testing.T) {
	artifacttest.Long(t)
	t.Parallel()
	plan := twoWaves()
	plan.Waves, _ = plans.ParseWaves("50%:1h,100%")
	plan.Halt = plans.Halt{Hosts: 2}
	f := newRolling(t, 6, plan)
	f.start("2-broken", "1")
	waves := f.inOrder()
	for _, h := range waves[0][:2] {
		f.run(h, exit.RolledBack)
		f.runs(h, "1")
	}
	third := waves[0][2]
	r := f.run(third, exit.OK)
	f.runs(third, "1")
	noted(t, r, "it failed on 2 of 2 hosts")
	halts := 0
	for _, a := range f.store.requests() {
		if strings.Contains(a, "/halts/") {
			halts++
		}
	}
	noted(t, f.run(waves[1][0], exit.OK), "waits for the turn")
	noted(t, f.run(third, exit.OK), "the rollout is halted")
	for _, a := range f.store.requests() {
		if strings.Contains(a, "put ") && strings.Contains(a, "/halts/") {
			halts++
		}
	}
	if halts != 1 {
		t.Errorf("the halt was recorded %d times", halts)
	}
	// A promotion during the halt starts another rollout, to which the halt does not apply.
	f.start("3", "1")
	for _, h := range f.inOrder()[0] {
		f.run(h, exit.OK)
		f.runs(h, "3")
	}
}

// TestAHaltHoldsThoughTheStoreLosesIt checks that a halt stays in effect until a resume: a host that read it records it
// again.
func TestAHaltHoldsThoughTheStoreLosesIt(t *testing.T) {
	t.Parallel()
	plan := twoWaves()
	plan.Waves, _ = plans.ParseWaves("50%:1h,100%")
	plan.Halt = plans.Halt{Hosts: 1}
	f := newRolling(t, 4, plan)
	f.start("2", "1")
	wave := f.inOrder()[0]
	wave[0].engine.fails = failsOn("2")
	f.run(wave[0], exit.RolledBack)
	f.run(wave[1], exit.OK)
	for info, err := range f.store.List(t.Context(), "rollouts/") {
		if err != nil {
			t.Fatal(err)
		}
		if strings.Contains(info.Key, "/results/") || strings.Contains(info.Key, "/halts/") {
			if err := f.store.Delete(t.Context(), info.Key); err != nil {
				t.Fatal(err)
			}
		}
	}
	f.store.requests()
	noted(t, f.run(wave[1], exit.OK), "the rollout is halted")
	f.runs(wave[1], "1")
	if again := strings.Join(f.store.requests(), "\n"); !strings.Contains(again, "/halts/") {
		t.Errorf("the halt was not recorded again: %s", again)
	}
	f.move(func(s *plans.Start) { s.Resumed = f.store.now.Add(time.Second) })
	f.store.now = f.store.now.Add(time.Minute)
	f.run(wave[1], exit.OK)
	f.runs(wave[1], "2")
}

func TestResumeAfterHalt(t *testing.T) {
	t.Parallel()
	plan := twoWaves()
	plan.Waves, _ = plans.ParseWaves("50%:1h,100%")
	plan.Halt = plans.Halt{Hosts: 1}
	f := newRolling(t, 4, plan)
	f.start("2", "1")
	wave := f.inOrder()[0]
	wave[0].engine.fails = failsOn("2")
	f.run(wave[0], exit.RolledBack)
	f.run(wave[1], exit.OK)
	f.runs(wave[1], "1")
	f.store.now = f.store.now.Add(time.Minute)
	f.move(func(s *plans.Start) { s.Paused = true })
	f.store.requests()
	noted(t, f.run(wave[1], exit.OK), "paused")
	if about := rolloutRequests(f.store.requests()); len(about) != 0 {
		t.Errorf("in a paused rollout a host made the requests %q", about)
	}
	f.move(func(s *plans.Start) { s.Paused, s.Resumed = false, f.store.now })
	f.run(wave[1], exit.OK)
	f.runs(wave[1], "2")
}

func TestHostsRollBackAfterAnAbort(t *testing.T) {
	t.Parallel()
	f := newRolling(t, 4, twoWaves())
	f.start("2", "1")
	waves := f.inOrder()
	first := waves[0][0]
	f.run(first, exit.OK)
	f.runs(first, "2")
	f.abort()
	r := f.run(first, exit.OK)
	f.runs(first, "1")
	noted(t, r, "is aborted")
	f.run(waves[1][0], exit.OK)
	f.runs(waves[1][0], "1")
	if s, err := first.Status(); err != nil || len(s.Quarantined) != 0 || len(s.Turns) != 0 {
		t.Errorf("after the host left the aborted release: %+v, %+v, %v", s.Quarantined, s.Turns, err)
	}
	if r := f.run(first, exit.OK); r.Withheld != nil {
		t.Errorf("withheld %v", r.Withheld)
	}
	why, err := first.Why()
	if err != nil || !strings.Contains(why.Reason, "it is what") {
		t.Errorf("why: %q, %v", why.Reason, err)
	}
	// The same release may be promoted again.
	f.pointer(func(p *trust.Pointer) {
		p.Version, p.Digest = "2", artifact.Digest(p.Rollout.Release)
		p.Rollout.Aborted, p.Rollout.Urgent = false, true
	})
	f.run(first, exit.OK)
	f.runs(first, "2")
}

// killedWhileConverging returns a host as a power failure leaves it while a version converges.
func (f *rolling) killedWhileConverging(h *rollHost) *rollHost {
	f.t.Helper()
	after := f.newHost(h.name)
	h.engine.during = func(state.Request) {
		h.engine.during = nil
		after.Layout = layout.At(copied(f.t, h.Layout.Root))
	}
	f.run(h, exit.OK)
	after.Agent = agent.New(site.Site{Layout: after.Layout, Config: h.Config, Hostname: h.Hostname})
	after.Now, after.Engine, after.OpenStore = h.Now, after.engine, h.OpenStore
	must(f.t, os.WriteFile(after.Layout.Lock(), nil, 0o600)) // this process held it
	return after
}

func TestInterruptedDeployChecksRolloutAgain(t *testing.T) {
	t.Parallel()
	halt := func(s *plans.Start) { s.Paused = true }
	for name, c := range map[string]struct {
		change func(*rolling)
		code   int
		want   string
		note   string
	}{
		"paused": {change: func(f *rolling) { f.move(halt) }, want: "1", note: "paused"},
		"halted": {change: func(f *rolling) {
			for _, h := range f.inOrder()[0][1:3] {
				h.engine.fails = failsOn("2")
				f.run(h, exit.RolledBack)
			}
		}, want: "1", note: "it failed on 2 of"},
		"store not listed": {change: func(f *rolling) { f.store.unlisted = store.ErrUnreachable }, want: "1",
			note: "waits for the turn"},
		"running": {change: func(*rolling) {}, want: "2", note: "is resumed"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := newRolling(t, 12, twoWaves())
			f.start("2", "1")
			h := f.killedWhileConverging(f.inOrder()[0][0])
			c.change(f)
			noted(t, f.run(h, c.code), c.note)
			f.runs(h, c.want)
			f.run(h, c.code)
			f.runs(h, c.want)
		})
	}
}

func TestInterruptedDeployWaitsForTheStore(t *testing.T) {
	t.Parallel()
	f := newRolling(t, 4, twoWaves())
	f.start("2", "1")
	h := f.killedWhileConverging(f.inOrder()[0][0])
	whole := h.OpenStore
	h.OpenStore = func(string) (store.Store, error) { return unreadableStore{f.store}, nil }
	f.store.now = f.store.now.Add(time.Minute)
	noted(t, f.run(h, exit.Unreachable), "whether the rollout continues")
	f.runs(h, "1")
	h.OpenStore = whole
	f.run(h, exit.OK)
	f.runs(h, "2")
}

func TestNewHostDeploysPreviousRelease(t *testing.T) {
	t.Parallel()
	f := newRolling(t, 4, twoWaves())
	f.start("2", "1")
	for i := range 20 {
		name := fmt.Sprintf("myapp-production-useast1-%d", 100+i)
		h := f.newHost(name)
		f.run(h, exit.OK)
		if got := f.has(h); got == "1" {
			return // the host is in a later wave
		}
	}
	t.Error("every new host took the release at once")
}

func TestNewChannelDeploysFirstReleaseAtOnce(t *testing.T) {
	t.Parallel()
	f := newRolling(t, 1, twoWaves())
	f.start("2", "", func(s *plans.Start) { s.Paused = true })
	h := f.newHost("myapp-production-useast1-9")
	f.run(h, exit.OK)
	f.runs(h, "2")
}

func TestUrgentReleasesIgnoreWavesAndHaltAtTheLimit(t *testing.T) {
	t.Parallel()
	plan := twoWaves()
	plan.Halt = plans.Halt{Hosts: 1}
	f := newRolling(t, 4, plan)
	f.start("2", "1", func(s *plans.Start) { s.Urgent = true })
	last := f.inOrder()[1]
	f.run(last[0], exit.OK)
	f.runs(last[0], "2")
	last[1].engine.fails = failsOn("2")
	f.run(last[1], exit.RolledBack)
	f.run(last[2], exit.OK)
	f.runs(last[2], "1")
}

func TestNoHostIsAheadWithoutEvidence(t *testing.T) {
	t.Parallel()
	f := newRolling(t, 4, twoWaves())
	f.start("2", "1")
	first := f.inOrder()[0][0]
	f.store.unlisted = errors.ErrUnsupported
	r := f.run(first, exit.OK)
	f.runs(first, "1")
	noted(t, r, "does not show the results of other hosts")
	f.store.unlisted = store.ErrUnreachable
	noted(t, f.run(first, exit.OK), "cannot be reached")
	f.runs(first, "1")
	f.store.unlisted = nil
	f.run(first, exit.OK)
	f.runs(first, "2")
}

func TestClocksOfHostsDoNotMatter(t *testing.T) {
	artifacttest.Long(t)
	t.Parallel()
	// a clock before the last signature is refused
	for _, off := range []time.Duration{24 * time.Hour, -45 * time.Minute} {
		f := newRolling(t, 4, twoWaves())
		f.start("2", "1")
		waves := f.inOrder()
		first, later := waves[0][0], waves[1][0]
		first.off, later.off = off, off
		f.run(later, exit.OK)
		f.runs(later, "1")
		f.run(first, exit.OK)
		f.runs(first, "2")
		f.store.now = f.store.now.Add(59 * time.Minute)
		f.run(later, exit.OK)
		f.runs(later, "1")
		f.store.now = f.store.now.Add(time.Minute)
		f.run(later, exit.OK)
		f.runs(later, "2")
	}
}

func TestDeployAheadIgnoresWaves(t *testing.T) {
	t.Parallel()
	f := newRolling(t, 4, twoWaves())
	f.start("2", "1")
	later := f.inOrder()[1][0]
	if _, err := f.try(later, agent.Given{Ahead: true}, true); err != nil {
		t.Error(err)
	}
	f.runs(later, "1")
	r, err := f.try(later, agent.Given{Ahead: true}, false)
	if err != nil {
		t.Fatal(err)
	}
	f.runs(later, "2")
	noted(t, r, "ahead of the rollout")
	recorded := slices.ContainsFunc(f.store.requests(), func(a string) bool {
		return strings.Contains(a, "/results/"+later.name+".example.com/healthy.")
	})
	if !recorded {
		t.Error("the host did not record its result")
	}
	f.run(later, exit.OK)
	f.runs(later, "2")
}

func TestDryRunInRolloutWritesNothing(t *testing.T) {
	t.Parallel()
	plan := twoWaves()
	plan.AtOnce = 25 * plans.Percent
	f := newRolling(t, 4, plan)
	f.start("2", "1")
	first := f.inOrder()[0][0]
	r, err := f.try(first, agent.Given{}, true)
	if err != nil {
		t.Fatal(err)
	}
	noted(t, r, "would deploy")
	for _, a := range f.store.requests() {
		if strings.HasPrefix(a, "put ") {
			t.Errorf("a dry run wrote: %s", a)
		}
	}
}

func TestPlanChangedDuringRollout(t *testing.T) {
	artifacttest.Long(t)
	t.Parallel()
	f := newRolling(t, 4, twoWaves())
	f.start("2", "1")
	waves := f.inOrder()
	f.run(waves[0][0], exit.OK)
	f.run(waves[1][0], exit.OK)
	f.runs(waves[1][0], "1")
	plan := f.plan
	plan.Waves, _ = plans.ParseWaves("25%:0s,100%")
	f.setPlan(plan)
	f.run(waves[1][0], exit.OK)
	f.runs(waves[1][0], "2")
	plan.Waves, _ = plans.ParseWaves("10%:5h,30%:5h,100%")
	f.setPlan(plan)
	f.run(waves[1][1], exit.OK)
	f.runs(waves[1][1], "1")
	f.store.now = f.store.now.Add(5 * time.Hour)
	for range 2 {
		for _, h := range f.hosts {
			f.run(h, exit.OK)
		}
		f.store.now = f.store.now.Add(5 * time.Hour)
	}
	for _, h := range f.hosts {
		f.run(h, exit.OK)
		f.runs(h, "2")
	}
}

func TestTwoReleasesWithinAMinute(t *testing.T) {
	t.Parallel()
	f := newRolling(t, 4, twoWaves())
	f.start("2", "1")
	first := f.inOrder()[0][0]
	f.run(first, exit.OK)
	f.store.now = f.store.now.Add(time.Minute)
	f.start("3", "1")
	f.store.now = f.store.now.Add(2 * time.Hour)
	waves := f.inOrder()
	for _, h := range waves[1] {
		f.run(h, exit.OK)
		if got := f.has(h); got == "3" {
			t.Errorf("%s deployed 3 by the results for 2", h.name)
		}
	}
	f.run(waves[0][0], exit.OK)
	f.runs(waves[0][0], "3")
}

func TestRenamedHostKeepsItsWave(t *testing.T) {
	t.Parallel()
	f := newRolling(t, 4, twoWaves())
	f.start("2", "1")
	first := f.inOrder()[0][0]
	was := first.name
	for i := range 50 { // to a name that would be in the second wave
		first.name = fmt.Sprintf("myapp-production-useast1-%d", 500+i)
		if f.wave(first) == 1 {
			break
		}
	}
	f.store.now = f.store.now.Add(time.Hour)
	f.run(first, exit.OK)
	f.runs(first, "2")
	recorded := slices.ContainsFunc(f.store.requests(), func(a string) bool {
		return strings.Contains(a, "/results/"+was+".example.com/healthy.")
	})
	if !recorded {
		t.Error("its results do not count under its name in the roster")
	}
}

func (f *rolling) wave(h *rollHost) int {
	channels, err := trust.Channels(f.signed())
	if err != nil {
		f.t.Fatal(err)
	}
	start := channels["production"].Rollout
	return f.plan.Wave(start.Release, plans.Host{Name: h.name + ".example.com", Region: "useast1"}, start.Cuts)
}

func TestAtOnceLimitsConcurrentDeploys(t *testing.T) {
	t.Parallel()
	plan := twoWaves()
	plan.Waves, plan.AtOnce = []plans.Wave{{Share: plans.All}}, 25*plans.Percent // one lease
	f := newRolling(t, 4, plan)
	f.start("2", "1")
	var other *report.Report
	f.hosts[0].engine.during = func(state.Request) { other = f.run(f.hosts[1], exit.OK) }
	f.run(f.hosts[0], exit.OK)
	f.runs(f.hosts[0], "2")
	if other == nil {
		t.Fatal("no other host ran meanwhile")
	}
	noted(t, other, "no place is free")
	name := f.hosts[0].name + ".example.com"
	status, err := f.hosts[1].Status()
	must(t, err)
	until := f.store.now.Add(time.Hour)
	want := "held by " + name + " until its deploy ends, and until " + diag.Stamp(until) + " if it has died"
	if len(status.Turns) != 1 || !strings.Contains(status.Turns[0].String(), want) {
		t.Errorf("the status of the host that waits does not name %s and %s: %v", name, diag.Stamp(until), status.Turns)
	}
	f.runs(f.hosts[1], "1")
	f.run(f.hosts[1], exit.OK)
	f.runs(f.hosts[1], "2")
}

func TestAnOlderAgentWaits(t *testing.T) {
	t.Parallel()
	f := newRolling(t, 1, twoWaves())
	f.start("2", "1", func(s *plans.Start) { s.Agent = "9.1.0" })
	f.hosts[0].Version = "1.2.3"
	noted(t, f.run(f.hosts[0], exit.OK), "it takes agent 9.1.0, and this one is 1.2.3")
	f.runs(f.hosts[0], "1")
	f.hosts[0].Version = "9.1.0"
	f.run(f.hosts[0], exit.OK)
	f.runs(f.hosts[0], "2")
}

func TestFailedResultUploadIsRetried(t *testing.T) {
	t.Parallel()
	f := newRolling(t, 1, twoWaves())
	f.start("2", "1")
	h := f.hosts[0]
	whole := h.OpenStore
	h.OpenStore = func(url string) (store.Store, error) {
		s, err := whole(url)
		return refusing{s}, err
	}
	noted(t, f.run(h, exit.OK), "the next run records it")
	f.runs(h, "2")
	h.OpenStore = whole
	f.store.requests()
	f.run(h, exit.OK)
	recorded := slices.ContainsFunc(f.store.requests(), func(a string) bool {
		return strings.Contains(a, "/results/"+h.name)
	})
	if !recorded {
		t.Error("the result was not recorded later")
	}
}

func TestAResultThatTheStoreHasLostIsRecordedAfterAResume(t *testing.T) {
	t.Parallel()
	f := newRolling(t, 1, twoWaves())
	f.start("2", "1")
	h := f.hosts[0]
	f.run(h, exit.OK)
	f.runs(h, "2")
	f.store.requests()
	f.run(h, exit.OK)
	if about := rolloutRequests(f.store.requests()); len(about) != 0 {
		t.Errorf("without a resume the host made the requests %q", about)
	}
	f.move(func(s *plans.Start) { s.Note(plans.Move{What: "resume", At: f.store.now}) })
	for _, want := range []int{1, 0} {
		f.store.requests()
		f.run(h, exit.OK)
		if about := rolloutRequests(f.store.requests()); len(about) != want || want == 1 &&
			!strings.Contains(about[0], "/results/"+h.name) {
			t.Errorf("after a resume the host made the requests %q, want %d", about, want)
		}
	}
}

// unreadableStore is a store that cannot be read.
type unreadableStore struct{ store.Store }

func (s unreadableStore) Get(_ context.Context, key string, _ int64) (io.ReadCloser, store.Info, error) {
	return nil, store.Info{}, &store.Error{Op: store.OpGet, Object: key, Kind: store.ErrUnreachable}
}

// refusing is a store that refuses to write results.
type refusing struct{ store.Store }

func (s refusing) Put(ctx context.Context, key string, r io.Reader, size int64, cond store.Condition) (store.Info,
	error) {
	if strings.Contains(key, "/results/") {
		return store.Info{}, &store.Error{Op: store.OpPut, Object: key, Kind: store.ErrUnreachable}
	}
	return s.Store.Put(ctx, key, r, size, cond)
}

func TestHostWithReleaseRecordsResult(t *testing.T) {
	t.Parallel()
	f := newRolling(t, 4, twoWaves())
	f.start("2", "1", func(s *plans.Start) { s.Urgent = true })
	for _, h := range f.hosts {
		f.run(h, exit.OK)
		f.runs(h, "2")
	}
	f.move(func(s *plans.Start) { // the rollout is started again, as after another release
		old := s.ID
		s.ID, s.Urgent = "again-1", false
		data := f.repo.Object(plans.RosterKey(production, old))
		f.repo.Replace(plans.RosterKey(production, s.ID), data)
	})
	f.store.requests()
	f.run(f.hosts[0], exit.OK)
	about := rolloutRequests(f.store.requests())
	if len(about) != 1 || !strings.Contains(about[0], "put rollouts/myapp/production/again-1/results/"+f.hosts[0].name) {
		t.Errorf("the host made the requests %q", about)
	}
	if about = func() []string {
		f.run(f.hosts[0], exit.OK)
		return rolloutRequests(f.store.requests())
	}(); len(about) != 0 {
		t.Errorf("the next run made the requests %q", about)
	}
}

// failsOn returns a function that fails a version of the service.
func failsOn(version string) func(string) error {
	return func(what string) error {
		if strings.HasSuffix(what, "+"+version) {
			return exit.WithCode(exit.Failed, errors.New("it does not work here"))
		}
		return nil
	}
}
