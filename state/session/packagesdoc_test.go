package session_test

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/corpus-agent/corpus-agent/state/families"
	"github.com/corpus-agent/corpus-agent/state/host"
	"github.com/corpus-agent/corpus-agent/state/host/machine"
	"github.com/corpus-agent/corpus-agent/state/session"
)

// TestArchitectureNamesThePackageOfEveryStateModule compares the table of docs/architecture.md with the registry. Each
// state module has a row, its package has its name, and the package comment has the name that SLS files use.
func TestArchitectureNamesThePackageOfEveryStateModule(t *testing.T) {
	text, err := os.ReadFile("../../docs/architecture.md")
	if err != nil {
		t.Fatal(err)
	}
	packages := statePackages(string(text))
	h, err := machine.New(host.Options{Root: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	modules := families.New(session.Settings{Host: h, ID: "docs"}).Modules()
	for name := range modules {
		path, ok := packages[name]
		switch {
		case !ok:
			t.Errorf("docs/architecture.md names no package of %s: add it to the table of state modules", name)
		case !slices.Contains(packagesFor(name), path):
			t.Errorf("docs/architecture.md: %s is in %s, want one of %q", name, path, packagesFor(name))
		default:
			checkPackageComment(t, name, path)
		}
	}
	for name := range packages {
		if _, ok := modules[name]; !ok {
			t.Errorf("docs/architecture.md names a package of %s, which is not a state module here", name)
		}
	}
}

var packageRow = regexp.MustCompile("(?m)^\\| ((?:`[a-z_0-9]+` )+)\\| `(state/module/[a-z0-9/]+)` \\|")

// statePackages reads the table of state modules: the package of each.
func statePackages(text string) map[string]string {
	packages := map[string]string{}
	for _, row := range packageRow.FindAllStringSubmatch(text, -1) {
		for _, name := range strings.Fields(row[1]) {
			packages[strings.Trim(name, "`")] = row[2]
		}
	}
	return packages
}

// packagesFor returns the possible packages of a state module: its name without underscores, as a Go package is named,
// or the part before the first one, for the modules of one program. The package of `module` has another name, since
// module is the contract of all of them.
func packagesFor(name string) []string {
	if name == "module" {
		return []string{"state/module/action"}
	}
	first, _, _ := strings.Cut(name, "_")
	return []string{"state/module/" + strings.ReplaceAll(name, "_", ""), "state/module/" + first}
}

// checkPackageComment fails if the comment of a package, in the file with its name, does not name the state module, or
// for several modules the common start of their names.
func checkPackageComment(t *testing.T, name, path string) {
	t.Helper()
	base := filepath.Base(path)
	text, err := os.ReadFile(filepath.Join("../..", path, base+".go"))
	if err != nil {
		t.Errorf("%s: the package comment and the functions of %s belong into a file with the package's name: %v", path, name,
			err)
		return
	}
	comment, _, _ := strings.Cut(string(text), "\npackage ")
	if !strings.Contains(comment, name+".") && !strings.Contains(comment, base+"_") {
		t.Errorf("%s: the package comment does not name %s", path, name)
	}
}
