package table_test

import (
	"cmp"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/corpus-agent/corpus-agent/state/function"
	functions "github.com/corpus-agent/corpus-agent/state/function/table"
	"github.com/corpus-agent/corpus-agent/state/host"
)

// TestEveryModuleHasItsPackage checks a rule of docs/architecture.md: the functions of an execution module are in the
// package with its name, whose comment names the module.
func TestEveryModuleHasItsPackage(t *testing.T) {
	texts := map[string]string{} // of packages, by module
	for name := range functions.Acting(function.Facts{Host: &host.Host{}}) {
		module, _, _ := strings.Cut(name, ".")
		dir := cmp.Or(map[string]string{"lowpkg": "pkg", "ldap3": "ldap"}[module], module)
		text, ok := texts[module]
		if !ok {
			text = sourceOf(t, dir)
			texts[module] = text
			comment, _, _ := strings.Cut(text, "\npackage ")
			if !strings.Contains(comment, module+".") {
				t.Errorf("state/function/%s/%s.go: the package comment does not name %s", dir, dir, module)
			}
		}
		if !strings.Contains(text, `"`+module+".") {
			t.Errorf("%s is not in state/function/%s", name, dir)
		}
	}
}

// sourceOf returns the text of a package, beginning with the file that has its name.
func sourceOf(t *testing.T, dir string) string {
	t.Helper()
	files, err := filepath.Glob(filepath.Join("..", dir, "*.go"))
	if err != nil {
		t.Fatal(err)
	}
	text := ""
	for _, file := range files {
		data, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		if filepath.Base(file) == dir+".go" {
			text = string(data) + text
		} else {
			text += string(data)
		}
	}
	if text == "" {
		t.Fatalf("there is no package state/function/%s", dir)
	}
	return text
}
