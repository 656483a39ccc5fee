package check_test

import (
	"bytes"
	"context"
	"encoding/json"
	"encoding/xml"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/corpus-agent/corpus-agent/state/check"
)

// tree writes files below a directory.
func tree(t *testing.T, files map[string]string) string {
	t.Helper()
	dir := t.TempDir()
	for name, text := range files {
		file := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

// openTree returns the files below a directory.
func openTree(t *testing.T, dir string) fs.FS {
	t.Helper()
	root, err := os.OpenRoot(dir)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = root.Close() })
	return root.FS()
}

func checked(t *testing.T, matrix string, dirs ...string) *check.Report {
	t.Helper()
	minions := check.Defaults("app")
	if matrix != "" {
		var err error
		if minions, err = check.Matrix(matrix, "hosts.yaml"); err != nil {
			t.Fatal(err)
		}
	}
	var trees []check.Source
	for _, dir := range dirs {
		trees = append(trees, check.Source{Dir: dir, Files: openTree(t, dir)})
	}
	report, err := check.Trees(context.Background(), trees, minions)
	if err != nil {
		t.Fatal(err)
	}
	return report
}

func TestMistakesOfSomeHosts(t *testing.T) {
	dir := tree(t, map[string]string{
		"states/top.sls": "base:\n  '*': [web]\n  'os_family:RedHat': [{match: grain}, rpm]\n  'no*': [unused]\n",
		"states/web.sls": "web:\n  pkg.installed:\n    - name: {{ {'Debian': 'apache2', 'RedHat': " +
			"'httpd'}[grains.os_family] }}\n",
		"states/rpm.sls":    "x:\n  file.managed:\n    - name: {{ pillar.missing }}\n",
		"pillar/top.sls":    "base: {'*': [p], 'role:db': [{match: grain}, db]}\n",
		"pillar/p.sls":      "include: [q]\nport: 80\n",
		"pillar/q/init.sls": "a: {{ grains.id }}\n",
		"pillar/db.sls":     "a: 1\n", "pillar/x/y.sls": "",
		"states/unused.sls": "n: {test.nop: []}\n",
	})
	r := checked(t, "", dir)
	mistakes := r.Mistakes()
	if len(mistakes) != 1 || mistakes[0].Pos.File != filepath.Join(dir, "states/rpm.sls") || mistakes[0].Pos.Line != 3 ||
		!slices.Equal(mistakes[0].Minions, []string{"app-testing-useast1-31", "app-production-useast1-32"}) {
		t.Errorf("mistakes are %+v", mistakes)
	}
	if !slices.Equal(r.Unused, []string{"unused"}) || !slices.Equal(r.UnusedPillar, []string{"db", "x.y"}) {
		t.Errorf("unused are %q, and %q of the pillar", r.Unused, r.UnusedPillar)
	}
	if h := r.Hosts[0]; h.States != 1 || !slices.Equal(h.SLS, []string{"web"}) {
		t.Errorf("a Debian host gets %+v", h)
	}
}

func TestFindingsOfCompiledTrees(t *testing.T) {
	for sls, want := range map[string]string{
		"a:\n  file.managed:\n    - {{ 'contnts' }}: x\n": "file.managed has no argument contnts",
		"a:\n  file.managed:\n    - {{ 'decrypt_with' }}: x\n": "file.managed has no argument " +
			"decrypt_with",
		"a:\n  file.{{ 'mangd' }}: []\n":                                           "mangd",
		"a:\n  test.nop:\n    - require: [{file: /b}]\n":                           "/b",
		"a:\n  test.nop: []\n{% include 'no.j2' %}\n":                              "no.j2",
		"include: [none]\n":                                                        "none",
		"{% set x = salt['no.such'](1) %}\n":                                       "no.such",
		"a:\n  file.managed:\n    - contents: {{ salt['pillar.get']('x').y.z }}\n": "",
	} {
		dir := tree(t, map[string]string{"top.sls": "base: {'*': [a]}\n", "a.sls": sls})
		r := checked(t, "h1: {}\nh2: {os: Rocky}\n", dir)
		if found := r.Mistakes(); len(found) != 1 || !strings.Contains(found[0].Message, want) {
			t.Errorf("%s\ngives %+v, want one mistake with %q", sls, found, want)
		} else if len(found[0].Minions) == 1 {
			t.Errorf("%s\nis reported for %s only, want all hosts", sls, found[0].Minions)
		}
	}
}

// TestHostFunctionsInTemplatesAreNotRun checks that functions whose results depend on a host are reported as notes and
// not run.
func TestHostFunctionsInTemplatesAreNotRun(t *testing.T) {
	witness := filepath.Join(t.TempDir(), "ran")
	for _, call := range []string{
		"salt['cmd.run']('touch " + witness + "')", "salt['pkg.version']('bash')", "salt['file.file_exists']('/etc/passwd')",
		"'/etc/passwd' | file_hashsum", "salt['service.status']('ssh')",
	} {
		dir := tree(t, map[string]string{"top.sls": "base: {'*': [a]}\n",
			"a.sls": "a:\n  file.managed:\n    - contents: {{ " + call + " }}\n"})
		r := checked(t, "h1: {}\n", dir)
		if len(r.Mistakes()) != 0 || len(r.Findings) != 1 || !r.Findings[0].Note {
			t.Errorf("%s gives %+v, want a note", call, r.Findings)
		}
	}
	if _, err := os.Lstat(witness); err == nil {
		t.Error("a command of a template ran")
	}
}

// TestProgramsOfTrees checks that Python code of a tree is not run.
func TestProgramsOfTrees(t *testing.T) {
	witness := filepath.Join(t.TempDir(), "ran")
	touch := "open('" + witness + "', 'w')\n"
	dir := tree(t, map[string]string{
		"top.sls": "base: {'*': [a, b, c]}\n", "a.sls": "#!py\n" + touch + "def run():\n    return {}\n",
		"b.sls": "b:\n  file.managed:\n    - contents: {{ salt['mine.f']() }}\n", "c.sls": "c:\n  mine.present: []\n",
		"_modules/mine.py": touch + "def f():\n    return 1\n", "_states/mine.py": touch + "def present(name):\n    pass\n",
		"_grains/mine.py": touch + "def g():\n    return {}\n",
	})
	if r := checked(t, "h1: {}\n", dir); len(r.Mistakes()) != 0 || len(r.Findings) != 2 || r.Hosts[0].States != 1 {
		t.Errorf("findings are %+v, want two notes beside the state that needs no Python", r)
	}
	if _, err := os.Lstat(witness); err == nil {
		t.Error("a program of the tree ran")
	}
}

// TestLinksOutOfTheTree checks that links to a file and a directory outside of the tree are not read.
func TestLinksOutOfTheTree(t *testing.T) {
	outside := tree(t, map[string]string{"secret": "hunter2: x\n"})
	for name, target := range map[string]string{"a.sls": "secret", "d": "."} {
		dir := tree(t,
			map[string]string{"top.sls": "base: {'*': [a]}\n", "b.sls": "{% import_text 'd/secret' as s %}\n{{ s }}: 3\n"})
		if err := os.Symlink(filepath.Join(outside, target), filepath.Join(dir, name)); err != nil {
			t.Fatal(err)
		}
		r := checked(t, "h1: {}\n", dir)
		if len(r.Mistakes()) != 1 || r.Findings[0].Pos.File != filepath.Join(dir, name) ||
			r.Findings[0].Message != "this link leads out of the tree" {
			t.Errorf("findings are %+v", r.Findings)
		}
	}
	dir := tree(t, map[string]string{"top.sls": "base: {'*': [a]}\n", "b.sls": "b: {test.nop: []}\n"})
	if err := os.Symlink("b.sls", filepath.Join(dir, "a.sls")); err != nil {
		t.Fatal(err)
	}
	if r := checked(t, "h1: {}\n", dir); len(r.Findings) != 0 || r.Hosts[0].States != 1 {
		t.Errorf("a link inside of the tree gives %+v", r)
	}
}

func TestEachMistakeIsOneFinding(t *testing.T) {
	dir := tree(t, map[string]string{"top.sls": "base: {'*': [a]}\n", "a.sls": "/a:\n  file.manged: []\n"})
	if r := checked(t, "h1: {}\n", dir); len(r.Findings) != 1 || len(r.Findings[0].Minions) != 0 {
		t.Errorf("findings are %+v, want one of every host", r.Findings)
	}
}

func TestServiceBeforeBase(t *testing.T) {
	service := tree(t, map[string]string{"states/top.sls": "base: {'*': [app]}\n",
		"states/app.sls": "include: [common]\n"})
	base := tree(t, map[string]string{"states/top.sls": "base: {'*': [common]}\n",
		"states/common.sls": "c: {test.nop: []}\n"})
	if r := checked(t, "h: {}\n", service, base); len(r.Findings) > 0 || r.Hosts[0].States != 1 {
		t.Errorf("both trees give %+v", r)
	}
	if r := checked(t, "h: {}\n", service); len(r.Mistakes()) != 1 {
		t.Errorf("a service without the SLS file that it includes gives %+v", r.Findings)
	}
}

// TestPillarFilesThatNoHostGets checks files of the pillar that are not rendered for any host.
func TestPillarFilesThatNoHostGets(t *testing.T) {
	for text, broken := range map[string]bool{
		"a: [1\n": true, "a: 1\n b: 2\n": true, "a {{ grains.id }}\nb: 1\n": true, "- a\n": true, "a\n": true,
		"a: {{ grains.id }}\nb: [\n": true, "a: {{ grains.id\n": true, "{% if x %}\na: 1\n": true,
		"": false, "a: {{ grains.id }}\n": false, "a_{{ x }}: 1\na_{{ y }}: 2\n": false, "{{ x }}\nb: 1\n": false,
		"{% if x %}\na: 1\n{% else %}\na: 2\n{% endif %}\n": false, "- {{ x }}: 1\n": false,
		"#!py\ndef run(): return {}\n": false, "# {{ x }}\na: '{{ x }}' # b\n": false,
	} {
		dir := tree(t, map[string]string{"states/top.sls": "base: {'*': []}\n", "pillar/web.sls": text,
			"pillar/top.sls": "base: {'role:web': [{match: grain}, web]}\n"})
		r := checked(t, "h: {}\n", dir)
		if found := r.Mistakes(); len(found) > 0 != broken || !slices.Equal(r.UnusedPillar, []string{"web"}) {
			t.Errorf("%q gives %+v, unused %q", text, found, r.UnusedPillar)
		}
	}
}

// TestPillarThatOnlyHostsCompile checks a tree whose pillar, or top file, is a program, for one host of two.
func TestPillarThatOnlyHostsCompile(t *testing.T) {
	for what, program := range map[string]string{"pillar": "pillar/p.sls", "top file": "states/top.sls"} {
		files := map[string]string{"states/top.sls": "base: {'*': [app]}\n", "states/app.sls": "a: {test.nop: []}\n",
			"pillar/top.sls": "base: {'h': [p]}\n", "pillar/p.sls": "a: 1\n", "pillar/q.sls": "a: 1\n"}
		files[program] = "#!py\ndef run():\n    return {}\n"
		r := checked(t, "h: {}\nother: {}\n", tree(t, files))
		want := "the states of hosts whose " + what + " depends on what only hosts know were not compiled"
		if len(r.Mistakes()) > 0 || len(r.Unused)+len(r.UnusedPillar) > 0 || len(r.Findings) != 2 ||
			!slices.ContainsFunc(r.Findings, func(f check.Finding) bool {
				return f.Message == want && f.Minions[0] == "h"
			}) {
			t.Errorf("%s: %+v, unused %q, %q", what, r.Findings, r.Unused, r.UnusedPillar)
		}
	}
}

func TestPillarOutsideOfTheTree(t *testing.T) {
	states := tree(t, map[string]string{"top.sls": "base: {'*': [a]}\n",
		"a.sls": "a:\n  file.managed:\n    - contents: {{ pillar.port }}\n"})
	pillar := tree(t, map[string]string{"top.sls": "base: {'*': [p]}\n", "p.sls": "port: 80\n"})
	r, err := check.Trees(context.Background(), []check.Source{{Dir: states, Files: openTree(t, states)},
		{Dir: pillar, Files: openTree(t, pillar), Pillar: true}}, check.Defaults("app"))
	if err != nil || len(r.Findings) > 0 || len(r.Unused) > 0 || r.Hosts[0].States != 1 {
		t.Errorf("the tree with its pillar gives %+v, %v", r, err)
	}
}

func TestMatrixOfHosts(t *testing.T) {
	minions, err := check.Matrix(`{"web-testing-euwest1-7": {"os": "Ubuntu"}, "b": null}`, "m.json")
	if err != nil || len(minions) != 2 {
		t.Fatal(minions, err)
	}
	for name, want := range map[string]any{"os_family": "Debian", "oscodename": "noble", "id": "web-testing-euwest1-7"} {
		if got := minions[0].Grains.Value(name); got != want {
			t.Errorf("%s is %v, want %v", name, got, want)
		}
	}
	if one, err := check.Matrix(`{"id": "x", "os": "Arch"}`, "grains.json"); err != nil || one[0].ID != "x" ||
		one[0].Grains.Value("os") != "Arch" {
		t.Errorf("the grains of one host are %v, %v", one, err)
	}
	for _, text := range []string{"", "[]", "1: {}", "a: 3", "a: [", "{}"} {
		if m, err := check.Matrix(text, "m.yaml"); err == nil {
			t.Errorf("%q is read as %v", text, m)
		}
	}
}

func TestFormatsOfReports(t *testing.T) {
	dir := tree(t,
		map[string]string{"top.sls": "base: {'*': [a]}\n", "a.sls": "a:\n  file.mangd: []\nb:\n  cmd.run: []\n"})
	r := checked(t, "h1: {}\n", dir)
	var sarif, junit, plain bytes.Buffer
	if err := check.WriteSARIF(&sarif, r, "1.0"); err != nil {
		t.Fatal(err)
	}
	if err := check.WriteJUnit(&junit, r); err != nil {
		t.Fatal(err)
	}
	if err := check.WriteJSON(&plain, r); err != nil {
		t.Fatal(err)
	}
	var log struct {
		Version string
		Runs    []struct {
			Results []struct {
				Level     string
				Message   struct{ Text string }
				Locations []struct {
					PhysicalLocation struct{ Region struct{ StartLine int } }
				}
			}
		}
	}
	if err := json.Unmarshal(sarif.Bytes(), &log); err != nil || log.Version != "2.1.0" ||
		len(log.Runs[0].Results) != len(r.Findings) ||
		log.Runs[0].Results[0].Level != "error" ||
		log.Runs[0].Results[0].Locations[0].PhysicalLocation.Region.StartLine != 2 {
		t.Errorf("SARIF is %v\n%s", err, sarif.Bytes())
	}
	var suite struct {
		Failures int `xml:"failures,attr"`
		Tests    int `xml:"tests,attr"`
	}
	if err := xml.Unmarshal(junit.Bytes(), &suite); err != nil || suite.Tests != 2 || suite.Failures == 0 {
		t.Errorf("JUnit is %v\n%s", err, junit.Bytes())
	}
	var doc struct {
		Findings []struct{ Kind, Hint string }
	}
	if err := json.Unmarshal(plain.Bytes(), &doc); err != nil || len(doc.Findings) != len(r.Findings) ||
		doc.Findings[0].Kind != "mistake" {
		t.Errorf("JSON is %v\n%s", err, plain.Bytes())
	}
}

// TestPythonOfATreeIsForHosts checks that Python modules of a tree are reported as notes, since they run only on hosts.
func TestPythonOfATreeIsForHosts(t *testing.T) {
	r := checked(t, "", tree(t, map[string]string{
		"states/top.sls":          "base: {'*': [program, module]}\n",
		"states/program.sls":      "#!py\ndef run():\n    return {}\n",
		"states/module.sls":       "a:\n  own.there:\n    - name: {{ salt['mine.f']() }}\n",
		"states/_modules/mine.py": "def f():\n    return 1\n",
		"states/_states/own.py":   "def there(name):\n    return {}\n",
	}))
	if len(r.Mistakes()) != 0 || len(r.Findings) != 2 {
		t.Errorf("findings are %+v", r.Findings)
	}
}
