package hosttest

import (
	"context"
	"testing"

	"github.com/corpus-agent/corpus-agent/state/diag"
	"github.com/corpus-agent/corpus-agent/state/host"
	"github.com/corpus-agent/corpus-agent/state/module"
	"github.com/corpus-agent/corpus-agent/state/value"
)

// Converge checks, applies and checks a state, as runs would. The changes must be those that the first check predicted,
// and the second check must find nothing to do. It returns the report of Apply.
func Converge(t testing.TB, h *host.Host, table module.Table, function string, arguments *value.Map) module.Report {
	t.Helper()
	ctx := context.Background()
	resource, diff := Look(t, h, table, function, arguments)
	if diff.Empty() {
		return module.Report{Changes: value.NewMap(), Comment: diff.Comment}
	}
	report, err := resource.Apply(ctx, h, diff)
	if err != nil {
		t.Fatalf("%s of %s: %v (hint: %s)", function, value.Repr(arguments), err, diag.HintOf(err))
	}
	if !value.Equal(diff.Changes, report.Changes) {
		t.Errorf("%s of %s: the planned changes are\n%s\nand the changes made are\n%s", function,
			value.Repr(arguments), value.Repr(diff.Changes),
			value.Repr(report.Changes))
	}
	if _, again := Look(t, h, table, function, arguments); !again.Empty() {
		t.Errorf("%s of %s: a second run would still change %s: %s", function, value.Repr(arguments),
			value.Repr(again.Changes), again.Comment)
	}
	return report
}

// Look creates a resource and returns the result of its Check.
func Look(t testing.TB, h *host.Host, table module.Table, function string, arguments *value.Map) (module.Resource,
	module.Diff) {
	t.Helper()
	resource := Resource(t, table, function, arguments)
	diff, err := resource.Check(context.Background(), h)
	if err != nil {
		t.Fatalf("checking %s of %s: %v", function, value.Repr(arguments), err)
	}
	return resource, diff
}

// Resource creates a resource from the arguments of a declaration.
func Resource(t testing.TB, table module.Table, function string, arguments *value.Map) module.Resource {
	t.Helper()
	resource := table[function]()
	call := module.Call{Function: function, Arguments: arguments, At: func(string) diag.Pos { return diag.Pos{} }}
	if warnings, problems := module.Decode(resource, call); len(warnings) > 0 || len(problems) > 0 {
		t.Fatalf("arguments of %s: %v %v", function, warnings, problems)
	}
	return resource
}
