package agent_test

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/corpus-agent/corpus-agent/agent/exit"
	"github.com/corpus-agent/corpus-agent/agent/report"
	"github.com/corpus-agent/corpus-agent/artifact/artifacttest"
	"github.com/corpus-agent/corpus-agent/state/diag"
	"github.com/corpus-agent/corpus-agent/state/value"
)

// TestOutageOfAPillarSourceIsAHostError has a source of pillar data fail during a deploy and its rollback. The host
// stays on the earlier release, and deploys the new one once the source answers.
func TestOutageOfAPillarSourceIsAHostError(t *testing.T) {
	artifacttest.Long(t)
	t.Parallel()
	busy := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(http.StatusServiceUnavailable)
	}))
	t.Cleanup(busy.Close)
	good := answering(t, "{}")
	silent := make(chan struct{})
	hanging := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { <-silent }))
	t.Cleanup(hanging.Close)
	t.Cleanup(func() { close(silent) })
	for name, c := range map[string]struct {
		source  *value.Map
		limit   time.Duration
		says    string
		hinting string
	}{
		"refused": {value.NewMap("http_json", value.NewMap("url", "http://127.0.0.1:1/x")), 0, "connection refused",
			"reaches the server"},
		"503": {value.NewMap("http_json", value.NewMap("url", busy.URL)), 0, "503", "reaches the server"},
		"no answer": {value.NewMap("http_json", value.NewMap("url", hanging.URL)), time.Second,
			"converge.timeout (1s) was over: ext_pillar http_json", "raise converge.timeout"},
	} {
		t.Run(name, func(t *testing.T) {
			l := newLab(t)
			l.Engine = nil
			l.publish("1")
			l.expect(exit.OK)
			l.publish("2")
			limit := l.Config.ConvergeTimeout
			l.Config.ExtPillar = value.NewList(c.source)
			if c.limit > 0 {
				l.Config.ConvergeTimeout = c.limit
			}
			r, err := l.deploy()
			if exit.Code(err) != exit.RolledBack || !strings.Contains(err.Error(), c.says) ||
				strings.Contains(err.Error(), "context deadline exceeded") ||
				!strings.Contains(diag.HintOf(err), c.hinting) {
				t.Fatalf("exit code %d, %v, hint %q", exit.Code(err), err, diag.HintOf(err))
			}
			if got := l.inQuarantine(); len(got) != 0 || r.Fault == nil || r.Fault.Of != report.FaultOfHost ||
				r.Fault.Retry == nil {
				t.Errorf("the quarantine has %v; the fault is %+v", got, r.Fault)
			}
			noted(t, r, "the next run converges it")
			l.links("1", "1", "")
			l.Config.ExtPillar, l.Config.ConvergeTimeout = value.NewList(good), limit
			l.expect(exit.OK)
			l.links("2", "2", "1")
		})
	}
}

// TestMistakeInThePillarOfAReleaseIsNoOutage checks a source that answers, with a release whose pillar does not
// compile.
func TestMistakeInThePillarOfAReleaseIsNoOutage(t *testing.T) {
	t.Parallel()
	l := newLab(t)
	l.Engine = nil
	l.Config.ExtPillar = value.NewList(answering(t, "{}"))
	l.publish("1")
	l.expect(exit.OK)
	l.app("2", artifacttest.Files{"salt/config/states/top.sls": "base:\n  '*': [app]\n",
		"salt/config/states/app.sls": "a: {{ pillar['none'] }}\n"})
	l.expect(exit.RolledBack)
	if got := l.inQuarantine(); len(got) != 1 {
		t.Errorf("the quarantine has %v", got)
	}
}

// answering returns the configuration of a source of pillar data that a server provides.
func answering(t *testing.T, text string) *value.Map {
	t.Helper()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		_, _ = w.Write([]byte(text))
	}))
	t.Cleanup(server.Close)
	return value.NewMap("http_json", value.NewMap("url", server.URL))
}
