package alias_test

import (
	"context"
	"slices"
	"strings"
	"testing"

	"github.com/corpus-agent/corpus-agent/state/host"
	"github.com/corpus-agent/corpus-agent/state/host/hosttest"
	"github.com/corpus-agent/corpus-agent/state/module"
	"github.com/corpus-agent/corpus-agent/state/module/alias"
	"github.com/corpus-agent/corpus-agent/state/statetest"
	"github.com/corpus-agent/corpus-agent/state/value"
)

func TestConformance(t *testing.T) {
	statetest.Run(t, statetest.Suite{
		State:     "alias",
		Functions: func(*statetest.Host) module.Table { return alias.Functions() },
		Cases:     statetest.Load(t, "../../../testdata/modules/account/alias.yaml"),
	})
}

// TestNewaliasesRunsAfterAChange checks that newaliases runs after a change if it exists, and that its failure is a
// warning.
func TestNewaliasesRunsAfterAChange(t *testing.T) {
	set := value.NewMap("name", "root", "target", "admin")
	for _, c := range []struct {
		name    string
		out     host.Output
		err     error
		warning string
	}{
		{"told", host.Output{}, nil, ""},
		{"refused by the mail system", host.Output{Code: 75, Stderr: "no mail today\n"}, nil, "no mail today"},
		{"below a root", host.Output{}, &host.Skipped{What: "newaliases"}, "would act on the running system"},
	} {
		t.Run(c.name, func(t *testing.T) {
			h := statetest.NewHost(t)
			h.Build(t, statetest.Tree{"/usr/bin/newaliases": {Kind: "file", Content: new(string), Mode: "0755"},
				"/etc": {Kind: "dir"}})
			var ran [][]string
			h.Commands = statetest.Commands(func(command host.Command) (host.Output, error) {
				ran = append(ran, command.Argv)
				return c.out, c.err
			})
			resource, diff := hosttest.Look(t, h.Host, alias.Functions(), "present", set)
			report, err := resource.Apply(context.Background(), h.Host, diff)
			if err != nil {
				t.Fatal(err)
			}
			if want := [][]string{{"/usr/bin/newaliases"}}; !slices.EqualFunc(ran, want, slices.Equal) {
				t.Errorf("ran %v, want %v", ran, want)
			}
			warnings := strings.Join(report.Warnings, "\n")
			if !strings.Contains(warnings, c.warning) || (c.warning == "") != (warnings == "") {
				t.Errorf("warns %q, want %q in it", warnings, c.warning)
			}
		})
	}
}
