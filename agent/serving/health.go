package serving

import (
	"context"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/corpus-agent/corpus-agent/agent/health"
	"github.com/corpus-agent/corpus-agent/agent/ledger"
	"github.com/corpus-agent/corpus-agent/agent/report"
	"github.com/corpus-agent/corpus-agent/agent/service"
	"github.com/corpus-agent/corpus-agent/artifact/recipe"
	"github.com/corpus-agent/corpus-agent/state/diag"
	"github.com/corpus-agent/corpus-agent/state/host/units"
)

// healthStage is the stage of a run in which a pair has to become healthy; scripts find it in CORPUS_STAGE.
const healthStage = report.HealthStage

// wantedHealth returns the probes of the host, base and the service, with their timing: that of the service, else that
// of base, else that of the host.
func (r *Run) wantedHealth(pair ledger.Pair) (recipe.Health, error) {
	wanted := r.Host.Config.Health
	for _, release := range pair.Releases() {
		dir := r.Host.LayoutOf(release.Project).Release(release.Dir())
		says, err := r.Host.Recipe(release)
		if err != nil {
			return wanted, fmt.Errorf("reading how %s becomes healthy: %w", release, err)
		}
		wanted = health.Merge(absolute(says.Health, release.Project, dir), wanted)
	}
	return wanted, nil
}

// checkHealth waits until the units of a pair run it and its probes pass.
func (r *Run) checkHealth(ctx context.Context, pair ledger.Pair) error {
	wanted, err := r.wantedHealth(pair)
	if err != nil {
		return err
	}
	if r.Host.Layout.Relocated() && !r.ProbeAnyRoot && len(wanted.Probes) > 0 {
		r.Record.Note("%s skipped: the running system would answer, and not what is below %s",
			diag.Count(len(wanted.Probes), "health probe"), r.Host.Layout.Root)
		wanted.Probes = nil
	}
	if len(wanted.Probes) == 0 && r.watch == nil {
		return nil
	}
	last := pair.Own()
	scripts := r.Host.LayoutOf(last.Project).Release(last.Dir())
	return r.Record.Stage(healthStage, pair.String(), func() error {
		if err := r.Intact(ctx, pair); err != nil {
			return err
		}
		answering, err := r.answering(ctx, pair, wanted.Probes)
		if err != nil {
			return err
		}
		results, err := health.Check(
			ctx,
			health.Options{
				Health:    wanted,
				Dir:       scripts,
				Env:       r.HookEnv(healthStage, pair),
				Units:     r.watch,
				Answering: answering,
				Journal:   r.unitJournal,
				Check:     r.Host.CheckScript,
			},
		)
		r.Record.Probes(results)
		return err
	})
}

// BeginStates forgets the units that states started, since another converge begins.
func (r *Run) BeginStates() {
	r.byStatesMu.Lock()
	defer r.byStatesMu.Unlock()
	r.byStates = nil
}

// StartedByState notes that a state started or restarted a unit, so that [Run.Healthy] looks at it again.
func (r *Run) StartedByState(unit string) {
	r.byStatesMu.Lock()
	defer r.byStatesMu.Unlock()
	if unit = service.FullName(unit); !slices.Contains(r.byStates, unit) {
		r.byStates = append(r.byStates, unit)
	}
}

// statesUnitsRun returns an error if a unit that a state started has ended since: one that finds its port taken may run
// for some seconds. It does not wait, and leaves out units that the watch covers.
func (r *Run) statesUnitsRun(ctx context.Context, pair ledger.Pair) error {
	s, err := r.Host.System()
	if err != nil || s.Allowed() != nil {
		return nil //nolint:nilerr // the agent may not look at units here, as below a root
	}
	r.byStatesMu.Lock()
	names := slices.DeleteFunc(slices.Clone(r.byStates), func(name string) bool {
		return r.watch != nil && slices.ContainsFunc(r.watch.Members, func(m service.Member) bool { return m.Unit == name })
	})
	r.byStatesMu.Unlock()
	if len(names) == 0 {
		return nil
	}
	results, err := health.Options{Journal: r.unitJournal}.Down(ctx, s, names)
	if err == nil {
		return nil
	}
	return r.Record.Stage(healthStage, pair.String(), func() error {
		r.Record.Probes(results)
		return err
	})
}

// unitJournal returns the last lines that a unit logged in this run, as many as an error shows, redacted.
func (r *Run) unitJournal(ctx context.Context, unit string) []string {
	s, err := r.Host.System()
	if err != nil || s.Allowed() != nil {
		return nil
	}
	began := time.Now().Add(r.Began - r.Host.UnitClock())
	if at := r.firstStart(ctx, s, unit); at.After(began) {
		began = at
	}
	return units.LastLines(strings.Split(r.Record.Show(strings.Join(s.Journal(ctx, unit, began), "\n")), "\n"))
}

// firstStart returns when the first program of a unit started that this run watches: the program before it logs its end
// after the run began, and those that systemd starts after it died do not log why. It is zero if systemd has restarted
// the unit already.
func (r *Run) firstStart(ctx context.Context, s service.System, unit string) time.Time {
	if r.watch != nil {
		if at, known := r.watch.FirstStart(unit); known {
			return at
		}
	}
	if d, err := s.Service(ctx, unit); err == nil && d.Restarts == 0 {
		return d.BeganAt
	}
	return time.Time{}
}

// absolute makes the paths of a release's script probes absolute, so that they name the release's own files, and sets
// the project of each probe.
func absolute(h recipe.Health, project, dir string) recipe.Health {
	probes := make([]recipe.Probe, len(h.Probes))
	for i, p := range h.Probes {
		if p.Kind == recipe.ProbeScript && !filepath.IsAbs(p.Target) {
			p.Target = filepath.Join(dir, p.Target)
		}
		p.Project = project
		probes[i] = p
	}
	h.Probes = probes
	return h
}
