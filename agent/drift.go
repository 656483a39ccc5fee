package agent

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"github.com/corpus-agent/corpus-agent/agent/exit"
	"github.com/corpus-agent/corpus-agent/agent/link"
	"github.com/corpus-agent/corpus-agent/agent/records"
	"github.com/corpus-agent/corpus-agent/agent/report"
	"github.com/corpus-agent/corpus-agent/agent/service"
	"github.com/corpus-agent/corpus-agent/agent/site"
	"github.com/corpus-agent/corpus-agent/artifact/walk"
)

// drift says where the host is not what the ledger says it is, as far as can be seen without
// converging.
func (a *Agent) drift(s Status) []string {
	if s.Failing != nil {
		return []string{fmt.Sprintf("this dev host stays on %s, which failed", s.Failing)}
	}
	runs := s.runs()
	if runs == nil || s.Running != nil || s.CutShort != nil {
		return nil // on the way from one to the other nothing has drifted
	}
	lost, unseen := a.DataLost(*runs)
	found := append(append(lost, unseen...), a.SharedDrift(*runs)...)
	for _, release := range runs.Releases() {
		links, dir := s.Links[release.Project], release.Dir()
		there, err := walk.Exists(a.LayoutOf(release.Project).Release(dir))
		if err != nil {
			found = append(found, fmt.Sprintf("the directory of %s cannot be looked at: %v", release, err))
		} else if !there {
			found = append(found, fmt.Sprintf("the directory of %s is gone", release))
		}
		for _, c := range a.Impassable(release) {
			found = append(found, c.Name+" "+c.What)
		}
		for _, l := range []struct{ name, target string }{{"next", links.Next}, {"current", links.Current}} {
			instead, err := link.Of(a.LayoutOf(release.Project)).Instead(l.name)
			switch {
			case err != nil:
				found = append(found, fmt.Sprintf("%s of %s cannot be looked at: %v", l.name, release.Project, err))
			case instead != "":
				found = append(found, fmt.Sprintf("%s of %s is %s and no link; the next run sets it aside and makes the link again", l.name, release.Project, instead))
			case l.target != dir:
				found = append(found, fmt.Sprintf("%s of %s leads to %q and not to %q", l.name, release.Project, l.target, dir))
			}
		}
	}
	if r := s.LastRun; r != nil && r.Exit == exit.OK && r.From != nil && (r.To == nil || r.To.Same(*r.From)) && r.States.Effective() > 0 {
		what := "1 state drifted and put it right"
		if n := r.States.Effective(); n > 1 {
			what = fmt.Sprintf("%d states drifted and put them right", n)
		}
		found = append(found, "the last run found "+what)
	}
	return found
}

// actingAlways names the states of a run that changed something and will again at the next one; no run of converge ends that,
// so they are no drift.
func actingAlways(r *report.Report) []string {
	if r == nil || r.Test {
		return nil
	}
	var named []string
	for _, s := range r.Steps {
		if s.Always {
			named = append(named, fmt.Sprintf("%s %s in %s", s.Function, s.ID, s.SLS))
		}
	}
	return named
}

// NextRun asks systemd when the timer runs the next deploy. It is nil where nothing is planned, and
// below a root that is not the running system.
func (a *Agent) NextRun(ctx context.Context) *time.Time {
	if a.Layout.Relocated() {
		return nil
	}
	out, err := site.Systemctl(ctx, 5*time.Second, "list-timers", "--all", "--output=json", records.TimerUnit)
	if err != nil {
		return nil
	}
	return nextElapse(out)
}

// TimerOff is why the host's timer starts no run: masked, inactive or failed. It is "" where the timer waits, where the
// host has none, and below a root that is not the running system.
func (a *Agent) TimerOff(ctx context.Context) string {
	if a.Layout.Relocated() {
		return ""
	}
	out, err := site.Systemctl(ctx, 5*time.Second, "show", "--property=LoadState,ActiveState", records.TimerUnit)
	if err != nil {
		return ""
	}
	return timerOff(out)
}

// timerOff reads the answer of systemctl.
func timerOff(answer string) string {
	state := service.Properties(answer)
	switch load, active := state["LoadState"], state["ActiveState"]; {
	case load == "masked":
		return load
	case load == "loaded" && active != "active" && active != "activating":
		return active
	}
	return ""
}

// nextElapse reads the answer of systemctl, whose times are microseconds.
func nextElapse(answer string) *time.Time {
	var timers []struct {
		Next int64  `json:"next"`
		Unit string `json:"unit"`
	}
	if json.Unmarshal([]byte(answer), &timers) != nil {
		return nil
	}
	for _, t := range timers {
		if t.Unit == records.TimerUnit && t.Next > 0 {
			at := time.UnixMicro(t.Next)
			return &at
		}
	}
	return nil
}
