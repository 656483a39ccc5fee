package agent_test

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/corpus-agent/corpus-agent/agent"
	"github.com/corpus-agent/corpus-agent/agent/exit"
	"github.com/corpus-agent/corpus-agent/agent/health"
	"github.com/corpus-agent/corpus-agent/artifact/artifacttest"
	"github.com/corpus-agent/corpus-agent/artifact/recipe"
)

// publishHealth publishes a version with a corpus.yaml that names a probe.
func (l *lab) publishHealth(version, url string) {
	l.t.Helper()
	l.repo.Release("myapp", version, "testing", artifacttest.Files{
		"version": version, "salt/config/states/top.sls": "base: {}",
		recipe.Name: "health:\n  interval: 1ms\n  retries: 2\n  probes:\n    - http: " + url + "\n",
	})
}

func TestHealthProbesBelowARootAreSkippedWithTheReason(t *testing.T) {
	t.Parallel()
	l := newLab(t)
	l.publishHealth("1", "http://127.0.0.1:1/")
	noted(t, l.expect(exit.OK), "1 health probe skipped: the running system would answer")
}

func TestReleaseThatDoesNotBecomeHealthyIsRolledBack(t *testing.T) {
	t.Parallel()
	l := newLab(t)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		if strings.Contains(l.version("service/current"), "sick") {
			w.WriteHeader(http.StatusBadGateway)
		}
	}))
	defer server.Close()
	l.ProbeAnyRoot = true
	l.publishHealth("1", server.URL)
	if r := l.expect(exit.OK); len(r.Health) != 1 || r.Health[0].Error != "" {
		t.Errorf("health of the first deploy is %+v", r.Health)
	}
	l.publishHealth("2-sick", server.URL)
	r, err := l.deploy()
	var unhealthy *health.Unhealthy
	if exit.Code(err) != exit.RolledBack || !errors.As(err, &unhealthy) {
		t.Fatalf("exit code %d (%v), want a rollback because the release is unhealthy", exit.Code(err), err)
	}
	if len(r.Health) != 2 || r.Health[0].Error == "" || r.Health[1].Error != "" {
		t.Errorf("probes are %+v, want one that fails and one that passes after the rollback", r.Health)
	}
	l.links("1", "1", "")
	noted(t, l.expect(exit.OK), "quarantined")
}

func TestHostUnhealthyAfterRollbackEndsWithRollbackFailed(t *testing.T) {
	l := newLab(t)
	l.ProbeAnyRoot = true
	l.publish("1")
	l.expect(exit.OK)
	l.Config.Health = recipe.Health{
		Deadline: time.Minute, Interval: time.Millisecond, Timeout: time.Second, Retries: 1,
		Probes: []recipe.Probe{{Kind: recipe.ProbeTCP, Target: "127.0.0.1:1"}},
	}
	l.publish("2")
	l.expect(exit.RollbackFailed)
	l.links("1", "1", "")
}

func TestScriptsOfProbesAreThoseOfTheirRelease(t *testing.T) {
	t.Parallel()
	l := newLab(t)
	l.ProbeAnyRoot = true
	seen := filepath.Join(t.TempDir(), "seen")
	l.repo.Release("myapp", "1", "testing", artifacttest.Files{
		"version": "1", "salt/config/states/top.sls": "base: {}",
		"bin/check": "#!/bin/sh\necho \"$CORPUS_STAGE $CORPUS_VERSION\" > " + seen + "\n",
		recipe.Name: "health:\n- script: bin/check\n",
	})
	if _, err := l.Deploy(context.Background(), l.firstDeploy(), false); err != nil {
		t.Fatal(err)
	}
	if data, err := os.ReadFile(seen); err != nil || string(data) != "health 1\n" {
		t.Errorf("the script wrote %q, %v", data, err)
	}
}

// firstDeploy returns the request of a first deploy.
func (l *lab) firstDeploy() agent.Given {
	l.t.Helper()
	root := filepath.Join(l.t.TempDir(), "root.json")
	if err := os.WriteFile(root, l.repo.Root(), 0o644); err != nil {
		l.t.Fatal(err)
	}
	return agent.Given{TrustRoot: root}
}
