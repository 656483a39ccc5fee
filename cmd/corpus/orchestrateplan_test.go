package main

import (
	"strings"
	"testing"

	"github.com/corpus-agent/corpus-agent/state/compile"
	"github.com/corpus-agent/corpus-agent/state/exec"
	"github.com/corpus-agent/corpus-agent/state/value"
)

// TestPlansShowWhatDiffers prints the difference of long values, which is near their ends, and the warning of a state
// without changes.
func TestPlansShowWhatDiffers(t *testing.T) {
	long := strings.Repeat("x", 300)
	listener := func(certificate string) *value.Map {
		return value.NewMap("elb_port", 443, "note", long, "certificate", certificate)
	}
	plan := func(old, new any) string {
		var w strings.Builder
		fields(&w, value.NewMap("old", value.NewMap("field", old), "new", value.NewMap("field", new)))
		return w.String()
	}
	for want, got := range map[string]string{
		"~ field.certificate: 'a' -> 'b'": plan(value.NewList(listener("a"), "kept"), value.NewList(listener("b"), "kept")),
		"~ field.end: 1 -> 2":             plan(value.NewMap("begin", long, "end", 1), value.NewMap("begin", long, "end", 2)),
		"+ field: 'new'":                  plan(value.NewList(long, 1), value.NewList("new", 2, long)),
		"xxx1' -> …xxx":                   plan(long+"1", long+"2"),
		"- field.gone: 1":                 plan(value.NewMap("a", long, "gone", 1), value.NewMap("a", long, "b", long)),
		"~ field: 1 -> 2":                 plan(1, 2),
	} {
		if !strings.Contains(got, want) {
			t.Errorf("the plan is\n%swant %s", got, want)
		}
	}
	warned := &exec.Result{Step: &compile.Step{Chunk: value.NewMap("state", "boto_vpc", "fun", "present", "name", "net")},
		Outcome: exec.Succeeded, Changes: value.NewMap(), Warnings: []string{"cannot be changed"}}
	var w strings.Builder
	(&orchestrated{list: []*exec.Result{warned}, dry: true}).show(&w)
	if !strings.Contains(w.String(), "warning: cannot be changed") {
		t.Errorf("a plan with a warning prints %s", w.String())
	}
}

// TestDeletionsAreNamedAsThePlanShowsThem asks about a bucket by its name, which that of the state need not be.
func TestDeletionsAreNamedAsThePlanShowsThem(t *testing.T) {
	gone := &exec.Result{Step: &compile.Step{Chunk: value.NewMap("state", "boto_s3_bucket", "fun", "absent", "name", "x")},
		Outcome: exec.Pending, Changes: value.NewMap("old", value.NewMap("bucket", "m22-bucket", "id", "i"), "new", nil)}
	if got := (&orchestrated{list: []*exec.Result{gone}}).deletions(); len(got) != 1 ||
		got[0] != "boto_s3_bucket m22-bucket" {
		t.Errorf("the deletions are %q", got)
	}
}
