package aws_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/corpus-agent/corpus-agent/state/exec"
	"github.com/corpus-agent/corpus-agent/state/host"
	"github.com/corpus-agent/corpus-agent/state/module/aws"
	"github.com/corpus-agent/corpus-agent/state/orchestration"
	"github.com/corpus-agent/corpus-agent/state/roots"
	"github.com/corpus-agent/corpus-agent/state/session"
	"github.com/corpus-agent/corpus-agent/state/value"
)

const exampleTree = "../../../packaging/trees/orchestration"

// treeRunner runs SLS files of a tree against an imitation, as `corpus orchestrate` does.
type treeRunner struct {
	tree     string
	parallel int
}

func (o treeRunner) run(ctx context.Context, t testing.TB, cloud *aws.Cloud, dry bool, sls ...string) []*exec.Result {
	t.Helper()
	h, err := host.Open(host.Options{}, host.Caches{})
	if err != nil {
		t.Fatal(err)
	}
	cloud.Bootstrap = func(*value.Map) (string, error) { return "#!/bin/sh\n", nil }
	tree, err := filepath.Abs(o.tree)
	if err != nil {
		t.Fatal(err)
	}
	s := session.New(session.Settings{Host: h, ID: "workstation",
		Grains:  value.NewMap("id", "workstation", "service_instance", "testing"),
		Options: value.NewMap(), Test: dry, Strict: true, Parallel: o.parallel, Tables: orchestration.Tables{Cloud: cloud},
		States: []roots.Env{{Name: "base", Dirs: []string{tree}}},
		Pillar: []roots.Env{{Name: "base", Dirs: []string{filepath.Join(tree, "pillar")}}}})
	program, err := s.Program(ctx, s.Named(sls...))
	if err != nil {
		t.Fatal(err)
	}
	return s.Run(ctx, program, nil).All()
}

// expectNoChanges checks that there are want results, and that all succeeded without changes.
func expectNoChanges(t testing.TB, results []*exec.Result, want int) {
	t.Helper()
	if len(results) != want {
		t.Fatalf("there are %d results, want %d", len(results), want)
	}
	for _, r := range results {
		if r.Outcome != exec.Succeeded || r.Changes.Len() > 0 {
			t.Errorf("%s %s ends as %v with %s, %s", r.Step.Function(), r.Name(), r.Outcome, value.Repr(r.Changes), r.Comment)
		}
	}
}

// expectChanges checks that all results succeeded and have changes.
func expectChanges(t testing.TB, results []*exec.Result) {
	t.Helper()
	for _, r := range results {
		if r.Outcome != exec.Succeeded || r.Changes.Len() == 0 {
			t.Errorf("%s %s ends as %v with %s, %s", r.Step.Function(), r.Name(), r.Outcome, value.Repr(r.Changes), r.Comment)
		}
	}
}

// environments writes a tree with n copies of the example, each with its own names, and returns their SLS files.
func environments(t testing.TB, n int) (tree string, sls []string) {
	t.Helper()
	tree = t.TempDir()
	if err := os.CopyFS(tree, os.DirFS(exampleTree)); err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(filepath.Join(exampleTree, "orchestration/myapp.sls"))
	if err != nil {
		t.Fatal(err)
	}
	for i := range n {
		name := fmt.Sprintf("e%d", i)
		one := strings.ReplaceAll(string(text), "grains.get('service_instance', 'testing')", "'"+name+"'")
		if err := os.WriteFile(filepath.Join(tree, name+".sls"), []byte(strings.ReplaceAll(one, "myapp", name)),
			0o600); err != nil {
			t.Fatal(err)
		}
		sls = append(sls, name)
	}
	return tree, sls
}

// exampleAccount is an account with the resource that the example requires: the hosted zone of its domain.
type exampleAccount struct {
	*imitation
	groups    *securityGroups
	roles     *iamRoles
	queues    *queues
	alarms    *alarms
	balancers *balancers
	zones     *dnsZones
	scaling   *scaling
	templates *templates
}

func newExampleAccount(t testing.TB) *exampleAccount {
	t.Helper()
	a := &exampleAccount{groups: newSecurityGroups(1), roles: newIAMRoles(1), queues: newQueues(0), alarms: newAlarms(),
		balancers: newBalancers(), zones: newZones(1), scaling: newScaling(1), templates: newTemplates()}
	a.imitation = newImitation(t, a.groups, a.roles, a.queues, a.alarms, a.balancers, a.zones, a.scaling, a.templates)
	runState(t, a.cloud(), "boto_route53.hosted_zone_present", "{name: example.com.}", false)
	return a
}

// count returns the number of requests since the last call.
func (i *imitation) count() (all int) {
	for _, n := range i.requests {
		all += n
	}
	i.requests = map[string]int{}
	return all
}
