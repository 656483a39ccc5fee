package agent_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/corpus-agent/corpus-agent/agent"
	"github.com/corpus-agent/corpus-agent/agent/exit"
	"github.com/corpus-agent/corpus-agent/agent/report"
	"github.com/corpus-agent/corpus-agent/agent/service"
	"github.com/corpus-agent/corpus-agent/artifact/artifacttest"
	"github.com/corpus-agent/corpus-agent/artifact/recipe"
	"github.com/corpus-agent/corpus-agent/state"
	"github.com/corpus-agent/corpus-agent/state/host"
)

// statesUnits acts on the units of a test as states do, without a reset of failed units.
type statesUnits struct {
	host.Units
	u *fakeUnits
}

func (s statesUnits) Allowed(string) error { return nil }

func (s statesUnits) Unit(_ context.Context, name, _ string) (host.Unit, error) {
	if unit := s.u.all[name]; unit != nil {
		return unit.Unit, nil
	}
	return host.Unit{Name: name}, nil
}

func (s statesUnits) Act(_ context.Context, verb host.UnitVerb, name string, _ bool) error {
	s.u.acted = append(s.u.acted, "state "+string(verb)+" "+name)
	return s.u.act(verb, name)
}

func (s statesUnits) Stays(context.Context, string, time.Time) error { return nil }

// running has each converge apply service.running to a unit.
func (l *lab) running(u *fakeUnits, unit string) {
	l.StateUnits = statesUnits{u: u}
	var failure error
	l.engine.during = func(r state.Request) {
		failure = func() error {
			ctx := context.Background()
			is, err := r.Host.Units.Unit(ctx, unit, "")
			if err != nil || is.Running() {
				return err
			}
			if err := r.Host.Units.Act(ctx, host.Start, unit, true); err != nil {
				return err
			}
			if is, err = r.Host.Units.Unit(ctx, unit, ""); err == nil && !is.Running() {
				err = fmt.Errorf("%s was started, and is %s now", unit, is.Active)
			}
			return err
		}()
	}
	l.engine.fails = func(string) error { return failure }
}

// TestUnitOfAStateThatEndsLater deploys a release whose state starts a unit that is not of the release, and whose
// program ends after the state has succeeded. The deploy is rolled back.
func TestUnitOfAStateThatEndsLater(t *testing.T) {
	for dies, want := range map[string]string{"failed": "now it is failed (failed): its program ended with status 1",
		"restarts": "the init system started another", "": ""} {
		t.Run(dies, func(t *testing.T) {
			t.Parallel()
			l := newNativeLab(t)
			u := newUnits(l)
			program := l.Layout.Path("/usr/bin/web")
			if err := errors.Join(os.MkdirAll(filepath.Dir(program), 0o755), os.WriteFile(program, nil, 0o755)); err != nil {
				t.Fatal(err)
			}
			u.add("web.service", "/usr/bin/web").dies = dies
			u.all["web.service"].logs = []string{"bind: address already in use"}
			l.StateUnits = statesUnits{u: u}
			l.states("1", goodStates)
			l.expect(exit.OK)
			l.states("2", goodStates+"web.service:\n  service.running: []\n")
			if want == "" {
				l.expect(exit.OK)
				return
			}
			r := l.expect(exit.RolledBack)
			if !strings.Contains(r.Error, "unit web.service") || !strings.Contains(r.Error, want) ||
				!strings.Contains(r.Error, "bind: address already in use") || r.Fault.Of != report.FaultOfRelease {
				t.Errorf("the fault is %+v: %s", r.Fault, r.Error)
			}
		})
	}
}

// TestReleaseThatCrashesUsesUpTheStartLimit checks that the rollback succeeds, and that the hooks of the good release
// run.
func TestReleaseThatCrashesUsesUpTheStartLimit(t *testing.T) {
	l, u := runningUnits(t, "1", "app.service")
	l.running(u, "app.service")
	l.app("2.crashes")
	r := l.expect(exit.RolledBack)
	u.runs(t, "app.service", "1")
	l.links("1", "1", "")
	if last := r.Health[len(r.Health)-1]; last.Error != "" {
		t.Errorf("after the rollback: %+v", last)
	}
}

// TestGoodReleaseReplacesCrashingOne checks that a deploy succeeds although the state starts the crashing release
// before the links move.
func TestGoodReleaseReplacesCrashingOne(t *testing.T) {
	t.Parallel()
	for name, broken := range map[string]string{"start limit": "1.crashes", "ends at once": "1.exits"} {
		t.Run(name, func(t *testing.T) {
			l := newLab(t)
			l.app(broken)
			l.expect(exit.OK) // before the host has the unit
			u := newUnits(l, "app.service")
			l.running(u, "app.service")
			l.app("2")
			r := l.expect(exit.OK)
			u.runs(t, "app.service", "2")
			noted(t, r, "a state could not start app.service from the release before")
			if did(r) != "started app.service for myapp 2" {
				t.Errorf("the report has %q", did(r))
			}
		})
	}
}

// TestFailedStartOfOtherUnitFailsTheRun checks a unit that does not belong to the release, and a run that moves no
// link.
func TestFailedStartOfOtherUnitFailsTheRun(t *testing.T) {
	l, u := runningUnits(t, "1", "app.service")
	other := u.add("other.service", "/usr/bin/other")
	other.Active, other.refuse = "inactive", true
	l.running(u, "other.service")
	l.app("2")
	if _, err := l.deploy(); err == nil || !strings.Contains(err.Error(), "other.service does not start") {
		t.Errorf("a unit of the host does not start: %v", err)
	}
	l.engine.fails, l.engine.during = nil, nil
	l.expect(exit.OK)
	l.running(u, "app.service")
	u.all["app.service"].refuse, u.all["app.service"].Active = true, "inactive"
	if _, err := l.deploy(); err == nil || !strings.Contains(err.Error(), "app.service does not start") {
		t.Errorf("a tick without a new release: %v", err)
	}
}

// TestFailedStartOfAJobCounts checks a unit of the release that is not started again after the links have moved.
func TestFailedStartOfAJobCounts(t *testing.T) {
	l, u := runningUnits(t, "1", "job.service")
	job := u.all["job.service"]
	job.Job, job.refuse, job.Active, job.MainPID = true, true, "inactive", 0
	l.running(u, "job.service")
	l.app("2")
	if _, err := l.deploy(); err == nil || !strings.Contains(err.Error(), "job.service does not start") {
		t.Errorf("a job that failed: %v", err)
	}
}

// TestNewUnitThatOnlyTheNewReleaseCanStart has a state start a program that the current release lacks.
func TestNewUnitThatOnlyTheNewReleaseCanStart(t *testing.T) {
	l, u := runningUnits(t, "1")
	u.add("worker.service", "/srv/service/current/bin/worker")
	l.running(u, "worker.service")
	l.app("2", artifacttest.Files{"bin/worker": "#!/bin/sh\n"})
	l.expect(exit.OK)
	u.runs(t, "worker.service", "2")
}

// TestInterruptedRunRestartsScripts rolls an interpreter back, whose process gives no evidence of its release.
func TestInterruptedRunRestartsScripts(t *testing.T) {
	l, u := runningUnits(t, "1", "app.service")
	u.all["app.service"].script = true
	l.app("2")
	ctx, stop := context.WithCancel(context.Background())
	defer stop()
	l.Sinks = []report.Sink{&interrupter{"health", stop}}
	if _, err := l.Deploy(ctx, agent.Given{}, false); exit.Code(err) != exit.Interrupted {
		t.Fatal(err)
	}
	l.links("1", "1", "")
	u.runs(t, "app.service", "1")
	s := mustStatus(t, l)
	if err := l.RunningUnits(context.Background(), &s); err != nil || len(s.Drift) != 0 ||
		!strings.HasPrefix(s.Units[0].Release, "1-") {
		t.Errorf("units %+v, drift %q, %v", s.Units, s.Drift, err)
	}
}

// TestStatusAfterInterruptionShowsTargetOfCurrent checks that status shows the target of current, and not the deployed
// release.
func TestStatusAfterInterruptionShowsTargetOfCurrent(t *testing.T) {
	l, u := runningUnits(t, "1", "app.service")
	u.all["app.service"].script = true
	l.app("2")
	l.Sinks = []report.Sink{&panicking{at: "health"}}
	l.killed()
	u.runs(t, "app.service", "2")
	s := mustStatus(t, l)
	if err := l.RunningUnits(context.Background(), &s); err != nil || !strings.HasPrefix(s.Units[0].Release, "2-") ||
		s.Units[0].Deployed {
		t.Errorf("units %+v, %v", s.Units, err)
	}
	if len(s.Drift) != 1 || !strings.Contains(s.Drift[0], "app.service runs 2-") {
		t.Errorf("drift %q", s.Drift)
	}
}

// TestRollbackToABrokenPairReturns rolls back by hand to a release that does not start any more.
func TestRollbackToABrokenPairReturns(t *testing.T) {
	t.Parallel()
	l := newLab(t)
	l.app("1.crashes")
	l.expect(exit.OK)
	l.app("2")
	l.expect(exit.OK)
	u := newUnits(l, "app.service")
	l.running(u, "app.service")
	_, err := l.RollbackConverge(context.Background(), "", false)
	if exit.Code(err) != exit.RolledBack {
		t.Fatalf("exit code %d, %v", exit.Code(err), err)
	}
	u.runs(t, "app.service", "2")
	l.links("2", "2", "1.crashes")
	s := mustStatus(t, l)
	if s.Deployed == nil || s.Deployed.Service.Version != "2" || len(s.Quarantined) != 1 ||
		s.Quarantined[0].Release.Version != "1.crashes" {
		t.Errorf("deployed %v, quarantined %+v", s.Deployed, s.Quarantined)
	}
	l.expect(exit.OK)
	u.runs(t, "app.service", "2")
}

// TestRollbackRunsHooksAfterFailedStates checks that the hooks and probes of the good release run.
func TestRollbackRunsHooksAfterFailedStates(t *testing.T) {
	t.Parallel()
	l := newLab(t)
	hook := artifacttest.Files{"hooks/post-release.d/10-say": "#!/bin/sh\n", recipe.Name: "units: []\n"}
	l.ProbeAnyRoot = true
	l.app("1", hook)
	l.expect(exit.OK)
	l.app("2.broken", hook)
	l.engine.fails = func(string) error { return exit.WithCode(exit.Failed, fmt.Errorf("a state failed")) }
	r := l.expect(exit.RollbackFailed)
	if !slices.ContainsFunc(r.Notes, func(n string) bool {
		return strings.Contains(n, "the post-release hooks were skipped")
	}) {
		t.Errorf("the rollback did not reach the post-release hooks: %q", r.Notes)
	}
}

// TestProgramOfEarlierReleaseThatExitsIsRestarted has a state start the program of the earlier release, which exits
// with status 0 while other states run. The unit is started after the links have moved, and has to run the new release.
func TestProgramOfEarlierReleaseThatExitsIsRestarted(t *testing.T) {
	artifacttest.Long(t)
	t.Parallel()
	for name, test := range map[string]struct {
		version string
		code    int
		runs    string
	}{"good": {"2", exit.OK, "2"}, "broken": {"2.exits", exit.RolledBack, "1"}} {
		t.Run(name, func(t *testing.T) {
			l, u := runningUnits(t, "1", "app.service")
			app := u.all["app.service"]
			app.Active, app.MainPID = "failed", 0
			l.running(u, "app.service")
			start := l.engine.during
			l.engine.during = func(r state.Request) {
				start(r)
				if l.engine.last() == "+"+test.version {
					app.Active, app.Sub, app.Result, app.MainPID = "inactive", "dead", "success", 0
				}
			}
			l.app(test.version)
			r := l.expect(test.code)
			u.runs(t, "app.service", test.runs)
			if len(r.Units) == 0 || r.Units[0].Action != service.Started || r.Health[0].Probe != "unit app.service" {
				t.Errorf("the report has units %q, health %+v", did(r), r.Health)
			}
		})
	}
}
