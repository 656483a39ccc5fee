package aws_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/corpus-agent/corpus-agent/state/module"
	"github.com/corpus-agent/corpus-agent/state/module/aws"
	"github.com/corpus-agent/corpus-agent/state/value"
	"github.com/corpus-agent/corpus-agent/state/yaml"
)

// runState runs one state function, which must succeed, and returns its changes. A dry run only checks.
func runState(t testing.TB, cloud *aws.Cloud, function, arguments string, dry bool) *value.Map {
	t.Helper()
	changes, err := tryState(t, cloud, function, arguments, dry)
	if err != nil {
		t.Fatalf("%s: %v", function, err)
	}
	return changes
}

// tryState runs one state function and returns its changes and its error.
func tryState(t testing.TB, cloud *aws.Cloud, function, arguments string, dry bool) (*value.Map, error) {
	t.Helper()
	doc, err := yaml.LoadString(arguments, function)
	if err != nil {
		t.Fatal(err)
	}
	name, fun, _ := strings.Cut(function, ".")
	r, ok := aws.Tables(cloud)[name][fun]
	if !ok {
		t.Fatalf("there is no function %s", function)
	}
	resource := r()
	if _, problems := module.Decode(resource,
		module.Call{Function: function, Arguments: doc.Value.(*value.Map)}); len(problems) > 0 {
		t.Fatalf("%s: %v", function, problems)
	}
	if v, ok := resource.(module.Validated); ok {
		if err := v.Valid(); err != nil {
			t.Fatalf("%s: %v", function, err)
		}
	}
	diff, err := resource.Check(context.Background(), nil)
	if dry || err != nil || diff.Empty() {
		return diff.Changes, err
	}
	report, err := resource.Apply(context.Background(), nil, diff)
	return report.Changes, err
}

// resource is a state function with its arguments, and with other values of each argument, which a run must find and
// set.
type resource struct {
	function, base string
	drift          map[string]string // by description: arguments that replace those of base
	fixed          string            // arguments that cannot drift, or that the emulator does not keep
}

// try creates the resource and changes one argument after the other. A dry run must find the difference, a run must
// correct it, and the next run must change nothing. Each run has a new aws.Cloud.
func (r resource) try(t *testing.T, cloud func() *aws.Cloud) {
	t.Helper()
	run := func(arguments string, dry bool) *value.Map {
		t.Helper()
		return runState(t, cloud(), r.function, arguments, dry)
	}
	// these functions change a part of another resource
	part := []string{"boto_ec2.volumes_tagged", "boto_vpc.accept_vpc_peering_connection", "boto_iam.account_policy",
		"boto_ec2.private_ips_present"}
	if changes := run(r.base, true); !slices.Contains(part, r.function) &&
		(changes.Value("old") != nil || changes.Value("new") == nil) {
		t.Errorf("the plan of a new resource is %s", value.Repr(changes))
	}
	run(r.base, false)
	if changes := run(r.base, false); changes.Len() > 0 {
		t.Fatalf("a second run changes %s", value.Repr(changes))
	}
	for _, what := range sortedKeys(r.drift) {
		arguments := r.with(t, r.drift[what])
		planned := run(arguments, true)
		if planned.Len() == 0 {
			t.Errorf("%s: the drift is not found", what)
			continue
		}
		if done := run(arguments, false); !value.Equal(planned, done) {
			t.Errorf("%s: the plan says %s, and the run does %s", what, value.Repr(planned), value.Repr(done))
		}
		if again := run(arguments, false); again.Len() > 0 {
			t.Errorf("%s: another run changes %s", what, value.Repr(again))
		}
		run(r.base, false)
		if again := run(r.base, false); again.Len() > 0 {
			t.Errorf("%s: the rollback is not complete: %s", what, value.Repr(again))
		}
	}
}

// with returns base with the arguments of drift.
func (r resource) with(t *testing.T, drift string) string {
	t.Helper()
	base, err := yaml.LoadString(r.base, "base")
	if err != nil {
		t.Fatal(err)
	}
	other, err := yaml.LoadString("{"+drift+"}", "drift")
	if err != nil {
		t.Fatal(fmt.Errorf("%s: %w", drift, err))
	}
	m := base.Value.(*value.Map)
	m.Update(other.Value.(*value.Map))
	return yaml.Dump(m, yaml.DumpOptions{Indent: 2, Width: 200, Collections: yaml.Block})
}

// TestEachArgumentDrifts checks that the table of resources has each argument of each function.
func TestEachArgumentDrifts(t *testing.T) {
	tables := aws.Tables(&aws.Cloud{})
	for _, r := range resources() {
		name, fun, _ := strings.Cut(r.function, ".")
		arguments, _ := module.ArgumentsOf(tables[name][fun]())
		for _, a := range arguments {
			if strings.Contains(" name region key keyid profile "+r.fixed+" ", " "+a.Name+" ") ||
				strings.HasSuffix(a.Name, "_from_pillar") || strings.HasSuffix(a.Name, "_from_pillars") {
				continue
			}
			found := false
			for what := range r.drift {
				found = found || strings.HasPrefix(what, a.Name)
			}
			if !found {
				t.Errorf("%s: no drift of %s is tested", r.function, a.Name)
			}
		}
	}
}
