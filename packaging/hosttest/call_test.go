//go:build hosts

package hosttest_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/corpus-agent/corpus-agent/packaging/hosttest/lab"
)

// TestCall runs states by hand, as salt-call does, on a host without a deployed release.
func TestCall(t *testing.T) {
	h := lab.Boot(t, lab.Options{Hostname: "myapp-testing-local1-1"})
	install(t, h)
	h.CopyTree(cases, "/opt/states")
	for _, name := range []string{"file", "service", "system"} {
		if r := h.Run("corpus-agent", "call", "--states", "/opt/states", "state.apply", name, "test=True"); r.Code != 0 {
			t.Errorf("%s, dry: exit code %d\n%s%s", name, r.Code, r.Out, r.Err)
		}
		if h.Exists("/etc/app/app.conf") && name == "file" {
			t.Error("a dry run made a file")
		}
		h.Must("corpus-agent", "call", "--states", "/opt/states", "state.apply", name)
		again := h.Must("corpus-agent", "call", "--states", "/opt/states", "--out", "json", "state.apply", name)
		if left := answers(t, again, func(a answer) bool { return !a.Result || len(a.Changes) > 0 }); len(left) > 0 {
			t.Errorf("%s: the second run has\n%s", name, strings.Join(left, "\n"))
		}
	}
	if got := h.Sh("corpus-agent call --out json service.status cron"); !strings.Contains(got, "true") {
		t.Errorf("service.status returns %s", got)
	}
	r := h.Run("corpus-agent", "call", "--states", "/opt/states", "state.single", "service.running", "no-such-unit")
	if r.Code != 3 || !strings.Contains(r.Out+r.Err, "no-such-unit") {
		t.Errorf("a unit that does not exist: exit code %d\n%s%s", r.Code, r.Out, r.Err)
	}
}

type answer struct {
	Result  bool
	Changes map[string]any
	Comment string
}

// answers returns the states in JSON output that the test selects.
func answers(t *testing.T, out string, wanted func(answer) bool) []string {
	t.Helper()
	var all map[string]map[string]answer
	if err := json.Unmarshal([]byte(out), &all); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	var found []string
	for name, a := range all["local"] {
		if wanted(a) {
			found = append(found, name+": "+a.Comment)
		}
	}
	if len(all["local"]) == 0 {
		t.Errorf("the answer has no states:\n%s", out)
	}
	return found
}
