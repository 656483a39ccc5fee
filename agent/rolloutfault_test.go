package agent_test

import (
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/corpus-agent/corpus-agent/agent"
	"github.com/corpus-agent/corpus-agent/agent/exit"
	"github.com/corpus-agent/corpus-agent/agent/fleet"
	"github.com/corpus-agent/corpus-agent/agent/rollout"
	"github.com/corpus-agent/corpus-agent/artifact/artifacttest"
	plans "github.com/corpus-agent/corpus-agent/artifact/rollout"
	"github.com/corpus-agent/corpus-agent/artifact/store"
	"github.com/corpus-agent/corpus-agent/state/diag"
)

// resultsOf returns the outcomes that a host recorded in rollouts, in the order of their names.
func (f *rolling) resultsOf(h *rollHost) (outcomes []string) {
	f.t.Helper()
	for key := range f.objects() {
		if _, name, ok := strings.Cut(key, "/results/"+h.name+".example.com/"); ok {
			outcome, _, _ := strings.Cut(name, ".")
			outcomes = append(outcomes, outcome)
		}
	}
	return outcomes
}

// withoutArtifacts is a store that refuses to show artifacts.
type withoutArtifacts struct{ store.Store }

// Get is part of store.Store.
func (s withoutArtifacts) Get(ctx context.Context, key string, from int64) (io.ReadCloser, store.Info, error) {
	if !strings.HasPrefix(key, "metadata/") && !strings.HasPrefix(key, "rollouts/") {
		return nil, store.Info{}, &store.Error{Op: store.OpGet, Object: key, Kind: store.ErrForbidden}
	}
	return s.Store.Get(ctx, key, from)
}

// TestHostThatCannotBeginADeployCountsForNothing checks that a host that cannot fetch a release, or record its deploy,
// is not one on which the release failed: it records no result, and does not halt the rollout.
func TestHostThatCannotBeginADeployCountsForNothing(t *testing.T) {
	plan := twoWaves()
	plan.Waves, plan.Halt = []plans.Wave{{Share: plans.All}}, plans.Halt{Hosts: 1}
	for name, c := range map[string]struct {
		before, after func(*testing.T, *rolling, *rollHost)
	}{
		"artifacts that cannot be fetched": {after: func(_ *testing.T, f *rolling, h *rollHost) {
			h.OpenStore = func(string) (store.Store, error) {
				return withoutArtifacts{f.store}, nil
			}
		}},
		"a full state directory": {
			before: func(t *testing.T, _ *rolling, h *rollHost) { mountStateDirectory(t, h.Layout.State()) },
			after: func(_ *testing.T, _ *rolling, h *rollHost) {
				_ = os.WriteFile(filepath.Join(h.Layout.State(), "fill"), make([]byte, 9<<20), 0o600) // until it is full
			}},
	} {
		t.Run(name, func(t *testing.T) {
			f := newRolling(t, 2, plan)
			h := f.newHost("myapp-production-useast1-3")
			if c.before != nil {
				c.before(t, f, h)
			}
			f.run(h, exit.OK)
			f.hosts = append(f.hosts, h)
			f.start("2", "1")
			c.after(t, f, h)
			_, err := f.try(h, agent.Given{}, false)
			t.Logf("the run ended with %v", err)
			f.runs(h, "1")
			if got := f.resultsOf(h); err == nil || len(got) != 0 {
				t.Errorf("the host recorded %q", got)
			}
			f.run(f.hosts[1], exit.OK)
			f.runs(f.hosts[1], "2")
		})
	}
}

// TestHostThatRolledBackForItsOwnFaultCounts checks that a host that began the deploy and rolled back counts as failed,
// since the release may fill disks, and no longer once it has tried again with success.
func TestHostThatRolledBackForItsOwnFaultCounts(t *testing.T) {
	plan := twoWaves()
	plan.Waves, plan.Halt = []plans.Wave{{Share: plans.All}}, plans.Halt{Hosts: 2}
	f := newRolling(t, 4, plan)
	f.start("2", "1")
	for _, h := range f.hosts[:2] {
		h.engine.fails = func(string) error { return fmt.Errorf("file.managed of app failed: %w", syscall.ENOSPC) }
		if _, err := f.try(h, agent.Given{}, false); exit.Code(err) < exit.RolledBack {
			t.Fatalf("%v", err)
		}
		if got := f.resultsOf(h); len(got) != 1 || got[0] != string(rollout.RolledBack) {
			t.Errorf("the host recorded %q", got)
		}
		h.engine.fails = nil
		if h == f.hosts[0] {
			f.store.now = f.store.now.Add(time.Hour)
			f.run(h, exit.OK)
			f.runs(h, "2")
		}
	}
	f.run(f.hosts[2], exit.OK) // one host counts as failed
	f.runs(f.hosts[2], "2")
}

// TestBadBaseIsNoFailureOfTheServiceInItsRollout deploys a bad base and a good service at once: the rollout of the
// service has no failure, the host takes the service at its next run, and the fleet shows why base is in quarantine.
func TestBadBaseIsNoFailureOfTheServiceInItsRollout(t *testing.T) {
	t.Parallel()
	plan := twoWaves()
	plan.Waves, plan.Halt = []plans.Wave{{Share: plans.All}}, plans.Halt{Hosts: 1}
	f := newRolling(t, 1, plan)
	h := f.hosts[0]
	publishBase := func(version string) {
		f.repo.Release("base", version, "production", artifacttest.Files{"version": version, "states/top.sls": "base: {}"})
	}
	publishBase("b1")
	f.run(h, exit.OK)
	publishBase("b2")
	f.start("2", "1")
	h.engine.fails = func(what string) error {
		if !strings.HasPrefix(what, "b2+") {
			return nil
		}
		bad := diag.At(diag.Pos{File: "/srv/base/current/states/common.sls", Line: 1}, "b2 is bad")
		return exit.WithCode(exit.Failed, bad)
	}
	f.run(h, exit.RolledBack)
	f.runs(h, "1")
	if got := f.resultsOf(h); len(got) != 0 {
		t.Errorf("the host recorded %q", got)
	}
	for range 2 {
		f.store.now = f.store.now.Add(time.Hour)
		f.run(h, exit.OK)
		f.runs(h, "2")
		if got := f.resultsOf(h); len(got) != 1 || got[0] != string(rollout.Healthy) || h.engine.last() != "b1+2" {
			t.Errorf("the host recorded %q, and converged %s", got, h.engine.last())
		}
		v, err := fleet.Look(t.Context(), fleet.Query{Store: f.store, Now: f.store.now})
		must(t, err)
		must(t, v.Explain(t.Context(), f.store))
		if len(v.Attention) == 0 || !strings.Contains(v.Attention[0].Why, "b2 is bad") ||
			v.Attention[0].Project != "base" || v.Attention[0].Version != "b2" {
			t.Errorf("the fleet shows %+v", v.Attention)
		}
	}
}
