package agent_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/corpus-agent/corpus-agent/agent"
	"github.com/corpus-agent/corpus-agent/agent/exit"
	"github.com/corpus-agent/corpus-agent/agent/procedure"
	"github.com/corpus-agent/corpus-agent/agent/report"
	"github.com/corpus-agent/corpus-agent/artifact/artifacttest"
	"github.com/corpus-agent/corpus-agent/state"
)

// proved returns the ID of the run that proved the pair healthy according to a report; "" for none.
func proved(r *report.Report) string {
	if r.Proven == nil || r.Left == nil || !r.Proven.Pair.Same(*r.Left) {
		return ""
	}
	return r.Proven.Run
}

// TestOnlyRunsThatCheckedHealthAreProof checks the reports of ticks after the service ended at several times after its
// deploy.
func TestOnlyRunsThatCheckedHealthAreProof(t *testing.T) {
	t.Parallel()
	l := newLab(t)
	u := newUnits(l, "app.service")
	l.app("1")
	l.expect(exit.OK)
	u.all["app.service"].begin(u)
	l.app("2")
	first := l.expect(exit.OK)
	if proved(first) != first.ID {
		t.Errorf("the deploy is proven by %q, want its own run %s", proved(first), first.ID)
	}
	tick := l.expect(exit.OK)
	if proved(tick) != first.ID || len(tick.Unserved) > 0 {
		t.Errorf("a tick without probes is proven by %q, want the deploy %s; unserved: %v", proved(tick), first.ID,
			tick.Unserved)
	}
	u.all["app.service"].Restarts++
	if tick = l.expect(exit.OK); len(tick.Unserved) != 1 ||
		!strings.Contains(tick.Unserved[0], "ended once since run "+first.ID) {
		t.Errorf("after a crash of the unit, a tick reports %q", tick.Unserved)
	}
	noted(t, tick, "app.service ended once")
	u.all["app.service"].Active, u.all["app.service"].MainPID = "failed", 0
	noted(t, l.expect(exit.OK), "app.service does not run myapp 2")
	converged, err := l.Converge(context.Background(), false)
	if err != nil {
		t.Fatal(err)
	}
	noted(t, converged, "app.service does not run myapp 2")
}

// TestAUnitThatStatesStartAgainIsUnproven has a service end after its deploy, and after each tick whose states start
// it.
func TestAUnitThatStatesStartAgainIsUnproven(t *testing.T) {
	t.Parallel()
	l, u := runningUnits(t, "1", "app.service")
	app := u.all["app.service"]
	l.app("2")
	first := l.expect(exit.OK)
	l.engine.during = func(state.Request) {
		if app.Active == "failed" {
			app.begin(u)
		}
	}
	unproven := func(r *report.Report) {
		t.Helper()
		if len(r.Unserved) != 1 || !strings.Contains(r.Unserved[0], "app.service was started again") ||
			!strings.Contains(r.Unserved[0], "--only health") {
			t.Errorf("for a unit that a state started, the report has %q", r.Unserved)
		}
	}
	for range 2 {
		app.Active, app.Sub, app.MainPID = "failed", "failed", 0
		unproven(l.expect(exit.OK))
	}
	unproven(l.expect(exit.OK)) // it runs, and no run has proven it since
	only, err := procedure.ParseOnly("health")
	if err != nil {
		t.Fatal(err)
	}
	proof, err := l.Deploy(context.Background(), agent.Given{Only: only}, false)
	if err != nil || proved(proof) != proof.ID || len(proof.Unserved) > 0 {
		t.Errorf("a run that checks units and probes is proven by %q, want %s; unserved: %q; %v", proved(proof), first.ID,
			proof.Unserved, err)
	}
	if tick := l.expect(exit.OK); len(tick.Unserved) > 0 {
		t.Errorf("after a new proof, the report has %q", tick.Unserved)
	}
}

// TestStartingUnitStaysProven runs a tick before the init system has started the unit after a boot, or during the
// start.
func TestStartingUnitStaysProven(t *testing.T) {
	artifacttest.Long(t)
	t.Parallel()
	for name, down := range map[string]func(s *unit){
		"the host booted": func(s *unit) { s.Active, s.Sub, s.MainPID, s.Began = "inactive", "dead", 0, 0 },
		"starting":        func(s *unit) { s.Active, s.Sub, s.MainPID = "activating", "start", 0 },
	} {
		t.Run(name, func(t *testing.T) {
			l, u := runningUnits(t, "1", "app.service")
			l.app("2")
			l.expect(exit.OK)
			l.engine.during = func(state.Request) { u.all["app.service"].begin(u) }
			down(u.all["app.service"])
			if tick := l.expect(exit.OK); len(tick.Unserved) > 0 {
				t.Errorf("the tick reports %q", tick.Unserved)
			}
		})
	}
}

// TestProofBelowAnotherRootIsMarked also checks a tree that has become a host, as an image does to which a release was
// deployed before its first boot.
func TestProofBelowAnotherRootIsMarked(t *testing.T) {
	t.Parallel()
	l := newLab(t)
	l.app("1")
	if r := l.expect(exit.OK); !r.OtherRoot || r.Proven == nil || !r.Proven.OtherRoot {
		t.Errorf("a run below another root reports other_root %v and the proof %+v", r.OtherRoot, r.Proven)
	}
}

// TestManuallyRolledBackReleaseIsInEveryReport rolls back by hand, and checks the next tick.
func TestManuallyRolledBackReleaseIsInEveryReport(t *testing.T) {
	t.Parallel()
	l := newLab(t)
	newUnits(l, "app.service")
	l.app("1")
	l.expect(exit.OK)
	l.app("2")
	l.expect(exit.OK)
	back, err := l.Rollback(context.Background())
	if err != nil {
		t.Fatal(err)
	}
	if back.Leaves == nil || back.Leaves.Service.Version != "2" || proved(back) != back.ID {
		t.Errorf("the rollback has left %v and is proven by %q", back.Leaves, proved(back))
	}
	tick := l.expect(exit.OK)
	if len(tick.Quarantined) != 1 || tick.Quarantined[0].Release.Version != "2" ||
		tick.Quarantined[0].Reason != "rolled back by hand" {
		t.Errorf("the tick after it has the quarantine %+v", tick.Quarantined)
	}
}

// TestTimerStoppedByShutdownIsNotABrokenAgent deploys by hand while systemd stops the timer in a shutdown.
func TestTimerStoppedByShutdownIsNotABrokenAgent(t *testing.T) {
	for name, c := range map[string]struct {
		after string
		code  int
	}{
		"the deploy continues": {"", exit.OK},
		"a state fails":        {"breaks:\n  test.fail_without_changes: []\n", exit.Interrupted},
	} {
		t.Run(name, func(t *testing.T) {
			l, _ := withProgram(t, "1")
			systemd(l, strings.ReplaceAll(unitsAnswer, ownProgram, l.Layout.Path(ownProgram)))
			l.states("1", "nothing:\n  test.nop: []\n")
			l.expect(exit.OK)
			l.states("2", "/timer:\n  file.managed:\n    - contents: enabled inactive loaded\n"+c.after)
			l.Stopping = func(context.Context) bool { return true }
			r := l.expect(c.code)
			if strings.Contains(r.Error+strings.Join(r.Notes, " "), "does not work") || len(l.quarantined()) > 0 {
				t.Errorf("the run has the error %q and the notes %q; the quarantine has %v", r.Error, r.Notes, l.quarantined())
			}
		})
	}
}

// TestRollbackSelectsNewestKeptRelease rolls back twice, and past a release that was removed.
func TestRollbackSelectsNewestKeptRelease(t *testing.T) {
	t.Parallel()
	l := newLab(t)
	for _, version := range []string{"1", "2", "3"} {
		l.publish(version)
		l.expect(exit.OK)
	}
	for _, want := range []string{"2", "1"} {
		if s := mustStatus(t, l); s.Previous == nil || s.Previous.Service.Version != want {
			t.Errorf("before the rollback to %[2]s, status has the previous pair %[1]v", s.Previous, want)
		}
		if _, err := l.Rollback(context.Background()); err != nil {
			t.Fatalf("the rollback to %s: %v", want, err)
		}
		if got := l.version("service/current"); got != want {
			t.Errorf("current is %s, want %s", got, want)
		}
		previous := ""
		if p := mustStatus(t, l).Previous; p != nil {
			previous = p.Service.Version
		}
		if got := l.version("service/previous"); got != previous {
			t.Errorf("after the rollback to %s the link previous is %q, and status has %q", want, got, previous)
		}
	}
	before := mustStatus(t, l).LastRun
	_, err := l.Rollback(context.Background())
	if exit.Code(err) != exit.Usage {
		t.Errorf("a rollback without an earlier release ends with %v", err)
	}
	if last := mustStatus(t, l).LastRun; last.ID == before.ID || last.Outcome != report.Refused {
		t.Errorf("a refused rollback is %q", last.Outcome)
	}
}

// TestWhyNamesReleaseOfChannel quarantines the release of the channel.
func TestWhyNamesReleaseOfChannel(t *testing.T) {
	t.Parallel()
	l := newLab(t)
	l.publish("1")
	l.expect(exit.OK)
	l.publish("2-broken")
	l.expect(exit.RolledBack)
	for range 2 {
		w, err := l.Why()
		if err != nil {
			t.Fatal(err)
		}
		if !strings.Contains(w.Reason, "2-broken") || strings.Contains(w.Reason, "it is what") {
			t.Errorf("why has the reason %q, although the channel has 2-broken", w.Reason)
		}
		l.expect(exit.OK)
	}
	if _, err := l.Rollback(context.Background()); err == nil {
		t.Error("a rollback without an earlier release succeeded")
	}
	if w, err := l.Why(); err != nil || !strings.Contains(w.Reason, "2-broken") {
		t.Errorf("after a refused command why has the reason %q, %v", w.Reason, err)
	}
}

// TestWhyNamesReleaseOfChannelAfterRollbacks rolls back twice from the release of the channel.
func TestWhyNamesReleaseOfChannelAfterRollbacks(t *testing.T) {
	t.Parallel()
	l := newLab(t)
	for _, version := range []string{"1", "2", "3"} {
		l.publish(version)
		l.expect(exit.OK)
	}
	for _, left := range []string{"3", "2"} {
		if _, err := l.Rollback(context.Background()); err != nil {
			t.Fatal(err)
		}
		w, err := l.Why()
		if err != nil || !strings.Contains(w.Reason, "named myapp 3 when") ||
			!strings.Contains(w.Reason, "myapp 3 is quarantined") {
			t.Errorf("after the rollback from %s, why has the reason %q, %v", left, w.Reason, err)
		}
		if advice := strings.Join(w.Next, "\n"); !strings.Contains(advice, "corpus-agent unquarantine 3") {
			t.Errorf("after the rollback from %s, why has the advice %q", left, advice)
		}
	}
}

// TestWhyAfterAnInterruptedDeploy interrupts the deploy of the channel's release.
func TestWhyAfterAnInterruptedDeploy(t *testing.T) {
	t.Parallel()
	l := newLab(t)
	l.publish("1")
	l.expect(exit.OK)
	l.publish("2-broken")
	l.Stopping = func(context.Context) bool { return true }
	l.expect(exit.Interrupted)
	l.Stopping = nil
	if w, err := l.Why(); err != nil || !strings.Contains(w.Reason, "2-broken") ||
		!strings.Contains(w.Reason, "interrupted") {
		t.Errorf("after an interrupted deploy why has the reason %q, %v", w.Reason, err)
	}
}

// TestStartedUnitNoteIsRepeatedWhileValid ends the started process in several ways: no later report has the unit as
// started by states.
func TestStartedUnitNoteIsRepeatedWhileValid(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		since func(u *fakeUnits, app *unit)
		want  string // in the report of the next run; "" for no unit in it
	}{
		"nothing":               {func(*fakeUnits, *unit) {}, "was started again by the states"},
		"restarted by a person": {func(u *fakeUnits, app *unit) { u.clock += time.Second; app.begin(u) }, ""},
		"stopped": {func(_ *fakeUnits, app *unit) { app.Active, app.Sub, app.MainPID = "inactive", "dead", 0 },
			"app.service does not run myapp 2: it is inactive"},
		"unit removed": {func(u *fakeUnits, _ *unit) { delete(u.all, "app.service") }, ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			l, u := runningUnits(t, "1", "app.service")
			app := u.all["app.service"]
			l.app("2")
			l.expect(exit.OK)
			l.engine.during = func(state.Request) { app.begin(u) }
			app.Active, app.Sub, app.MainPID = "failed", "failed", 0
			if r := l.expect(exit.OK); len(r.Unserved) != 1 ||
				!strings.Contains(r.Unserved[0], "was started again by the states of run "+r.ID) {
				t.Fatalf("for a unit that a state started, the report has %q", r.Unserved)
			}
			l.engine.during = nil
			c.since(u, app)
			for range 2 {
				r := l.expect(exit.OK)
				unserved := strings.Join(r.Unserved, "\n")
				if len(r.Unserved) > 1 || !strings.Contains(unserved, c.want) || c.want == "" && unserved != "" {
					t.Errorf("the report has %q, want %q", r.Unserved, c.want)
				}
			}
		})
	}
}

// TestStartedUnitNoteNamesLastRun checks that the note does not name an earlier run whose process has ended.
func TestStartedUnitNoteNamesLastRun(t *testing.T) {
	t.Parallel()
	l, u := runningUnits(t, "1", "app.service")
	app := u.all["app.service"]
	l.app("2")
	l.expect(exit.OK)
	l.engine.during = func(state.Request) { app.begin(u) }
	for range 2 {
		app.Active, app.Sub, app.MainPID = "failed", "failed", 0
		if r := l.expect(exit.OK); len(r.Unserved) != 1 || !strings.Contains(r.Unserved[0], "by the states of run "+r.ID) {
			t.Errorf("the report of run %s has %q", r.ID, r.Unserved)
		}
	}
}
