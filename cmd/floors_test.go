// Package cmd_test checks the code against the architecture: which package may import which.
package cmd_test

import (
	"encoding/json"
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

const module = "github.com/corpus-agent/corpus-agent/"

type pkg struct {
	ImportPath string
	Imports    []string
	Deps       []string
	Doc        string
	Name       string
	GoFiles    []string
}

func packages(t *testing.T) []pkg {
	t.Helper()
	// By directory: with a pattern of import paths, go would read the go.mod of modules that nothing here imports.
	cmd := exec.Command("go", "list", "-json=ImportPath,Imports,Deps,Doc,Name,GoFiles", "./...")
	cmd.Dir = ".."
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("go list: %v", err)
	}
	var list []pkg
	for d := json.NewDecoder(strings.NewReader(string(out))); ; {
		var p pkg
		if err := d.Decode(&p); errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			t.Fatal(err)
		}
		if len(p.GoFiles) > 0 {
			list = append(list, p)
		}
	}
	if len(list) < 20 {
		t.Fatalf("go list found %d packages", len(list))
	}
	return list
}

// floor returns the floor of a package; imports point down only.
func floor(path string) int {
	switch {
	case under(path, "grains"), path == "artifact", under(path, "state/value"), path == "state/diag",
		path == "state/redact", path == "state/yaml", path == "state/host/links", path == "artifact/durable",
		path == "artifact/process", path == "artifact/walk", path == "artifact/structsort", path == "artifact/redirect",
		path == "artifact/recipe", path == "artifact/cloud", path == "artifact/needs", path == "artifact/clone":
		return 1
	case under(path, "state") && path != "state":
		return 2
	case under(path, "state"), under(path, "artifact"), under(path, "packaging"):
		return 3
	case under(path, "agent"):
		return 4
	}
	return 5
}

// TestDocsListTheGroundFloor compares floor with the lists of floor 1 in CONTRIBUTING.md, docs/architecture.md and the
// linter's configuration.
func TestDocsListTheGroundFloor(t *testing.T) {
	var want []string
	for _, p := range packages(t) {
		path := strings.TrimPrefix(p.ImportPath, module)
		if above := filepath.Dir(path); floor(path) == 1 && (above == "." || above == "artifact" || floor(above) != 1) {
			want = append(want, path)
		}
	}
	slices.Sort(want)
	for file, list := range map[string]struct{ block, entry *regexp.Regexp }{
		"CONTRIBUTING.md": {regexp.MustCompile(`(?m)^    1  (.*(?:\n       .*)*)`), regexp.MustCompile(`[a-z/]+`)},
		"docs/architecture.md": {regexp.MustCompile(`(?m)^    1  \+-*\+((?:\n       \|.*)*)`),
			regexp.MustCompile(`([a-z/]+): `)},
		".golangci.yml": {regexp.MustCompile(`bottom:\n *files: \[(.*)\]`), regexp.MustCompile(`"\*\*/([a-z/]+)/\*\.go"`)},
	} {
		text, err := os.ReadFile("../" + file)
		if err != nil {
			t.Fatal(err)
		}
		block := list.block.FindStringSubmatch(string(text))
		if block == nil {
			t.Errorf("%s has no list of floor 1", file)
			continue
		}
		var got []string
		for _, entry := range list.entry.FindAllStringSubmatch(block[1], -1) {
			got = append(got, entry[len(entry)-1])
		}
		if slices.Sort(got); !slices.Equal(got, want) {
			t.Errorf("%s lists as floor 1\n%q; floor of cmd/floors_test.go has\n%q", file, got, want)
		}
	}
}

func under(path, room string) bool { return path == room || strings.HasPrefix(path, room+"/") }

func TestImportsPointDown(t *testing.T) {
	for _, p := range packages(t) {
		from := strings.TrimPrefix(p.ImportPath, module)
		for _, i := range p.Imports {
			to, ours := strings.CutPrefix(i, module)
			if !ours {
				continue
			}
			if floor(to) > floor(from) {
				t.Errorf("%s (floor %d) imports %s (floor %d)", from, floor(from), to, floor(to))
			}
			if floor(from) == 3 && floor(to) >= 2 && room(from) != room(to) {
				t.Errorf("%s imports %s: state, artifact and packaging never import each other", from, to)
			}
			if under(from, "agent") && from != "agent" && to == "agent" {
				t.Errorf("%s imports agent: packages below agent must not", from)
			}
			if under(to, "state/host") && to != "state/host" && !standsAlone(to) && under(from, "state/host") &&
				from != "state/host/machine" {
				t.Errorf("%s imports %s: only machine joins the rooms of a host", from, to)
			}
			for top, shared := range families() {
				if a, b := family(from, top, shared), family(to, top, shared); a != "" && b != "" && a != b {
					t.Errorf("%s imports %s: families of functions never import each other", from, to)
				}
			}
		}
	}
}

// mostFiles is the maximum number of files in a package, so that readers can find a file by its name.
const mostFiles = 30

// TestPackagesHaveFewFiles leaves out the language, whose parts depend on one another, Salt's state module file, with
// one file for each of its functions, and the program corpus, with one for each of its commands.
func TestPackagesHaveFewFiles(t *testing.T) {
	for _, p := range packages(t) {
		path := strings.TrimPrefix(p.ImportPath, module)
		if path != "state/jinja" && path != "state/module/file" && path != "cmd/corpus" && len(p.GoFiles) > mostFiles {
			t.Errorf("%s has %d files, and a package may have %d: move what belongs together to a package below it", path,
				len(p.GoFiles), mostFiles)
		}
	}
}

// standsAlone reports whether a package below state/host does not import it: state/host and its other packages import
// it.
func standsAlone(path string) bool {
	rooms := []string{"binding", "dialog", "links", "network", "outage", "packages/order", "passwd", "processes",
		"runnable", "terminal"}
	return slices.Contains(rooms, strings.TrimPrefix(path, "state/host/"))
}

func room(path string) string {
	r, _, _ := strings.Cut(path, "/")
	return r
}

// families returns the folders with a package for each Salt module, and the packages that several packages of a folder
// share. Below state/module, client has common code of clients of package managers and servers, owned makes files that
// belong to a user, pep440 compares versions of Python distributions, and sshkey reads keys. Below state/function,
// manual is the documentation of functions, ospath is Python's os.path, and table lists all functions.
func families() map[string][]string {
	return map[string][]string{
		"state/module":   {"client", "owned", "pep440", "sshkey"},
		"state/function": {"manual", "ospath", "table"},
	}
}

// family returns the package of the Salt module to which a path below a folder belongs, or "" for any other path.
func family(path, folder string, shared []string) string {
	f, ok := strings.CutPrefix(path, folder+"/")
	if !ok || slices.Contains(shared, room(f)) {
		return ""
	}
	return room(f)
}

func TestHostsCarryOnlyWhatHostsNeed(t *testing.T) {
	for _, p := range packages(t) {
		from := strings.TrimPrefix(p.ImportPath, module)
		for _, d := range p.Deps {
			dep := strings.TrimPrefix(d, module)
			if from == "cmd/corpus-agent" && (under(dep, "artifact/publish") || under(dep, "packaging/deb") ||
				strings.Contains(dep, "gitleaks") || under(dep, "packaging/oci") || strings.HasSuffix(dep, "/service/kms") ||
				strings.HasPrefix(dep, "google.golang.org/") || under(dep, "github.com/sigstore/sigstore") ||
				under(dep, "github.com/theupdateframework/go-tuf/v2")) {
				t.Errorf("corpus-agent links %s, which only publishers need", dep)
			}
			if from == "cmd/corpus" && (dep == "state" || dep == "state/families" || under(dep, "state/module") &&
				!under(dep, "state/module/aws") && !slices.Contains([]string{"state/module", "state/module/test"}, dep)) {
				t.Errorf("corpus links %s, but does not change hosts", dep)
			}
			if from == "cmd/corpus-agent" && (under(dep, "state/module/aws") || dep == "state/orchestration") {
				t.Errorf("corpus-agent links %s, but hosts do not change clouds", dep)
			}
		}
	}
}

func TestEveryPackageExplainsItself(t *testing.T) {
	for _, p := range packages(t) {
		if p.Doc == "" {
			t.Errorf("%s has no package comment", strings.TrimPrefix(p.ImportPath, module))
		}
	}
}

// TestFloorsBelowTheAgentDoNotLog checks that only agent/report and the programs log. Packages that are only linked
// into tests may log.
func TestFloorsBelowTheAgentDoNotLog(t *testing.T) {
	for _, p := range packages(t) {
		from := strings.TrimPrefix(p.ImportPath, module)
		if forTests(from) {
			continue
		}
		for _, i := range p.Imports {
			if (i == "log" || i == "log/slog") && floor(from) <= 3 {
				t.Errorf("%s imports %s: floors 1 to 3 return errors or call an observer", from, i)
			}
		}
	}
}

// forTests reports whether a package is only linked into tests: storetest and the packages below it, but not the Salt
// module test.
func forTests(path string) bool {
	return slices.ContainsFunc(strings.Split(path, "/"), func(name string) bool {
		return name != "test" && strings.HasSuffix(name, "test")
	})
}
