package agent_test

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/corpus-agent/corpus-agent/agent"
	"github.com/corpus-agent/corpus-agent/agent/exit"
	"github.com/corpus-agent/corpus-agent/agent/ledger"
	"github.com/corpus-agent/corpus-agent/artifact"
	"github.com/corpus-agent/corpus-agent/state/diag"
)

// TestHostWithBaseAsItsService checks that no way of giving a host base as its service deploys anything: base would be
// on it twice, with one set of links.
func TestHostWithBaseAsItsService(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		hostname string
		given    agent.Given
		spoil    func(l *lab)
	}{
		"by its hostname":     {hostname: "base-production-useast1-1"},
		"by the command line": {hostname: "web1", given: given("base", "production")},
		"by its configuration": {hostname: "web1", spoil: func(l *lab) {
			l.Config.Service, l.Config.Instance = "base", "production"
		}},
		"by an earlier deploy": {hostname: "web1", spoil: func(l *lab) {
			book, err := l.ReadLedger()
			must(t, err)
			book.Host.Service, book.Host.Instance = "base", "production"
			book.As = &ledger.As{Service: "base", Instance: "production"}
			base := artifact.Release{Project: "base", Version: "b0", Digest: artifact.PartOfDigest("0123456789ab")}
			book.Good = &ledger.Pair{Base: &base, Service: base}
			must(t, book.Save(l.Layout.Ledger()))
		}},
	} {
		t.Run(name, func(t *testing.T) {
			l := newLab(t)
			l.publishBase("b1")
			l.publish("1")
			l.Hostname = func() (string, error) { return c.hostname, nil }
			if c.spoil != nil {
				c.spoil(l)
			}
			_, err := l.Deploy(t.Context(), c.given, false)
			if exit.Code(err) != exit.Usage || !strings.Contains(err.Error(), "no host has base as its service") ||
				!strings.Contains(diag.HintOf(err), "corpus-agent deploy SERVICE INSTANCE") {
				t.Errorf("the deploy ended with %d, %v, hint %q", exit.Code(err), err, diag.HintOf(err))
			}
			if l.engine.last() != "" {
				t.Errorf("converged %q", l.engine.converged)
			}
			if found, _ := filepath.Glob(l.Layout.Path("/srv/projects/base/releases/*")); len(found) > 0 {
				t.Errorf("fetched %q", found)
			}
		})
	}
}
