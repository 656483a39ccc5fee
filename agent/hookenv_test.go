package agent_test

import (
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/corpus-agent/corpus-agent/agent/exit"
	"github.com/corpus-agent/corpus-agent/artifact/artifacttest"
)

// TestHooksGetTheDocumentedVariables compares the variables of a hook with the table of docs/deploy.md.
func TestHooksGetTheDocumentedVariables(t *testing.T) {
	text, err := os.ReadFile("../docs/deploy.md")
	if err != nil {
		t.Fatal(err)
	}
	_, table, _ := strings.Cut(string(text), "A hook's environment is clean:\n\n")
	table, _, _ = strings.Cut(table, "\n\n")
	var want []string
	for row := range strings.Lines(table) {
		for _, name := range regexp.MustCompile("`([A-Z_]+)`").FindAllStringSubmatch(strings.Split(row, "|")[1], -1) {
			want = append(want, name[1])
		}
	}
	l := newHookLab(t)
	t.Setenv("OF_THE_OPERATOR", "x")
	l.repo.Release("myapp", "1", "testing", artifacttest.Files{"version": "1"})
	l.expect(exit.OK)
	l.repo.Release("myapp", "2", "testing", artifacttest.Files{"version": "2",
		"hooks/pre-release.d/10-show": "#!/bin/sh\nexport -p\n"})
	r := l.expect(exit.OK)
	if len(r.Hooks["pre-release"]) != 1 {
		t.Fatalf("the report has the hooks %+v", r.Hooks)
	}
	var got []string
	exported := regexp.MustCompile(`(?m)^export ([A-Za-z_]+)`)
	for _, name := range exported.FindAllStringSubmatch(r.Hooks["pre-release"][0].Output, -1) {
		if name[1] != "PWD" && name[1] != "OLDPWD" { // the shell sets these
			got = append(got, name[1])
		}
	}
	if !slices.Contains(got, "CORPUS_PROCESS_TREE") { // only where the hook has no control group
		got = append(got, "CORPUS_PROCESS_TREE")
	}
	slices.Sort(want)
	if slices.Sort(got); !slices.Equal(got, want) {
		t.Errorf("a hook has the variables %q; docs/deploy.md has %q", got, want)
	}
}
