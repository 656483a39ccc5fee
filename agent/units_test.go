package agent_test

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/corpus-agent/corpus-agent/agent"
	"github.com/corpus-agent/corpus-agent/agent/exit"
	"github.com/corpus-agent/corpus-agent/agent/inspect"
	"github.com/corpus-agent/corpus-agent/agent/report"
	"github.com/corpus-agent/corpus-agent/agent/service"
	"github.com/corpus-agent/corpus-agent/artifact/artifacttest"
	"github.com/corpus-agent/corpus-agent/artifact/recipe"
	"github.com/corpus-agent/corpus-agent/state"
	"github.com/corpus-agent/corpus-agent/state/diag"
	"github.com/corpus-agent/corpus-agent/state/host"
	"github.com/corpus-agent/corpus-agent/state/host/processes"
	"github.com/corpus-agent/corpus-agent/state/host/units"
)

// fakeUnits is a fake init system whose units start the programs at their paths.
type fakeUnits struct {
	l     *lab
	clock time.Duration
	all   map[string]*unit
	acted []string
	pids  int

	listening []int                     // processes that listen on every port
	sockets   []processes.Socket        // further sockets
	alone     map[int]processes.Process // processes without a unit
}

// unit is a unit of the init system.
type unit struct {
	units.Service
	start  string // the path of the program
	refuse bool   // whether its start fails
	why    string // the error of that start
	limit  bool   // whether it has reached its start limit
	exits  bool   // each program that it starts ends at once
	dies   string // how its program ends once version 2 is current: "failed", "restarts"
	script bool   // whether an interpreter runs it, so that the process gives no evidence of the release
	runs   string // the program, by the resolved path at its start
	user   int    // the user of its process
	logs   []string

	dying []string // the log lines of the process before this one, if the init system has restarted it
}

func newUnits(l *lab, names ...string) *fakeUnits {
	u := &fakeUnits{l: l, all: map[string]*unit{}}
	l.Units = u
	for _, name := range names {
		u.add(name, "/srv/service/current/bin/app").begin(u)
	}
	return u
}

// runningUnits returns a host whose version runs in units, which are all healthy.
func runningUnits(t *testing.T, version string, names ...string) (*lab, *fakeUnits) {
	t.Helper()
	l := newLab(t)
	l.app(version)
	l.expect(exit.OK)
	return l, newUnits(l, names...)
}

func (u *fakeUnits) add(name, start string) *unit {
	d := units.Service{Unit: host.Unit{Name: name, Found: true, Boot: "enabled", Active: "inactive"}, Known: true,
		Settings: []string{start}, Cgroup: "/system.slice/" + name}
	u.all[name] = &unit{Service: d, start: start}
	return u.all[name]
}

// begin starts the program at the unit's path. The program of a version that exits ends at once, with status 0.
func (s *unit) begin(u *fakeUnits) {
	u.clock += time.Millisecond
	u.pids++
	s.Began, s.BeganAt, s.MainPID = u.clock, time.Now(), u.pids
	path, err := filepath.EvalSymlinks(u.l.Layout.Path(s.start))
	if strings.Contains(path, "crashes") { // and the init system starts it again, until its limit
		s.Active, s.Sub, s.runs, s.MainPID, s.limit = "failed", "failed", path, 0, true
		return
	}
	s.Active, s.Sub, s.runs = "active", "running", path
	s.Restarts, s.dying = 0, nil
	if err != nil || s.exits || strings.Contains(path, "exits") {
		s.Active, s.Sub, s.Result, s.MainPID = "inactive", "dead", "success", 0
	}
}

// version returns the version that a unit runs; "" for none.
func (u *fakeUnits) version(name string) string {
	s := u.all[name]
	if s.MainPID == 0 {
		return ""
	}
	_, after, _ := strings.Cut(s.runs, "/releases/")
	version, _, _ := strings.Cut(after, "-")
	return version
}

func (u *fakeUnits) Allowed() error { return nil }
func (u *fakeUnits) Own() string    { return "corpus-agent.service" }

func (u *fakeUnits) Loaded(context.Context) ([]string, error) {
	var names []string
	for name := range u.all {
		names = append(names, name)
	}
	slices.Sort(names)
	return names, nil
}

func (u *fakeUnits) Service(_ context.Context, name string) (units.Service, error) {
	if s := u.all[name]; s != nil {
		served := s.dies != "" && u.l.version("service/current") == "2"
		switch {
		case served && s.MainPID != 0 && s.dies == "failed":
			s.Active, s.Sub, s.MainPID, s.Status, s.Result = "failed", "failed", 0, 1, "exit-code"
		case served && s.MainPID != 0 && s.dies == "restarts":
			s.Restarts++
		}
		return s.Service, nil
	}
	return units.Service{Unit: host.Unit{Name: name}, Known: true}, nil
}

func (u *fakeUnits) Services(ctx context.Context, names []string) (all []units.Service, err error) {
	for _, name := range names {
		d, err := u.Service(ctx, name)
		if err != nil {
			return nil, err
		}
		all = append(all, d)
	}
	return all, nil
}

// Sockets has a listener on every port of 127.0.0.1 for each process in listening.
func (u *fakeUnits) Sockets(wanted func(processes.Socket) bool) []processes.Socket {
	all := slices.Clone(u.sockets)
	if len(u.listening) > 0 {
		for port := range 1 << 16 {
			at := netip.AddrPortFrom(netip.MustParseAddr("127.0.0.1"), uint16(port))
			all = append(all, processes.Socket{Local: at, Listens: true, Holders: u.listening,
				User: u.Process(u.listening[0]).User})
		}
	}
	return slices.DeleteFunc(all, func(s processes.Socket) bool { return !wanted(s) })
}

func (u *fakeUnits) Process(pid int) processes.Process {
	if p, alone := u.alone[pid]; alone {
		return p
	}
	for _, s := range u.all {
		if s.MainPID == pid && s.script {
			return processes.Process{Program: "/usr/bin/sh", Directory: "/", Arguments: []string{"/bin/sh", s.start},
				User: s.user, Cgroup: s.Cgroup}
		} else if s.MainPID == pid {
			return processes.Process{Program: s.runs, Directory: "/", User: s.user, Cgroup: s.Cgroup}
		}
	}
	return processes.Process{}
}

func (u *fakeUnits) Forgive(_ context.Context, name string) {
	if s := u.all[name]; s != nil {
		s.limit = false
	}
}

func (u *fakeUnits) Act(ctx context.Context, verb host.UnitVerb, name string) error {
	if verb != host.Stop {
		u.Forgive(ctx, name)
	}
	return u.act(verb, name)
}

func (u *fakeUnits) act(verb host.UnitVerb, name string) error {
	u.acted = append(u.acted, string(verb)+" "+name)
	s := u.all[name]
	if filepath.Ext(name) == ".socket" {
		return u.actSocket(verb, s)
	}
	switch {
	case s.refuse && verb != host.Stop:
		s.Active, s.MainPID = "failed", 0
		return errors.New(name + " does not start" + s.why)
	case s.refuse:
		return nil
	case s.limit && verb != host.Stop:
		return errors.New("start of " + name + " failed: start-limit-hit")
	}
	switch verb {
	case host.Stop:
		s.Active, s.MainPID = "inactive", 0
	case host.ReloadOrRestart:
	default:
		s.begin(u)
	}
	return nil
}

// actSocket refuses to start a socket while its service is active, as systemd does, and stops it.
func (u *fakeUnits) actSocket(verb host.UnitVerb, s *unit) error {
	if verb == host.Stop || verb == host.Restart {
		s.Active = "inactive"
	}
	if verb == host.Stop {
		return nil
	}
	for _, service := range s.Triggers {
		if u.all[service].MainPID != 0 {
			return errors.New("Socket service " + service + " already active, refusing.")
		}
	}
	u.clock += time.Millisecond
	s.Active, s.Began, s.BeganAt = "active", u.clock, time.Now()
	return nil
}

func (u *fakeUnits) Journal(_ context.Context, name string, since time.Time) []string {
	s := u.all[name]
	if s.dying != nil && since.Before(s.BeganAt) {
		return s.dying
	}
	return s.logs
}

func (u *fakeUnits) Clock() time.Duration {
	u.clock += time.Millisecond
	return u.clock
}

// app publishes a version of a service with a program and further files.
func (l *lab) app(version string, more ...artifacttest.Files) {
	l.t.Helper()
	files := artifacttest.Files{"version": version, "salt/config/states/top.sls": "base: {}", "bin/app": "#!/bin/sh\n"}
	for _, m := range more {
		for name, content := range m {
			files[name] = content
		}
	}
	l.repo.Release("myapp", version, "testing", files)
}

// did lists the actions on units in a report.
func did(r *report.Report) string {
	var all []string
	for _, u := range r.Units {
		all = append(all, u.Action+" "+u.Unit+" for "+u.Release)
	}
	return strings.Join(all, "; ")
}

func (u *fakeUnits) runs(t *testing.T, name, version string) {
	t.Helper()
	if got := u.version(name); got != version {
		t.Errorf("%s runs %q, want %q", name, got, version)
	}
}

func TestUnitsRunTheReleaseAfterADeployAndARollback(t *testing.T) {
	l, u := runningUnits(t, "1", "app.service")
	l.app("2")
	r := l.expect(exit.OK)
	u.runs(t, "app.service", "2")
	if did(r) != "restarted app.service for myapp 2" || len(r.Health) != 1 || r.Health[0].Test != service.ByProgram {
		t.Errorf("the report has units %q, health %+v", did(r), r.Health)
	}
	if r := l.expect(exit.OK); len(r.Units) != 0 || len(u.acted) != 1 {
		t.Errorf("without a new release: %q", u.acted)
	}
	if _, err := l.Rollback(context.Background()); err != nil {
		t.Fatal(err)
	}
	u.runs(t, "app.service", "1")
	if len(u.acted) != 2 {
		t.Errorf("after two moves of the link, the actions are %q", u.acted)
	}
}

func TestReleaseWithExitingProgramIsRolledBack(t *testing.T) {
	l, u := runningUnits(t, "1", "app.service")
	l.app("2.exits")
	r, err := l.deploy()
	if exit.Code(err) != exit.RolledBack ||
		!strings.Contains(err.Error(), "unit app.service: it is inactive (dead): its program ended with status 0") {
		t.Fatalf("exit code %d, %v", exit.Code(err), err)
	}
	if hint := diag.HintOf(err); hint != "see what it says: journalctl -u app.service [C063]" {
		t.Errorf("the hint is %q", hint)
	}
	u.runs(t, "app.service", "1")
	if did(r) != "restarted app.service for myapp 2.exits; started app.service for myapp 1" {
		t.Errorf("the report has %q", did(r))
	}
	if last := r.Health[len(r.Health)-1]; last.Error != "" || last.Test != service.ByProgram {
		t.Errorf("after the rollback: %+v", last)
	}
}

// TestProbeAnsweredByOldProcessFails checks a probe that is answered by a process of the earlier release.
func TestProbeAnsweredByOldProcessFails(t *testing.T) {
	l := newLab(t)
	l.ProbeAnyRoot = true
	server := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
	defer server.Close()
	probe := artifacttest.Files{recipe.Name: "units: [app.service]\nhealth:\n  deadline: 20s\n  interval: 1ms\n" +
		"  probes:\n  - http: " + server.URL + "\n"}
	l.app("1", probe)
	l.expect(exit.OK)
	u := newUnits(l, "app.service")
	first, err := filepath.EvalSymlinks(l.Layout.Path("/srv/service/current"))
	if err != nil {
		t.Fatal(err)
	}
	u.all["app.service"].start = l.Layout.Inside(first) + "/bin/app"
	l.app("2", probe)
	r, err := l.deploy()
	if exit.Code(err) != exit.RolledBack ||
		!strings.Contains(err.Error(), "unit app.service: its main process 2 runs from 1-") ||
		!strings.Contains(err.Error(), "and not from 2-") {
		t.Fatalf("exit code %d, %v", exit.Code(err), err)
	}
	var hinted interface{ Hint() string }
	if !errors.As(err, &hinted) || !strings.Contains(diag.HintOf(err), "/srv/service/current") {
		t.Errorf("the hint is %q", diag.HintOf(err))
	}
	if r.Health[1].Probe != "http "+server.URL || !strings.Contains(r.Health[1].Error, "do not run the release") {
		t.Errorf("the result of the probe is %+v", r.Health[1])
	}
}

func TestScriptCountsByItsStart(t *testing.T) {
	l, u := runningUnits(t, "1", "app.service")
	u.all["app.service"].script = true
	l.app("2")
	r := l.expect(exit.OK)
	u.runs(t, "app.service", "2")
	if len(r.Health) != 1 || r.Health[0].Test != service.ByStart {
		t.Errorf("health is %+v", r.Health)
	}
}

func TestReleaseNamesItsUnitsInOrder(t *testing.T) {
	l, u := runningUnits(t, "1", "b.service", "a.service", "proxy.service", "other.service")
	u.all["proxy.service"].script = true
	l.app("2", artifacttest.Files{recipe.Name: "units: [units/b.service, proxy.service, a]\nreload: [proxy.service]\n"})
	l.expect(exit.OK)
	if want := []string{"restart b.service", "reload-or-restart proxy.service",
		"restart a.service"}; !slices.Equal(u.acted, want) {
		t.Errorf("the actions are %q, want %q", u.acted, want)
	}
}

func TestStoppedAndMaskedUnitsAreKept(t *testing.T) {
	l, u := runningUnits(t, "1", "job.service", "masked.service", "stopped.service", "failed.service")
	u.all["job.service"].Job, u.all["masked.service"].Masked = true, true
	u.all["stopped.service"].Active, u.all["stopped.service"].MainPID = "inactive", 0
	u.all["failed.service"].Active, u.all["failed.service"].MainPID = "failed", 0
	l.app("2")
	r := l.expect(exit.OK)
	if want := []string{"restart failed.service"}; !slices.Equal(u.acted, want) {
		t.Errorf("the actions are %q, want %q", u.acted, want)
	}
	if !strings.Contains(did(r), "left stopped.service") || !strings.Contains(did(r), "left masked.service") {
		t.Errorf("the report has %q", did(r))
	}
}

// TestUnitThatStartsFromNext has states start a unit from the next release, and then fail.
func TestUnitThatStartsFromNext(t *testing.T) {
	l, u := runningUnits(t, "1")
	s := u.add("app.service", "/srv/service/next/bin/app")
	s.begin(u)
	l.app("2.broken")
	l.engine.during = func(state.Request) {
		l.engine.during = nil
		s.begin(u)
		u.runs(t, "app.service", "2.broken")
	}
	l.expect(exit.RolledBack)
	u.runs(t, "app.service", "1")

	l.app("3")
	l.engine.during = func(state.Request) {
		l.engine.during = nil
		s.begin(u)
	}
	u.acted = nil
	r := l.expect(exit.OK)
	u.runs(t, "app.service", "3")
	if len(u.acted) != 0 || did(r) != "kept app.service for myapp 3" {
		t.Errorf("after states restarted the unit from the release, the actions are %q, %q", u.acted, did(r))
	}
}

func TestInterruptionAfterLinksMovedRestartsUnits(t *testing.T) {
	l, u := runningUnits(t, "1", "app.service")
	l.app("2")
	ctx, stop := context.WithCancel(context.Background())
	defer stop()
	l.Sinks = []report.Sink{&interrupter{"health", stop}}
	if _, err := l.Deploy(ctx, agent.Given{}, false); exit.Code(err) != exit.Interrupted {
		t.Fatal(err)
	}
	l.links("1", "1", "")
	u.runs(t, "app.service", "1")
	l.Sinks = nil
	l.expect(exit.OK)
	u.runs(t, "app.service", "2")
}

// killed is the panic that simulates a kill.
type killed struct{}

// panicking ends a run at a stage with a panic.
type panicking struct {
	interrupter
	at    string
	times int // number of times that the stage is passed first
}

func (k *panicking) Stage(name, _ string) {
	if name == k.at {
		if k.times--; k.times < 0 {
			panic(killed{})
		}
	}
}

// killed runs a deploy that a sink kills.
func (l *lab) killed() {
	l.t.Helper()
	defer func() {
		if l.Sinks = nil; recover() == nil {
			l.t.Fatal("the run was not killed")
		}
	}()
	_, _ = l.deploy()
}

// TestRunKilledBeforeItsUnitsWereRestarted checks that the next run restarts them, after a deploy and after a rollback.
func TestRunKilledBeforeItsUnitsWereRestarted(t *testing.T) {
	artifacttest.Long(t)
	for name, c := range map[string]struct {
		at      string
		times   int
		version string
		want    string
		code    int
	}{
		"during the deploy":               {"units", 0, "2", "2", exit.OK},
		"between units and health":        {"health", 0, "2.exits", "1", exit.RolledBack},
		"during the rollback":             {"units", 1, "2.exits", "1", exit.OK},
		"during the rollback, at its end": {"health", 1, "2.exits", "1", exit.OK},
	} {
		t.Run(name, func(t *testing.T) {
			l, u := runningUnits(t, "1", "app.service")
			l.app(c.version)
			l.Sinks = []report.Sink{&panicking{at: c.at, times: c.times}}
			l.killed()
			l.expect(c.code)
			u.runs(t, "app.service", c.want)
		})
	}
}

func TestStatusShowsReleasesOfUnits(t *testing.T) {
	l, u := runningUnits(t, "1", "app.service")
	l.app("2")
	l.expect(exit.OK)
	look := func() inspect.Status {
		s := mustStatus(t, l)
		if err := l.RunningUnits(context.Background(), &s); err != nil || len(s.Units) != 1 {
			t.Fatalf("units are %+v, %v", s.Units, err)
		}
		return s
	}
	if s := look(); !strings.HasPrefix(s.Units[0].Release, "2-") || !s.Units[0].Deployed || len(s.Drift) != 0 {
		t.Errorf("the units are %+v, drift %q", s.Units, s.Drift)
	}
	previous, err := filepath.EvalSymlinks(l.Layout.Path("/srv/service/previous/bin/app"))
	if err != nil {
		t.Fatal(err)
	}
	u.all["app.service"].runs = previous // a person started it by hand
	if s := look(); !strings.HasPrefix(s.Units[0].Release, "1-") || s.Units[0].Deployed || len(s.Drift) != 1 ||
		!strings.Contains(s.Drift[0], "app.service runs 1-") {
		t.Errorf("the units are %+v, drift %q", s.Units, s.Drift)
	}
}

func TestFailedFirstDeployStopsItsUnits(t *testing.T) {
	t.Parallel()
	l := newLab(t)
	l.ProbeAnyRoot = true
	u := newUnits(l)
	s := u.add("app.service", "/srv/service/current/bin/app")
	s.Active = "failed" // the unit was installed before its program
	l.app("1",
		artifacttest.Files{recipe.Name: "health:\n  interval: 1ms\n  retries: 1\n  probes:\n  - tcp: 127.0.0.1:1\n"})
	l.expect(exit.Failed)
	if want := []string{"restart app.service", "stop app.service"}; !slices.Equal(u.acted, want) {
		t.Errorf("the actions are %q, want %q", u.acted, want)
	}
}

func TestUnitThatIsAbsentFailsTheDeploy(t *testing.T) {
	l, u := runningUnits(t, "1", "app.service")
	l.app("2", artifacttest.Files{recipe.Name: "units: [app.service, gone.service]\n"})
	r, err := l.deploy()
	if exit.Code(err) != exit.RolledBack ||
		!strings.Contains(err.Error(), "gone.service, which corpus.yaml of myapp 2 names under units, is not on this host") {
		t.Fatalf("exit code %d, %v", exit.Code(err), err)
	}
	u.runs(t, "app.service", "1")
	if at := slices.IndexFunc(r.Units, func(u service.Result) bool { return u.Absent }); at < 0 ||
		r.Units[at].Unit != "gone.service" || r.Units[at].Error == "" {
		t.Errorf("the report has the units %+v", r.Units)
	}
}

// TestRollbackWithMissingUnitSucceeds checks that a rollback does not fail because of a missing unit.
func TestRollbackWithMissingUnitSucceeds(t *testing.T) {
	t.Parallel()
	l := newLab(t)
	u := newUnits(l)
	u.add("app.service", "/srv/service/current/bin/app")
	u.add("old.service", "/srv/service/current/bin/app")
	l.app("1", artifacttest.Files{recipe.Name: "units: [app.service, old.service]\n"})
	l.expect(exit.OK)
	l.app("2", artifacttest.Files{recipe.Name: "units: [app.service]\n"})
	l.engine.during = func(state.Request) { delete(u.all, "old.service") }
	l.expect(exit.OK)
	l.engine.during = nil
	r, err := l.Rollback(context.Background())
	if err != nil {
		t.Fatal(err)
	}
	u.runs(t, "app.service", "1")
	if want := "old.service, which corpus.yaml of myapp 1 names under units, is not on " +
		"this host"; !slices.Contains(r.Notes, want) {
		t.Errorf("the notes are %q", r.Notes)
	}
}

// TestUnitFailuresOfBaseQuarantineBase deploys a new base and a new service in one run.
func TestUnitFailuresOfBaseQuarantineBase(t *testing.T) {
	artifacttest.Long(t)
	t.Parallel()
	closed := "health:\n  interval: 1ms\n  retries: 1\n  probes:\n  - tcp: 127.0.0.1:1\n"
	for name, c := range map[string]struct {
		recipe string
		refuse bool
	}{"unit": {"units: [agentd.service]\n", true}, "probe": {closed, false},
		"absent unit": {"units: [gone.service]\n", false}} {
		t.Run(name, func(t *testing.T) {
			l := newLab(t)
			l.ProbeAnyRoot = true
			l.publishBase("1")
			l.app("1")
			l.expect(exit.OK)
			u := newUnits(l, "app.service")
			s := u.add("agentd.service", "/srv/base/current/states/top.sls")
			s.begin(u)
			converges := 0
			l.engine.during = func(state.Request) { // during the rollback the unit starts
				converges++
				u.all["agentd.service"].refuse = c.refuse && converges == 1
			}
			l.app("2")
			l.repo.Release("base", "2", "production", artifacttest.Files{"states/top.sls": "base: {}", recipe.Name: c.recipe})
			r, err := l.deploy()
			if r.Fault == nil || r.Fault.Release == nil || r.Fault.Release.Project != "base" {
				t.Fatalf("exit code %d, %v, fault %+v", exit.Code(err), err, r.Fault)
			}
			l.engine.during, u.all["agentd.service"].refuse = nil, false
			l.expect(exit.OK)
			u.runs(t, "app.service", "2")
		})
	}
}

// TestStartOfFailedUnitIsRetried checks that later runs retry the start until the unit runs the deployed
// release.
func TestStartOfFailedUnitIsRetried(t *testing.T) {
	artifacttest.Long(t)
	for name, fail := range map[string]func(*unit, bool){
		"does not start": func(s *unit, broken bool) { s.refuse = broken },
		"ends at once":   func(s *unit, broken bool) { s.exits = broken },
	} {
		t.Run(name, func(t *testing.T) {
			l, u := runningUnits(t, "1", "app.service", "other.service")
			l.app("2")
			l.engine.during = func(state.Request) { fail(u.all["app.service"], true) }
			l.expect(exit.RollbackFailed)
			l.engine.during = nil
			u.runs(t, "app.service", "")
			u.runs(t, "other.service", "1")

			for range 2 {
				u.acted = nil
				if _, err := l.deploy(); exit.Code(err) == exit.OK {
					t.Error("the unit does not run, and the run reports no problem")
				}
			}
			if want := []string{"restart app.service"}; !slices.Equal(u.acted, want) {
				t.Errorf("the actions of a tick are %q, want %q", u.acted, want)
			}
			fail(u.all["app.service"], false)
			r := l.expect(exit.OK)
			u.runs(t, "app.service", "1")
			if !slices.ContainsFunc(r.Notes, func(n string) bool {
				return strings.Contains(n, "app.service did not run what is deployed")
			}) {
				t.Errorf("the notes are %q", r.Notes)
			}
			u.acted = nil
			if l.expect(exit.OK); len(u.acted) != 0 {
				t.Errorf("once the unit runs, the actions of a tick are %q", u.acted)
			}
		})
	}
}

// TestProbeAnsweredOutsideUnitsIsReported has a process that a person started answer the probe; the report names it.
func TestProbeAnsweredOutsideUnitsIsReported(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
	defer server.Close()
	for kind, target := range map[string]string{"http": server.URL, "tcp": strings.TrimPrefix(server.URL, "http://")} {
		t.Run(kind, func(t *testing.T) {
			l := newLab(t)
			l.ProbeAnyRoot = true
			probe :=
				artifacttest.Files{recipe.Name: "units: []\nhealth:\n  interval: 1ms\n  retries: 1\n  probes:\n  - " + kind +
					": " + target + "\n"}
			l.app("1", probe)
			l.expect(exit.OK)
			first, err := filepath.EvalSymlinks(l.Layout.Path("/srv/service/current/bin/app"))
			if err != nil {
				t.Fatal(err)
			}
			u := newUnits(l)
			u.listening, u.alone = []int{812}, map[int]processes.Process{812: {Program: first, Directory: "/"}}
			l.app("2", probe)
			_, err = l.deploy()
			if exit.Code(err) != exit.RolledBack ||
				!strings.Contains(err.Error(), "process 812 ("+first+") of user root listens on 127.0.0.1:") ||
				!strings.Contains(err.Error(), "runs from myapp 1-") {
				t.Fatalf("exit code %d, %v", exit.Code(err), err)
			}
			if got := l.inQuarantine(); len(got) != 0 {
				t.Errorf("the quarantine has %v", got)
			}
			if hint := diag.HintOf(err); !strings.Contains(hint, "kill 812") {
				t.Errorf("the hint is %q", hint)
			}
			u.alone[812] = processes.Process{Program: "/usr/sbin/proxy", Directory: "/"}
			l.app("3", probe)
			r := l.expect(exit.OK)
			if len(r.Health) != 1 || r.Health[0].Answered != "process 812 (/usr/sbin/proxy)" {
				t.Errorf("health is %+v", r.Health)
			}
		})
	}
}

// bootUnits is fakeUnits with a known boot ID.
type bootUnits struct{ *fakeUnits }

func (bootUnits) BootID() string { return "boot-1" }

// TestFastClockDuringDeploy has the clock set back after a deploy: the release that an interpreter runs is not
// determined by the wall clock.
func TestFastClockDuringDeploy(t *testing.T) {
	artifacttest.Long(t)
	t.Parallel()
	for name, known := range map[string]bool{"the boot is known": true, "by an earlier agent": false} {
		t.Run(name, func(t *testing.T) {
			l, u := runningUnits(t, "1", "app.service")
			u.all["app.service"].script = true
			if known {
				l.Units = bootUnits{u}
			}
			ahead := 240 * time.Hour
			l.Now = func() time.Time { return time.Now().Add(ahead) }
			l.app("2")
			l.expect(exit.OK)
			l.Now = nil
			for range 2 {
				if r := l.expect(exit.OK); len(r.Unserved) > 0 {
					t.Errorf("the next run reports %q", r.Unserved)
				}
				s := mustStatus(t, l)
				if err := l.RunningUnits(t.Context(), &s); err != nil || len(s.Drift) != 0 || !s.Units[0].Deployed {
					t.Errorf("units %+v, drift %q, %v", s.Units, s.Drift, err)
				}
				u.all["app.service"].begin(u) // a person restarts it
			}
		})
	}
}

// TestSlowClockDuringDeploy checks a unit that was not restarted after the links moved.
func TestSlowClockDuringDeploy(t *testing.T) {
	t.Parallel()
	l, u := runningUnits(t, "1", "app.service")
	app := u.all["app.service"]
	app.script = true
	l.Units = bootUnits{u}
	l.Now = func() time.Time { return time.Now().Add(-30 * time.Minute) }
	l.app("2")
	began, beganAt := app.Began, app.BeganAt
	l.expect(exit.OK)
	l.Now = nil
	app.Began, app.BeganAt = began, beganAt
	s := mustStatus(t, l)
	if err := l.RunningUnits(t.Context(), &s); err != nil || len(s.Units) != 1 || s.Units[0].Deployed {
		t.Errorf("units %+v, %v", s.Units, err)
	}
}
