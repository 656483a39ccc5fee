package agent_test

import (
	"context"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/corpus-agent/corpus-agent/agent/exit"
)

// changeLink changes current as a person does.
func changeLink(t *testing.T, l *lab, to string) {
	t.Helper()
	time.Sleep(20 * time.Millisecond) // timestamps of files are less precise than clocks
	current := l.Layout.Path("/srv/projects/myapp/current")
	if err := os.Remove(current); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(to, current); err != nil {
		t.Fatal(err)
	}
	time.Sleep(20 * time.Millisecond)
}

// before returns the target of links to the release before the deployed one.
func before(t *testing.T, l *lab) string {
	t.Helper()
	target, err := os.Readlink(l.Layout.Path("/srv/projects/myapp/previous"))
	if err != nil {
		t.Fatal(err)
	}
	return target
}

// TestUnitsThatFollowedAChangedLinkAreRestarted has a person change current and restart some of the units.
func TestUnitsThatFollowedAChangedLinkAreRestarted(t *testing.T) {
	for name, script := range map[string]bool{"a program": false, "a script": true} {
		t.Run(name, func(t *testing.T) {
			l, u := runningUnits(t, "1", "app.service", "other.service")
			u.all["app.service"].script, u.all["other.service"].script = script, script
			l.app("2")
			l.expect(exit.OK)
			changeLink(t, l, before(t, l))
			u.all["app.service"].begin(u)
			u.runs(t, "app.service", "1")
			u.acted = nil
			r := l.expect(exit.OK)
			u.runs(t, "app.service", "2")
			u.runs(t, "other.service", "2")
			if want := []string{"restart app.service"}; !slices.Equal(u.acted, want) {
				t.Errorf("the run did %q to the unit, want %q", u.acted, want)
			}
			noted(t, r, "app.service did not run myapp 2")
			if r.Proven == nil || len(r.Proven.Units) != 2 || len(r.Unserved) != 0 {
				t.Errorf("the report has the proof %+v and the unserved units %q", r.Proven, r.Unserved)
			}
			if l.expect(exit.OK); len(u.acted) != 1 {
				t.Errorf("the next tick did %q to the unit", u.acted[1:])
			}
		})
	}
}

// TestProofKeepsUnitsAfterRefetch removes the release, and then has a unit run another one.
func TestProofKeepsUnitsAfterRefetch(t *testing.T) {
	l, u := runningUnits(t, "1", "app.service")
	l.app("2")
	l.expect(exit.OK)
	real, err := filepath.EvalSymlinks(l.Layout.Path("/srv/projects/myapp/current"))
	if err != nil {
		t.Fatal(err)
	}
	if err := os.RemoveAll(real); err != nil {
		t.Fatal(err)
	}
	if r := l.expect(exit.OK); r.Proven == nil || len(r.Proven.Units) != 1 {
		t.Errorf("after the release was fetched again the proof is %+v", r.Proven)
	}
	u.all["app.service"].runs = filepath.Join(filepath.Dir(real), filepath.Base(before(t, l)), "bin/app")
	if r := l.expect(exit.OK); len(r.Unserved) != 1 {
		t.Errorf("for a unit that runs another release the report has %q", r.Unserved)
	}
}

// TestARepairedLinkMakesNoProcessOld checks status for a script, which gives no evidence but its start time.
func TestARepairedLinkMakesNoProcessOld(t *testing.T) {
	for name, to := range map[string]string{"an earlier release": "", "elsewhere": "/tmp"} {
		t.Run(name, func(t *testing.T) {
			l, u := runningUnits(t, "1", "app.service")
			u.all["app.service"].script = true
			l.app("2")
			l.expect(exit.OK)
			if to == "" {
				to = before(t, l)
			}
			changeLink(t, l, to)
			u.acted = nil
			if l.expect(exit.OK); len(u.acted) != 0 {
				t.Errorf("a unit that runs the release was restarted: %q", u.acted)
			}
			s := mustStatus(t, l)
			if err := l.RunningUnits(context.Background(), &s); err != nil || len(s.Units) != 1 || !s.Units[0].Deployed ||
				len(s.Drift) != 0 {
				t.Errorf("the units are %+v, drift %q, %v", s.Units, s.Drift, err)
			}
		})
	}
}
