package cron_test

import (
	"context"
	"encoding/json"
	"os"
	"strings"
	"testing"

	"github.com/corpus-agent/corpus-agent/state/diag"
	"github.com/corpus-agent/corpus-agent/state/module"
	"github.com/corpus-agent/corpus-agent/state/module/cron"
	"github.com/corpus-agent/corpus-agent/state/statetest"
	"github.com/corpus-agent/corpus-agent/state/value"
)

// TestCrontabText compares crontabs byte by byte with those that Salt 3006 wrote after the same calls. Each
// line of the file is a crontab and a list of calls.
func TestCrontabText(t *testing.T) {
	data, err := os.ReadFile("../../../testdata/modules/account/crontabs.json")
	if err != nil {
		t.Fatal(err)
	}
	for i, line := range strings.Split(strings.TrimSpace(string(data)), "\n") {
		var c struct {
			Start string
			Steps []struct {
				Function, Result, Crontab string
				Arguments                 map[string]any
			}
		}
		if err := json.Unmarshal([]byte(line), &c); err != nil {
			t.Fatal(err)
		}
		h := statetest.NewHost(t)
		h.Cron.Tabs["root"] = c.Start
		table := cron.Functions(nil)
		for n, s := range c.Steps {
			before := h.Cron.Tabs["root"]
			did := call(t, h, table, s.Function, value.From(s.Arguments).(*value.Map))
			if got := h.Cron.Tabs["root"]; got != s.Crontab {
				t.Fatalf("line %d, step %d: %s of %v changed\n%s\nto\n%s\nwant\n%s", i+1, n+1, s.Function, s.Arguments,
					before, got, s.Crontab)
			}
			if want := s.Result != "present" && s.Result != "absent"; did != want {
				t.Errorf("line %d, step %d: %s of %v changed it: %t, want %t", i+1, n+1, s.Function, s.Arguments, did, want)
			}
		}
	}
}

// call runs a function and reports whether it changed anything.
func call(t testing.TB, h *statetest.Host, table module.Table, function string, arguments *value.Map) bool {
	t.Helper()
	resource := table[function]()
	_, problems := module.Decode(resource,
		module.Call{Function: function, Arguments: arguments, At: func(string) diag.Pos { return diag.Pos{} }})
	if err := problems.Err(); err != nil {
		t.Fatal(err)
	}
	diff, err := resource.Check(context.Background(), h.Host)
	if err != nil {
		t.Fatal(err)
	}
	if diff.Empty() {
		return false
	}
	if _, err := resource.Apply(context.Background(), h.Host, diff); err != nil {
		t.Fatal(err)
	}
	return true
}
