package agent_test

import (
	"bytes"
	"strings"
	"testing"

	"github.com/corpus-agent/corpus-agent/agent/exit"
	"github.com/corpus-agent/corpus-agent/artifact/artifacttest"
	"github.com/corpus-agent/corpus-agent/artifact/trust"
)

// newestHead is the key of the head of a project's metadata.
func newestHead(l *lab, project string) string {
	l.t.Helper()
	best := ""
	for key := range l.repo.Snapshot() {
		if strings.HasSuffix(key, "."+trust.HeadRole(project)+".json") &&
			(len(key) > len(best) || len(key) == len(best) && key > best) {
			best = key
		}
	}
	return best
}

// Metadata of one project that is too large, invalid or missing does not prevent a deploy of the other project.
func TestFailureOfOneProjectDoesNotPreventTheOther(t *testing.T) {
	artifacttest.Long(t)
	t.Parallel()
	for name, c := range map[string]struct {
		data []byte // nil for no metadata
		code int
	}{
		"too large": {bytes.Repeat([]byte(" "), 9<<20), exit.Refused},
		"invalid":   {[]byte(`{"signed": 1}`), exit.Refused},
		"missing":   {nil, exit.Unreachable},
	} {
		for _, broken := range []string{"myapp", "base"} {
			t.Run(name+" metadata of "+broken, func(t *testing.T) {
				l := newLab(t)
				l.publishBase("b1")
				l.publish("1")
				l.expect(exit.OK)
				l.publishBase("b2")
				l.publish("2")
				if err := l.repo.Store.Delete(t.Context(), newestHead(l, broken)); err != nil {
					t.Fatal(err)
				}
				if key := newestHead(l, broken); c.data != nil {
					l.repo.Replace(strings.Replace(key, "/1.", "/2.", 1), c.data)
				}
				r := l.expect(c.code)
				noted(t, r, broken+" is not changed")
				base, service := "b2", "1"
				if broken == "base" {
					base, service = "b1", "2"
				}
				if got := l.version("base/current"); got != base {
					t.Errorf("base is %q, want %q", got, base)
				}
				if got := l.version("service/current"); got != service {
					t.Errorf("the service is %q, want %q", got, service)
				}
				if r.Error == "" {
					t.Error("the report has no error")
				}
				// The next run converges the current pair, and reports the error again.
				convergesBefore := len(l.engine.converged)
				if l.expect(c.code); len(l.engine.converged) != convergesBefore+1 {
					t.Errorf("converged %d times more, want once", len(l.engine.converged)-convergesBefore)
				}
			})
		}
	}
}
