package report_test

import (
	"encoding/json"
	"math"
	"strings"
	"testing"

	"github.com/corpus-agent/corpus-agent/agent/report"
	"github.com/corpus-agent/corpus-agent/state/compile"
	"github.com/corpus-agent/corpus-agent/state/exec"
	"github.com/corpus-agent/corpus-agent/state/value"
)

// TestAnyChangesAreKept keeps a report of a state whose changes have keys and values that JSON does not have.
func TestAnyChangesAreKept(t *testing.T) {
	changes := value.NewMap("sizes", value.NewList(math.NaN(), math.Inf(-1), 1.5), "raw", []byte("\xff<"))
	for _, key := range []any{[]byte("k"), "b'k'", value.Tuple{1, "a"}, 2.5} {
		if err := changes.SetKey(key, 1); err != nil {
			t.Fatal(err)
		}
	}
	loop := value.NewMap()
	loop.Set("self", loop)
	changes.Set("loop", loop)
	result := &exec.Result{Outcome: exec.Succeeded, Changes: changes,
		Step: &compile.Step{Chunk: value.NewMap("state", "mine", "fun", "many", "name", "x", "__id__", "x")}}
	archive := report.Archive{Dir: t.TempDir()}
	if err := archive.Save(&report.Report{ID: "1", Steps: []report.Step{report.StepOf(result)}}, 2); err != nil {
		t.Fatal(err)
	}
	kept, err := archive.Load("1")
	if err != nil {
		t.Fatal(err)
	}
	got := kept.Steps[0].Changes
	got.Delete("loop")
	want := `{'sizes': ['nan', '-inf', 1.5], 'raw': "b'\\xff<'", "b'k'": 1, "b'k' (2)": 1, "(1, 'a')": 1, '2.5': 1}`
	if value.Repr(got) != want {
		t.Errorf("%s was kept, want %s", value.Repr(got), want)
	}
}

// TestChangesThatCannotBeWrittenAreLeftOut writes a step with a value that no encoder takes.
func TestChangesThatCannotBeWrittenAreLeftOut(t *testing.T) {
	data, err := json.Marshal([]report.Step{{ID: "x", Changes: value.NewMap("f", func() {})}})
	if err != nil || !strings.Contains(string(data), `"changes":{"left out":"the changes cannot be written as JSON: `) {
		t.Errorf("%s %v", data, err)
	}
}

// TestLastReportStays checks that a host that keeps no reports keeps the one of its last run, which `status` reads.
func TestLastReportStays(t *testing.T) {
	archive := report.Archive{Dir: t.TempDir()}
	for _, id := range []string{"1", "2"} {
		if err := archive.Save(&report.Report{ID: id}, 0); err != nil {
			t.Fatal(err)
		}
	}
	if ids, err := archive.IDs(); err != nil || len(ids) != 1 || ids[0] != "2" {
		t.Errorf("reports %q, %v", ids, err)
	}
}
