package agent_test

import (
	"bytes"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/corpus-agent/corpus-agent/agent/exit"
	"github.com/corpus-agent/corpus-agent/artifact/artifacttest"
	"github.com/corpus-agent/corpus-agent/artifact/store"
	"github.com/corpus-agent/corpus-agent/artifact/store/storetest"
)

// A new host whose service cannot be deployed deploys base alone, and the service once it is published.
func TestBaseConvergesAloneUntilServiceIsPublished(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		published bool
		spoil     func(l *lab) // damages what was published
		code      int
	}{
		"the service was never published": {false, func(*lab) {}, exit.Unreachable},
		"its channel names nothing": {false, func(l *lab) {
			l.repo.Release("myapp", "0", "production", artifacttest.Files{"version": "0"})
		}, exit.Unreachable},
		"its metadata is damaged": {true, func(l *lab) { l.spoilHead("myapp", []byte(`{"signed": 1}`)) }, exit.Refused},
		"its metadata is too large": {true, func(l *lab) { l.spoilHead("myapp", bytes.Repeat([]byte(" "), 9<<20)) },
			exit.Refused},
		"its metadata is missing": {true, func(l *lab) { l.spoilHead("myapp", nil) }, exit.Unreachable},
		"its artifact is missing": {true, func(l *lab) { l.loseArtifacts("myapp") }, exit.Unreachable},
	} {
		t.Run(name, func(t *testing.T) {
			l := newLab(t)
			l.publishBase("b1")
			if c.published {
				l.publish("0")
			}
			before := l.repo.Snapshot()
			c.spoil(l)
			r := l.expect(c.code)
			noted(t, r, "base b1 converges alone, since nothing of myapp can be deployed yet")
			if l.engine.last() != "b1+" || l.version("base/current") != "b1" || r.BaseAlone == nil || r.Left != nil {
				t.Errorf("converged %q, base is %q, the host has %v alone and %v", l.engine.last(),
					l.version("base/current"), r.BaseAlone, r.Left)
			}
			if s, err := l.Status(); err != nil || s.Deployed != nil || s.BaseAlone == nil || len(s.Drift) > 0 {
				t.Errorf("status: deployed %v, base alone %v, drift %v, %v", s.Deployed, s.BaseAlone, s.Drift, err)
			}
			convergesBefore := len(l.engine.converged)
			if l.expect(c.code); len(l.engine.converged) != convergesBefore+1 {
				t.Errorf("the next run converged %d times, want once", len(l.engine.converged)-convergesBefore)
			}
			if _, err := l.Rollback(t.Context()); exit.Code(err) != exit.Usage {
				t.Errorf("a rollback without an earlier release: %v", err)
			}
			if _, err := l.Converge(t.Context(), false); err != nil {
				t.Errorf("converge: %v", err)
			}
			if c.published {
				l.repo.Restore(before)
			}
			l.publish("1")
			r = l.expect(exit.OK)
			if l.links("1", "1", ""); l.engine.last() != "b1+1" || r.BaseAlone != nil {
				t.Errorf("converged %q, base alone is %v", l.engine.last(), r.BaseAlone)
			}
		})
	}
}

// TestBaseAloneIsUpdatedAndRolledBack checks a host with base alone: base is updated, and a base that fails is rolled
// back and quarantined.
func TestBaseAloneIsUpdatedAndRolledBack(t *testing.T) {
	t.Parallel()
	l := newLab(t)
	l.publishBase("b1-broken")
	l.expect(exit.Failed) // no earlier release exists
	if s, err := l.Status(); err != nil || s.BaseAlone != nil || l.version("base/current") != "" {
		t.Errorf("a base that failed counts as converged: %v, %v", s.BaseAlone, err)
	}
	l.publishBase("b2")
	l.expect(exit.Unreachable)
	l.publishBase("b3-broken")
	l.expect(exit.RolledBack)
	if l.version("base/current") != "b2" || l.engine.last() != "b2+" {
		t.Errorf("after the rollback base is %q, converged %q", l.version("base/current"), l.engine.last())
	}
	noted(t, l.expect(exit.Unreachable), "base b3-broken is quarantined")
	l.publishBase("b4")
	l.expect(exit.Unreachable)
	if l.version("base/current") != "b4" {
		t.Errorf("base is %q, want b4", l.version("base/current"))
	}
	l.store = storetest.NewFaulty(l.repo.Store, storetest.Fault{Err: store.ErrUnreachable})
	l.engine.converged = nil
	if l.expect(exit.Unreachable); !slices.Equal(l.engine.converged, []string{"b4+"}) {
		t.Errorf("without the store the host converged %q", l.engine.converged)
	}
}

// A first deploy that fails over a base that converged alone leaves that base as it was.
func TestFailedFirstDeployLeavesBaseConverged(t *testing.T) {
	t.Parallel()
	l := newLab(t)
	l.publishBase("b1")
	l.expect(exit.Unreachable)
	l.publishBase("b2")
	l.publish("1-broken")
	l.expect(exit.Failed)
	if l.links("1-broken", "", ""); l.version("base/current") != "b1" || l.engine.last() != "b1+" {
		t.Errorf("base is %q, converged last %q", l.version("base/current"), l.engine.last())
	}
	if s, err := l.Status(); err != nil || s.BaseAlone == nil || s.BaseAlone.Base.Version != "b1" {
		t.Errorf("status has base alone %v, %v", s.BaseAlone, err)
	}
	l.publish("2")
	l.expect(exit.OK)
	l.links("2", "2", "")
}

// The agent recovers a base that converged alone from its link if the ledger, its copy and the reports are lost.
func TestBaseAloneIsRecoveredFromItsLink(t *testing.T) {
	t.Parallel()
	l := newLab(t)
	l.publishBase("b1")
	l.expect(exit.Unreachable)
	for _, reports := range []bool{false, true} {
		for _, path := range []string{l.Layout.Ledger(), l.Layout.LedgerCopy()} {
			if err := os.Remove(path); err != nil {
				t.Fatal(err)
			}
		}
		if reports {
			if err := os.RemoveAll(l.Layout.Reports()); err != nil {
				t.Fatal(err)
			}
		}
		r, err := l.Converge(t.Context(), false)
		if err != nil {
			t.Fatal(err)
		}
		noted(t, r, "base b1 converged alone")
		l.expect(exit.Unreachable)
	}
}

// A lost artifact of one project does not prevent the deploy of the other.
func TestLostArtifactDoesNotPreventOtherDeploys(t *testing.T) {
	t.Parallel()
	for lost, want := range map[string][2]string{"base": {"b1", "2"}, "myapp": {"b2", "1"}} {
		t.Run(lost, func(t *testing.T) {
			l := newLab(t)
			l.publishBase("b1")
			l.publish("1")
			l.expect(exit.OK)
			l.publishBase("b2")
			l.publish("2")
			l.loseArtifacts(lost)
			noted(t, l.expect(exit.Unreachable), lost+" is not changed")
			if got := [2]string{l.version("base/current"), l.version("service/current")}; got != want {
				t.Errorf("the host runs %v, want %v", got, want)
			}
		})
	}
}

// spoilHead replaces the newest head of a project's metadata, or removes it if data is nil.
func (l *lab) spoilHead(project string, data []byte) {
	l.t.Helper()
	key := newestHead(l, project)
	if err := l.repo.Store.Delete(l.t.Context(), key); err != nil {
		l.t.Fatal(err)
	}
	if data != nil {
		l.repo.Replace(key, data)
	}
}

// loseArtifacts removes all artifacts of a project from the store.
func (l *lab) loseArtifacts(project string) {
	l.t.Helper()
	for key := range l.repo.Snapshot() {
		if strings.Contains(key, "/"+project+"/") || strings.HasPrefix(filepath.Base(key), project+"-") {
			if err := l.repo.Store.Delete(l.t.Context(), key); err != nil {
				l.t.Fatal(err)
			}
		}
	}
}
