package attack_test

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// TestThreatModelIsHeldByTests holds docs/trust.md against the tests: each row of the threat model
// names tests that exist, and no attack that is played here is missing from it.
func TestThreatModelIsHeldByTests(t *testing.T) {
	text, err := os.ReadFile("../../docs/trust.md")
	if err != nil {
		t.Fatal(err)
	}
	_, model, ok := strings.Cut(string(text), "## Threat model")
	if !ok {
		t.Fatal("docs/trust.md has no threat model")
	}
	model, _, _ = strings.Cut(model, "\n## ")
	there := tests(t)
	name := regexp.MustCompile("`(Test[A-Za-z]+)`")
	rows := 0
	for line := range strings.Lines(model) {
		cells := strings.Split(strings.Trim(strings.TrimSpace(line), "|"), "|")
		if !strings.HasPrefix(line, "|") || strings.HasPrefix(line, "|---") || strings.Contains(line, "| attacker |") {
			continue
		}
		rows++
		if len(cells) != 4 {
			t.Errorf("a row has %d cells, want attacker, capability, defence and test: %s", len(cells), line)
			continue
		}
		named := name.FindAllStringSubmatch(cells[3], -1)
		if len(named) == 0 {
			t.Errorf("no test is named: %s", line)
		}
		for _, n := range named {
			if there[n[1]] == "" {
				t.Errorf("there is no test %s: %s", n[1], line)
			}
		}
	}
	if rows < 15 {
		t.Errorf("the threat model has %d rows", rows)
	}
	for test, file := range there {
		if strings.HasPrefix(file, "../../artifact/attack/") && test != "TestThreatModelIsHeldByTests" && !strings.Contains(model, "`"+test+"`") {
			t.Errorf("%s is not in the threat model", test)
		}
	}
}

// tests are the tests of this repository, by the file they are in.
func tests(t *testing.T) map[string]string {
	t.Helper()
	found := map[string]string{}
	function := regexp.MustCompile(`(?m)^func (Test[A-Za-z0-9]+)\(`)
	for _, pattern := range []string{"../../*/*_test.go", "../../*/*/*_test.go", "../../*/*/*/*_test.go"} {
		files, err := filepath.Glob(pattern)
		if err != nil {
			t.Fatal(err)
		}
		for _, file := range files {
			data, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			for _, f := range function.FindAllStringSubmatch(string(data), -1) {
				found[f[1]] = file
			}
		}
	}
	return found
}
