package host_test

import (
	"context"
	"encoding/json"
	"os"
	"strings"
	"testing"

	"github.com/corpus-agent/corpus-agent/state/host"
	"github.com/corpus-agent/corpus-agent/state/host/hosttest"
	"github.com/corpus-agent/corpus-agent/state/module"
	hosts "github.com/corpus-agent/corpus-agent/state/module/host"
	"github.com/corpus-agent/corpus-agent/state/statetest"
	"github.com/corpus-agent/corpus-agent/state/value"
)

func TestConformance(t *testing.T) {
	statetest.Run(t, statetest.Suite{
		State:     "host",
		Functions: func(*statetest.Host) module.Table { return hosts.Functions() },
		Cases:     statetest.Load(t, "../../../testdata/modules/account/host.yaml"),
	})
}

// TestHostsText compares /etc/hosts byte by byte with the file that Salt 3006 wrote after the same calls, and the
// reported changes with Salt's. Each line of the test data is a file and a list of calls.
func TestHostsText(t *testing.T) {
	data, err := os.ReadFile("../../../testdata/modules/account/hosts.json")
	if err != nil {
		t.Fatal(err)
	}
	for i, line := range strings.Split(strings.TrimSpace(string(data)), "\n") {
		var c struct {
			Start string
			Steps []struct {
				Function, Hosts    string
				Arguments, Changes map[string]any
			}
		}
		if err := json.Unmarshal([]byte(line), &c); err != nil {
			t.Fatal(err)
		}
		h := statetest.NewHost(t)
		h.Build(t, statetest.Tree{"/etc/hosts": statetest.File(c.Start)})
		for n, s := range c.Steps {
			changes := call(t, h.Host, s.Function, value.From(s.Arguments).(*value.Map))
			text, err := h.Files.ReadFile("/etc/hosts")
			if err != nil {
				t.Fatal(err)
			}
			if string(text) != s.Hosts {
				t.Fatalf("line %d, step %d: %s of %v made\n%s\nwant\n%s", i+1, n+1, s.Function, s.Arguments, text, s.Hosts)
			}
			if want := value.From(s.Changes); !value.Equal(changes, want) {
				t.Errorf("line %d, step %d: %s of %v reports\n%s\nwant\n%s", i+1, n+1, s.Function, s.Arguments,
					value.Repr(changes), value.Repr(want))
			}
		}
	}
}

// call runs a function and returns its changes.
func call(t testing.TB, h *host.Host, function string, arguments *value.Map) *value.Map {
	t.Helper()
	resource, diff := hosttest.Look(t, h, hosts.Functions(), function, arguments)
	if diff.Empty() {
		return value.NewMap()
	}
	report, err := resource.Apply(context.Background(), h, diff)
	if err != nil {
		t.Fatal(err)
	}
	return report.Changes
}
