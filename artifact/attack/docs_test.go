package attack_test

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// testName matches the name of a test in docs.
var testName = regexp.MustCompile("`(Test[A-Za-z0-9_]+)`")

// TestDocsNameTestsThatExist checks that every test named in docs exists.
func TestDocsNameTestsThatExist(t *testing.T) {
	files, err := filepath.Glob("../../docs/*.md")
	if err != nil || len(files) < 10 {
		t.Fatalf("docs are %v, %v", files, err)
	}
	there := tests(t)
	for _, file := range append(files, "../../README.md", "../../CONTRIBUTING.md") {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		for _, n := range testName.FindAllStringSubmatch(string(text), -1) {
			if there[n[1]] == "" {
				t.Errorf("%s names the test %s, which does not exist", file, n[1])
			}
		}
	}
}

// TestThreatModelIsHeldByTests checks that each row of the threat model in docs/trust.md names tests that exist, and
// that every attack here is in the threat model.
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
		named := testName.FindAllStringSubmatch(cells[3], -1)
		if len(named) == 0 {
			t.Errorf("a row names no test: %s", line)
		}
		for _, n := range named {
			if there[n[1]] == "" {
				t.Errorf("the test %s does not exist: %s", n[1], line)
			}
		}
	}
	if rows < 15 {
		t.Errorf("the threat model has %d rows", rows)
	}
	for test, file := range there {
		if strings.HasPrefix(file, "../../artifact/attack/") && filepath.Base(file) != "docs_test.go" &&
			!strings.Contains(model, "`"+test+"`") {
			t.Errorf("%s is not in the threat model", test)
		}
	}
}

// tests returns the names of all tests in this repository, by file.
func tests(t *testing.T) map[string]string {
	t.Helper()
	found := map[string]string{}
	function := regexp.MustCompile(`(?m)^func (Test[A-Za-z0-9_]+)\(`)
	err := filepath.WalkDir("../..", func(file string, d fs.DirEntry, err error) error {
		if err != nil || !strings.HasSuffix(file, "_test.go") {
			return err
		}
		data, err := os.ReadFile(file)
		for _, f := range function.FindAllStringSubmatch(string(data), -1) {
			found[f[1]] = file
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return found
}
