package agent

import (
	"context"
	"fmt"
	"path/filepath"
	"strings"
	"time"

	"github.com/corpus-agent/corpus-agent/agent/health"
	"github.com/corpus-agent/corpus-agent/agent/ledger"
	"github.com/corpus-agent/corpus-agent/agent/report"
	"github.com/corpus-agent/corpus-agent/agent/service"
	"github.com/corpus-agent/corpus-agent/artifact/recipe"
	"github.com/corpus-agent/corpus-agent/state/host/units"
)

// The stage of a run in which a release has to become healthy; scripts find it in CORPUS_STAGE.
const healthStage = report.HealthStage

// wantedHealth is when a pair counts as healthy. The service's word about times and retries counts before base's, and
// that before the host's; probes are those of all three.
func (r *run) wantedHealth(pair ledger.Pair) (recipe.Health, error) {
	wanted := r.Config.Health
	for _, release := range pair.Releases() {
		dir := r.LayoutOf(release.Project).Release(release.Dir())
		says, err := r.Recipe(release)
		if err != nil {
			return wanted, fmt.Errorf("reading how %s becomes healthy: %w", release, err)
		}
		wanted = health.Merge(within(says.Health, release.Project, dir), wanted)
	}
	return wanted, nil
}

// checkHealth waits for the releases of a pair to become healthy.
func (r *run) checkHealth(ctx context.Context, pair ledger.Pair) error {
	wanted, err := r.wantedHealth(pair)
	if err != nil {
		return err
	}
	if r.Layout.Relocated() && !r.ProbeAnyRoot && len(wanted.Probes) > 0 {
		r.record.Note("%d health probes were skipped: they would ask the running system and not what is below %s", len(wanted.Probes), r.Layout.Root)
		wanted.Probes = nil
	}
	if len(wanted.Probes) == 0 && r.watch == nil {
		return nil
	}
	last := pair.Own()
	scripts := r.LayoutOf(last.Project).Release(last.Dir())
	return r.record.Stage(healthStage, pair.String(), func() error {
		if err := r.intact(ctx, pair); err != nil {
			return err
		}
		answering, err := r.answering(ctx, pair, wanted.Probes)
		if err != nil {
			return err
		}
		results, err := health.Check(ctx, health.Options{Health: wanted, Dir: scripts, Env: r.hookEnv(healthStage, pair), Units: r.watch, Answering: answering, Journal: r.unitJournal, Check: r.CheckScript})
		r.record.Probes(results)
		return err
	})
}

// unitJournal is what a unit logged in this run, redacted and then cut to what an error shows.
func (r *run) unitJournal(ctx context.Context, unit string) []string {
	s, err := r.System()
	if err != nil || s.Allowed() != nil {
		return nil
	}
	began := time.Now().Add(r.began - r.UnitClock())
	if at := r.firstStart(ctx, s, unit); at.After(began) {
		began = at
	}
	return units.LastLines(strings.Split(r.record.Show(strings.Join(s.Journal(ctx, unit, began), "\n")), "\n"))
}

// firstStart is when the program of a unit started that this run watches first: the one before logs its end after the run
// began, and those that systemd starts when it has died say nothing of why. It is zero where systemd has started others before.
func (r *run) firstStart(ctx context.Context, s service.System, unit string) time.Time {
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

// within makes the scripts of a release's probes absolute, so that they are the release's own, and notes
// whose probes they are.
func within(h recipe.Health, project, dir string) recipe.Health {
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
