package exec_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/rogpeppe/go-internal/txtar"

	"github.com/corpus-agent/corpus-agent/artifact/artifacttest"
	"github.com/corpus-agent/corpus-agent/state/compile"
	"github.com/corpus-agent/corpus-agent/state/exec"
	"github.com/corpus-agent/corpus-agent/state/families"
	"github.com/corpus-agent/corpus-agent/state/host"
	"github.com/corpus-agent/corpus-agent/state/host/hosttest"
	"github.com/corpus-agent/corpus-agent/state/host/machine"
	"github.com/corpus-agent/corpus-agent/state/roots"
	"github.com/corpus-agent/corpus-agent/state/session"
	"github.com/corpus-agent/corpus-agent/state/value"
)

// TestPlansMatchChanges runs the trees of testdata/plans/chroot, each in a new chroot with the tools of the machine.
func TestPlansMatchChanges(t *testing.T) {
	artifacttest.Long(t)
	forEachPlan(t, "chroot", func(t *testing.T, archive *txtar.Archive) {
		root := hosttest.Chroot(t)
		for _, name := range []string{"/bin/sh", "/bin/cat", "/usr/bin/test", "/usr/bin/touch", "/bin/mkdir"} {
			hosttest.Install(t, root, name)
		}
		checkPlan(t, archive, host.Options{Root: root, Chroot: true})
	})
}

func forEachPlan(t *testing.T, dir string, try func(*testing.T, *txtar.Archive)) {
	t.Helper()
	files, err := filepath.Glob("../../testdata/plans/" + dir + "/*.txtar")
	if err != nil || len(files) == 0 {
		t.Fatalf("%d plans: %v", len(files), err)
	}
	for _, file := range files {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".txtar"), func(t *testing.T) {
			archive, err := txtar.ParseFile(file)
			if err != nil {
				t.Fatal(err)
			}
			try(t, archive)
		})
	}
}

// resultCollector is an observer that collects the results of a run in the order in which the steps ended.
type resultCollector struct{ results []exec.Result }

func (*resultCollector) StepStarted(*compile.Step)      {}
func (p *resultCollector) StepDone(result *exec.Result) { p.results = append(p.results, *result) }

// checkPlan makes a dry run of the SLS t of a tree, a run, and another dry run. Each state must make the planned
// changes or have been unknown, and the last dry run must predict no known changes. States whose function is named in
// the comment of the archive, after "again:", act in each run.
func checkPlan(t *testing.T, archive *txtar.Archive, o host.Options) {
	t.Helper()
	for _, f := range archive.Files {
		hosttest.Put(t, filepath.Join(o.Root, planDir, f.Name), string(f.Data), 0o644)
	}
	plan, done, again := runOn(t, o, true), runOn(t, o, false), runOn(t, o, true)
	for _, problem := range planDifferences(plan, done) {
		t.Error(problem)
	}
	for _, r := range again {
		if r.Outcome == exec.Pending && !r.Unknown && !strings.Contains(string(archive.Comment), "again: "+
			""+r.Step.ID()) {
			t.Errorf("the second dry run predicts changes of %s: %s %s", stepName(r), r.Comment, value.Repr(r.Predicted))
		}
	}
}

// planDir is the directory of a plan's SLS files on its host.
const planDir = "/srv/plan"

func runOn(t *testing.T, o host.Options, dry bool) []exec.Result {
	t.Helper()
	h, err := machine.New(o)
	if err != nil {
		t.Fatal(err)
	}
	var seen resultCollector
	s := families.New(session.Settings{
		Host: h, ID: "plan", Grains: value.NewMap("id", "plan", "os_family", "Debian", "os", "Debian", "oscodename",
			"bookworm", "osarch", "amd64", "kernel", "Linux"),
		States: []roots.Env{{Name: "base", Dirs: []string{planDir}}},
	})
	if _, err := s.Call(context.Background(), "state.apply", []any{"t"}, value.NewMap("test", dry), &seen); err != nil {
		t.Fatal(err)
	}
	if os.Getenv("CORPUS_PLANS") != "" {
		for _, r := range seen.results {
			t.Logf("dry %t: %s %v unknown %t changes %s predicted %s: %s "+
				"%s", dry, stepName(r), r.Outcome.Value(), r.Unknown,
				value.Repr(r.Changes), value.Repr(r.Predicted), r.Comment, r.Warnings)
		}
	}
	return seen.results
}

func stepName(r exec.Result) string { return fmt.Sprintf("%s %s", r.Step.Function(), r.Step.Name()) }

// planDifferences returns the differences between the plan of a run and its results.
func planDifferences(plan, done []exec.Result) (problems []string) {
	expected := map[string]exec.Result{}
	for _, r := range plan {
		expected[r.Step.Tag()] = r
	}
	for _, r := range done {
		p, ok := expected[r.Step.Tag()]
		planned := p.Changes
		if p.Outcome == exec.Pending {
			planned = p.Predicted
		}
		why := ""
		switch {
		case !ok:
			why = "the plan does not name it"
		case p.Unknown:
		case (p.Outcome == exec.Failed) != (r.Outcome == exec.Failed):
			why = fmt.Sprintf("the plan says %v, the run %v", p.Outcome.Value(), r.Outcome.Value())
		case r.Outcome != exec.Failed && !value.Equal(planned, r.Changes):
			why = fmt.Sprintf("the plan says %s, the run %s", value.Repr(planned), value.Repr(r.Changes))
		}
		if why != "" {
			problems = append(problems, fmt.Sprintf("%s: %s\nplan: %s\nrun: %s", stepName(r), why, p.Comment, r.Comment))
		}
	}
	return problems
}

// TestPlansOfAHostMatchChanges runs the trees of testdata/plans/debian on the machine itself, which must be a
// disposable Debian system.
func TestPlansOfAHostMatchChanges(t *testing.T) {
	if os.Getenv("CORPUS_THROWAWAY_HOST") == "" {
		t.Skip("this changes the machine that it runs on; set CORPUS_THROWAWAY_HOST=1 on a disposable one")
	}
	forEachPlan(t, "debian", func(t *testing.T, archive *txtar.Archive) { checkPlan(t, archive, host.Options{}) })
}
