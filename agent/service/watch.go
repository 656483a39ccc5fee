package service

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/corpus-agent/corpus-agent/state/diag"
	"github.com/corpus-agent/corpus-agent/state/host/units"
)

// Watch checks that units run their release and continue to do so.
type Watch struct {
	System  System
	Members []Member      // that have to run their release
	Done    []Result      // what was done about them
	Since   time.Duration // on the monotonic clock, when the run began

	first map[string]units.Service
}

// Seen is the observed state of a unit.
type Seen struct {
	Unit    string
	Project string
	Release string // the release that it should run
	Test    string // the test that shows that it runs it
	PID     int
	Err     error // why it does not run it
	Final   bool  // waiting will not change Err
	Down    bool  // its program ended, or is not up yet; the reason is in its journal
}

// Begin records the present state of the units, for Look to compare.
func (w *Watch) Begin(ctx context.Context) error {
	w.first = map[string]units.Service{}
	for _, m := range w.Members {
		d, err := describe(ctx, w.System, m.Unit)
		if err != nil {
			return err
		}
		w.first[m.Unit] = d
	}
	return nil
}

// FirstStart returns the time at which the program of a unit started that ran at Begin. It is zero if systemd had
// restarted the unit before. known is false for units that are not watched.
func (w *Watch) FirstStart(unit string) (at time.Time, known bool) {
	first, known := w.first[unit]
	if first.Restarts > 0 {
		return time.Time{}, known
	}
	return first.BeganAt, known
}

// Look reports for each unit whether it runs its release, and has run since Begin without ending.
func (w *Watch) Look(ctx context.Context) ([]Seen, error) {
	all := make([]Seen, 0, len(w.Members))
	for _, m := range w.Members {
		d, err := describe(ctx, w.System, m.Unit)
		if err != nil {
			return all, err
		}
		seen := Seen{Unit: m.Unit, Project: m.Project.Name, Release: m.Project.String(), PID: d.MainPID}
		seen.Test, seen.Final, seen.Err = w.judge(m, d)
		seen.Down = seen.Err != nil && (!d.Running() || w.another(m.Unit, d))
		all = append(all, seen)
	}
	return all, nil
}

// judge checks one unit. final reports that waiting will not change an error.
func (w *Watch) judge(m Member, d units.Service) (test string, final bool, err error) {
	switch {
	case !d.Running():
		err := fmt.Errorf("it is %s: its program %s", d.State(), d.Ending())
		if d.Active == "activating" && d.Sub != "auto-restart" {
			return "", false, err // it may only be slow
		}
		return "", true, diag.Health.Hint(err, "see what it says: journalctl -u %s", m.Unit)
	case w.another(m.Unit, d):
		return "", true,
			diag.Health.Hint(fmt.Errorf("its program ended after it was started, and the init system started another"),
				"see what it says: journalctl -u %s", m.Unit)
	case !d.Known:
		return ByRunning, false, nil
	}
	release, test := treesOf(m.Project).evidence(process(w.System, d))
	switch {
	case release == m.Project.Release:
		return test, false, nil
	case release != "":
		return "", w.did(m.Unit) != Reloaded, w.other(m, d, release, test)
	case d.Began > max(w.Since, m.Project.MovedAt), m.Project.MovedAt == 0 && m.Project.startedSince(d):
		return ByStart, false, nil
	case w.did(m.Unit) == Reloaded:
		return ByReload, false, nil
	}
	return "", true,
		diag.Process.Hint(fmt.Errorf("its main process %d was started before the release was made current", d.MainPID),
			"have it restarted: name %s in units of corpus.yaml, and not in reload", m.Unit)
}

// another reports whether the program of a unit is another process than at Begin.
func (w *Watch) another(unit string, d units.Service) bool {
	first := w.first[unit]
	return d.Restarts > first.Restarts || d.MainPID != first.MainPID
}

// other returns the error of a unit that runs another release.
func (w *Watch) other(m Member, d units.Service, release, test string) error {
	hint := fmt.Sprintf("start it through %s, and not by a path that always leads to one release: systemctl cat %s",
		m.Project.Links[0], m.Unit)
	if w.did(m.Unit) == Reloaded {
		hint = fmt.Sprintf(
			"a reload leaves the old program running: take %s out of reload in corpus.yaml, so that it is restarted", m.Unit)
	}
	return diag.Process.Hint(fmt.Errorf("its main process %d runs from %s, as %s shows, and not from %s", d.MainPID,
		release, test, m.Project.Release), "%s", hint)
}

func (w *Watch) did(unit string) string {
	for _, r := range slices.Backward(w.Done) {
		if r.Unit == unit {
			return r.Action
		}
	}
	return ""
}

// Unit describes what a unit runs, for users.
type Unit struct {
	Unit     string     `json:"unit"`
	Project  string     `json:"project"`
	Active   string     `json:"active"`
	PID      int        `json:"pid,omitempty"`
	Since    *time.Time `json:"since,omitempty"`
	Release  string     `json:"release,omitempty"` // the directory of the release that it runs; "" if unknown
	Test     string     `json:"test,omitempty"`    // the test that shows it
	Deployed bool       `json:"deployed"`          // it runs the release that is deployed, or nothing
}

// See returns what the units run.
func See(ctx context.Context, s System, members []Member) ([]Unit, error) {
	units := make([]Unit, 0, len(members))
	for _, m := range members {
		d, err := describe(ctx, s, m.Unit)
		if err != nil {
			return units, err
		}
		if !d.Found {
			continue
		}
		units = append(units, see(s, m, d))
	}
	return units, nil
}

func see(s System, m Member, d units.Service) Unit {
	u := Unit{Unit: m.Unit, Project: m.Project.Name, Active: d.Active, PID: d.MainPID, Deployed: true}
	if !d.Running() {
		return u
	}
	if !d.BeganAt.IsZero() {
		u.Since = &d.BeganAt
	}
	u.Release, u.Test = treesOf(m.Project).evidence(process(s, d))
	switch {
	case u.Release != "":
		u.Deployed = u.Release == m.Project.Release
	case u.Since != nil && m.Project.startedSince(d):
		// It started through current as that is now, whatever is deployed.
		u.Release, u.Test = m.Project.Current, ByStart
		u.Deployed = u.Release == m.Project.Release
	case u.Since != nil && !m.Reload && !d.Job:
		u.Deployed = false
	}
	return u
}
