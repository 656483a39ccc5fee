package health

import (
	"context"
	"fmt"
	"time"

	"github.com/corpus-agent/corpus-agent/agent/service"
	"github.com/corpus-agent/corpus-agent/state/diag"
	hostunits "github.com/corpus-agent/corpus-agent/state/host/units"
)

// units checks the units of a release.
type units struct {
	Options
	started time.Time
	results []Result
	tries   int
	final   bool // waiting will not change the result
}

func newUnits(o Options) *units { return &units{Options: o, started: time.Now()} }

func (u *units) begin(ctx context.Context) error {
	if u.Units == nil {
		return nil
	}
	return u.Units.Begin(ctx)
}

// grace returns the time to wait before the first check.
func (u *units) grace() time.Duration {
	if u.Units == nil {
		return u.Grace
	}
	return max(u.Grace, hostunits.Stable)
}

// until checks the units until they run the release, or an error is final.
func (u *units) until(ctx context.Context) {
	for u.look(ctx); !u.pass() && !u.final && ctx.Err() == nil && (u.Retries == 0 || u.tries <= u.Retries); {
		wait(ctx, u.Interval)
		u.look(ctx)
	}
}

// look checks the units once.
func (u *units) look(ctx context.Context) {
	if u.Units == nil || ctx.Err() != nil && u.tries > 0 {
		return
	}
	u.tries++
	seen, err := u.Units.Look(context.WithoutCancel(ctx)) // a query that is cancelled is not a failure of the units
	u.results, u.final = nil, false
	for _, s := range seen {
		r := Result{Probe: "unit " + s.Unit, unit: s.Unit, Project: s.Project, Tries: u.tries,
			Duration: time.Since(u.started), Test: s.Test}
		if s.Err != nil {
			r.Error, r.hint = s.Err.Error(), diag.HintOf(s.Err)
			if s.Down {
				r.logs = s.Unit
			}
			u.final = u.final || s.Final
		}
		u.results = append(u.results, r)
	}
	if err != nil {
		u.results = append(u.results, Result{Probe: "units", Tries: u.tries, Error: err.Error()})
	}
}

func (u *units) pass() bool {
	for _, r := range u.results {
		if r.Error != "" {
			return false
		}
	}
	return true
}

// Down reports which of the units that states started have ended since: the init system restarts them, or has given up.
// A unit whose program ended without an error, such as a job, is not down. The error is an *Unhealthy.
func (o Options) Down(ctx context.Context, s service.System, names []string) ([]Result, error) {
	var down []Result
	for _, name := range names {
		d, err := s.Service(ctx, name)
		if err != nil {
			return down, fmt.Errorf("looking at %s: %w", name, err)
		}
		restarts := d.Sub == "auto-restart" || d.Restarts > 0
		if !d.Known || d.Active != "failed" && !restarts {
			continue
		}
		r := Result{Probe: "unit " + name, logs: name, hint: "see what it says: journalctl -u " + name,
			Error: fmt.Sprintf("a state started it, and now it is %s: its program %s", d.State(), d.Ending())}
		if d.Running() {
			r.Error = "its program ended after a state started it, and the init system started another"
		}
		down = append(down, r)
	}
	if len(down) == 0 {
		return nil, nil
	}
	o.readJournals(context.WithoutCancel(ctx), down)
	return down, &Unhealthy{Results: down}
}
