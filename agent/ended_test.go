package agent_test

import (
	"strings"
	"testing"

	"github.com/corpus-agent/corpus-agent/agent/exit"
	"github.com/corpus-agent/corpus-agent/artifact/artifacttest"
	"github.com/corpus-agent/corpus-agent/state"
)

// ends has the program of a unit exit with status 0: by itself, or because the unit was stopped.
func (u *fakeUnits) ends(name string, stopped bool) {
	s := u.all[name]
	s.Active, s.Sub, s.Result, s.MainPID = "inactive", "dead", "success", 0
	s.Ended = u.Clock()
	s.Left = u.Clock()
	if stopped {
		s.Ended, s.Left = s.Left, s.Ended
	}
}

// TestUnitThatExitsBeforeLinksMoveIsStarted checks a unit that exits with status 0 during the run, without a state that
// started it. The agent starts it if it ran before the run, and it has to run the new release. A unit that was stopped,
// or that a timer starts, is not started.
func TestUnitThatExitsBeforeLinksMoveIsStarted(t *testing.T) {
	artifacttest.Long(t)
	for name, c := range map[string]struct {
		version string
		during  func(u *fakeUnits)
		code    int
		runs    string
		says    string
	}{
		"by itself": {"2", func(u *fakeUnits) { u.ends("app.service", false) }, exit.OK, "2",
			"started app.service for myapp 2"},
		"by itself, and the new release as well": {"2.exits", func(u *fakeUnits) { u.ends("app.service", false) },
			exit.RolledBack, "1", "started app.service for myapp 2.exits; started app.service for myapp 1"},
		"by itself, after a restart of this run": {"2", func(u *fakeUnits) {
			u.all["app.service"].begin(u)
			u.ends("app.service", false)
		}, exit.OK, "2", "started app.service for myapp 2"},
		"stopped": {"2", func(u *fakeUnits) { u.ends("app.service", true) }, exit.OK, "",
			"left app.service for myapp 2"},
		"with a timer": {"2", func(u *fakeUnits) {
			u.all["app.service"].Awaited = true
			u.ends("app.service", false)
		}, exit.OK, "", "left app.service for myapp 2"},
	} {
		t.Run(name, func(t *testing.T) {
			l, u := runningUnits(t, "1", "app.service")
			l.app(c.version)
			l.engine.during = func(state.Request) { l.engine.during = nil; c.during(u) }
			r, err := l.deploy()
			if exit.Code(err) != c.code {
				t.Fatalf("exit code %d, %v", exit.Code(err), err)
			}
			u.runs(t, "app.service", c.runs)
			if !strings.Contains(did(r), c.says) {
				t.Errorf("the report has %q, want %q", did(r), c.says)
			}
		})
	}
}

// TestUnitThatExitedBeforeRunStaysStopped checks a unit that was not active when the run began.
func TestUnitThatExitedBeforeRunStaysStopped(t *testing.T) {
	l, u := runningUnits(t, "1", "app.service")
	u.ends("app.service", false)
	l.app("2")
	r := l.expect(exit.OK)
	u.runs(t, "app.service", "")
	if !strings.Contains(did(r), "left app.service") {
		t.Errorf("the report has %q", did(r))
	}
}
