package service

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/corpus-agent/corpus-agent/state/diag"
	"github.com/corpus-agent/corpus-agent/state/host"
	"github.com/corpus-agent/corpus-agent/state/host/processes"
	"github.com/corpus-agent/corpus-agent/state/host/units"
)

// Running returns the members that run, are starting, or have failed: they must run the release to which the links will
// lead. A stopped unit stays stopped. A program that ended by itself with status 0 was not stopped: its unit is
// included if it ran before the time since, or is in before.
func Running(ctx context.Context, s System, members []Member, since time.Duration, before []string) ([]string, error) {
	var names []string
	for _, m := range members {
		d, err := describe(ctx, s, m.Unit)
		if err != nil {
			return names, err
		}
		ran := d.Began < since && d.Ended >= since || slices.Contains(before, m.Unit)
		ended := ran && d.EndedItself() && !d.Awaited
		if d.Found && !masked(d) && !d.Job && (d.Running() || d.Active == "activating" || d.Active == "failed" || ended) {
			names = append(names, m.Unit)
		}
	}
	return names, nil
}

func masked(d units.Service) bool { return d.Masked || d.MaskedRuntime }

// Order describes what to put into service.
type Order struct {
	Members []Member
	Wanted  []string      // units that ran before, and are to run afterwards although they do not now
	Retry   []string      // units that do not run the release, or may not, as an earlier run or this one has found
	Strays  time.Time     // units of Retry that started before this may run another release; zero if unknown
	Back    bool          // this is a rollback, in which an absent unit is not a failure
	Since   time.Duration // when the run began: a unit that was started since, and runs the release, is kept
	Done    func(Result)  // called with each result; may be nil

	stopped []string // services that were stopped for their socket, and are started in their turn
}

// Serve restarts or reloads the units that have to run their release, each once, in their order. It tries all of them;
// the error is a *Failed. Sockets must come before the services that they trigger, see SocketsFirst.
func Serve(ctx context.Context, s System, o Order) ([]Result, error) {
	var results []Result
	var errs []error
	for _, m := range o.Members {
		result, err := serve(ctx, s, m, &o)
		if err != nil {
			result.Error = err.Error()
			errs = append(errs, err)
		}
		results = append(results, result)
		if o.Done != nil {
			o.Done(result)
		}
	}
	if err := errors.Join(errs...); err != nil {
		return results, &Failed{results, err}
	}
	return results, nil
}

func serve(ctx context.Context, s System, m Member, o *Order) (Result, error) {
	r := Result{Unit: m.Unit, Release: m.Project.String(), Project: m.Project.Name, Action: Left}
	d, err := describe(ctx, s, m.Unit)
	if err != nil {
		return r, err
	}
	// Only systemd is known to have all units. With another init system, or none as in a container, the host may
	// start the service in another way.
	if r.Absent = m.Named && !d.Found; r.Absent && d.Known && !o.Back {
		return r, absent(m)
	}
	verb := host.UnitVerb("")
	r.Action, verb, r.Why = decide(s, m, d, *o)
	if verb == "" {
		return r, nil
	}
	if kept, err := unstartable(ctx, s, verb, d); kept != "" || err != nil {
		r.Action, r.Why = Left, kept
		return r, err
	}
	began := s.Clock()
	ran, err := act(ctx, s, verb, d)
	o.stopped = append(o.stopped, ran...)
	r.Duration = s.Clock() - began
	return r, err
}

// absent returns the error of a unit that a release names and that does not exist on the host.
func absent(m Member) error {
	return diag.Process.Hint(fmt.Errorf("%s, which corpus.yaml of %s names under units, is not on this host", m.Unit,
		m.Project),
		"have a state install it, not enabled on hosts that do not run it, or take it out of units; systemctl cat %s", m.Unit)
}

// decide returns the action for a unit: its name in reports, its verb, "" for none, and the reason if nothing is done.
func decide(s System, m Member, d units.Service, o Order) (action string, verb host.UnitVerb, why string) {
	switch {
	case !d.Found:
		return Left, "", "there is no such unit on this host"
	case masked(d):
		return Left, "", "it is masked"
	case slices.Contains(o.stopped, m.Unit):
		return Restarted, host.Restart, ""
	case d.Job:
		return Left, "", "it is a job, which runs the release when it is started next"
	}
	release, test := treesOf(m.Project).evidence(process(s, d))
	retry := slices.Contains(o.Retry, m.Unit)
	switch {
	case release == m.Project.Release && d.Running() && d.Began >= o.Since && d.Began > 0:
		return Kept, "", "it runs the release already: " + test
	case release == "" && d.Running() && m.Project.MovedAt > 0 && d.Began > m.Project.MovedAt:
		return Kept, "", ByStart
	case retry && d.Running() && (release == m.Project.Release ||
		release == "" && m.Project.startedSince(d) && d.BeganAt.After(o.Strays)):
		return Kept, "", "it was started since"
	case !m.Project.Moved && !retry && (release == "" || release == m.Project.Release) && d.Active != "failed":
		return Left, "", "the release is the one that ran before"
	case d.Running() && m.Reload:
		return Reloaded, host.ReloadOrRestart, ""
	case d.Running(), d.Active == "activating":
		return Restarted, host.Restart, ""
	case d.Active == "failed", slices.Contains(o.Wanted, m.Unit):
		return Started, host.Restart, ""
	case m.Named && d.Known && d.Began == 0 && d.Boot == "enabled":
		return Started, host.Start, "" // it was never stopped: it is new
	}
	return Left, "", "it is stopped"
}

func process(s System, d units.Service) processes.Process {
	if d.MainPID == 0 {
		return processes.Process{}
	}
	return s.Process(d.MainPID)
}

// MismatchedUnits returns the units that run another release than they should. A unit that gives no evidence, or has
// failed, is included if it was started after the links of its project led elsewhere. wrong has the time since when
// they did, by the name of the project.
func MismatchedUnits(ctx context.Context, s System, members []Member, wrong map[string]time.Time) ([]string, error) {
	var strays []string
	for _, m := range members {
		d, err := describe(ctx, s, m.Unit)
		if err != nil {
			return strays, err
		}
		if d.Found && !masked(d) && !d.Job && stray(s, m, d, wrong) {
			strays = append(strays, m.Unit)
		}
	}
	return strays, nil
}

func stray(s System, m Member, d units.Service, wrong map[string]time.Time) bool {
	since, led := wrong[m.Project.Name]
	if !d.Running() {
		return led && (d.Active == "failed" || d.Active == "activating")
	}
	release, _ := treesOf(m.Project).evidence(process(s, d))
	return release != "" && release != m.Project.Release || release == "" && led && d.Known && !d.BeganAt.Before(since)
}

// Stop stops the units that were started, restarted or reloaded for a release that is given up without a replacement.
func Stop(ctx context.Context, s System, done []Result) ([]Result, error) {
	var results []Result
	var errs []error
	for _, before := range done {
		if before.Action != Started && before.Action != Restarted && before.Action != Reloaded {
			continue
		}
		err := s.Act(ctx, host.Stop, before.Unit)
		r := Result{Unit: before.Unit, Release: before.Release, Action: Stopped}
		if err != nil {
			r.Error = err.Error()
		}
		results, errs = append(results, r), append(errs, err)
	}
	return results, errors.Join(errs...)
}
