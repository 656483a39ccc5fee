package session_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/corpus-agent/corpus-agent/state/diag"
	"github.com/corpus-agent/corpus-agent/state/families"
	"github.com/corpus-agent/corpus-agent/state/value"
)

// expectation is the expected error of a line of an error case: # error: message // hint.
type expectation struct {
	line          int
	message, hint string
}

func expectations(text string) (all []expectation) {
	n := 0
	for line := range strings.Lines(text) {
		n++
		for _, part := range strings.Split(strings.TrimRight(line, "\n"), "# error: ")[1:] {
			message, hint, _ := strings.Cut(part, " // ")
			all = append(all, expectation{n, strings.TrimSpace(message), strings.TrimSpace(hint)})
		}
	}
	return all
}

// TestMistakesAreReportedWithPositions compiles the files of testdata/errors, each of which has the expected errors
// beside its bad lines. All of them must be reported at once, and no others.
func TestMistakesAreReportedWithPositions(t *testing.T) {
	files, err := filepath.Glob("../../testdata/errors/*.sls")
	if err != nil || len(files) < 20 {
		t.Fatalf("%d error cases: %v", len(files), err)
	}
	for _, name := range files {
		t.Run(strings.TrimSuffix(filepath.Base(name), ".sls"), func(t *testing.T) {
			if strings.HasPrefix(filepath.Base(name), "python-") {
				needPython(t)
			}
			text, err := os.ReadFile(name)
			if err != nil {
				t.Fatal(err)
			}
			set, dir := settings(t, map[string]string{
				"states/t.sls": string(text), "states/web/init.sls": "w:\n  test.nop: []\n", "states/web/map.jinja": "",
				"states/_states/mystate.py": "", "states/_modules/mymod.py": "",
			})
			set.Strict, set.Options = true, value.NewMap("strict_arguments", true)
			s := families.New(set)
			_, err = s.Program(t.Context(), s.Named("t"))
			list := mustProblems(t, err)
			wanted := expectations(string(text))
			if len(list) != len(wanted) || len(wanted) == 0 {
				t.Fatalf("%d problems, want %d:\n%v", len(list), len(wanted), list)
			}
			for _, w := range wanted {
				checkReported(t, list, w, dir+"/states/t.sls")
			}
		})
	}
}

// checkReported checks that a problem is reported on a line, with its position, an excerpt and a hint.
func checkReported(t *testing.T, list diag.List, w expectation, file string) {
	t.Helper()
	for _, p := range list {
		if p.Pos.Line != w.line || !strings.Contains(p.Message, w.message) || !strings.Contains(p.Hint, w.hint) {
			continue
		}
		if p.Pos.File != file || p.Pos.Col < 1 || p.Hint == "" || !strings.Contains(p.Excerpt, "^") {
			t.Errorf("the position, the hint or the excerpt is missing: %s", p.Text())
		}
		return
	}
	t.Errorf("no problem has %q and the hint %q on line %d:\n%v", w.message, w.hint, w.line, list)
}

// TestMistakesOfAllFilesAreReportedTogether checks mistakes in the pillar, in the top file and in several SLS files.
// Those of the pillar hide no others, unless these depend on it, and no template is rendered with an incomplete pillar.
func TestMistakesOfAllFilesAreReportedTogether(t *testing.T) {
	pillar := map[string]string{
		"pillar/top.sls": "base:\n  '*':\n    - one\n    - two # error: there is no pillar file \"two\"\n",
		"pillar/one.sls": "a: {{ nope.x }} # error: 'nope' is undefined // default\n",
	}
	states := map[string]string{
		"states/top.sls": `base:
  '*':
    - yaml
    - jinja
    - functions
    - included
    - gone # error: there is no SLS "gone" // make gone.sls
    - rendered
  'I@a and (':
    - yaml # error: target "I@a and ("
`,
		"states/yaml.sls":  "x:\n  file.managed:\n    - name: /x\n   - source: a # error: expected a key\n",
		"states/jinja.sls": "{% if %} # error: Expected an expression\n",
		"states/functions.sls": `a:
  file.manged: # error: no such state function // "file.managed"
    - name: /a
b:
  file.managed:
    - mode: [x] # error: is not a file mode // docs/states.md
  cmd.run:
    - require:
      - file: c
`,
		"states/included.sls": "include:\n  - nowhere # error: there is no SLS \"nowhere\"\n",
		"states/rendered.sls": "{% do salt['cmd.run']('touch ' ~ grains.place) %}\n",
	}
	for name, trees := range map[string][]map[string]string{"with a pillar": {states}, "without": {states, pillar}} {
		t.Run(name, func(t *testing.T) {
			files, wanted := map[string]string{}, 0
			for _, tree := range trees {
				for file, text := range tree {
					files[file] = text
					wanted += len(expectations(text))
				}
			}
			if name == "with a pillar" {
				files["pillar/top.sls"], files["pillar/one.sls"] = "base:\n  '*': [one]\n", "a: 1\n"
			}
			set, dir := settings(t, files)
			set.Grains.Set("place", dir+"/touched")
			s := families.New(set)
			_, err := s.Call(t.Context(), "state.apply", nil, value.NewMap(), nil)
			list := mustProblems(t, err)
			if len(list) != wanted {
				t.Errorf("%d problems, want %d", len(list), wanted)
			}
			for file, text := range files {
				for _, w := range expectations(text) {
					found := false
					for _, p := range list {
						found = found || p.Pos.File == dir+"/"+file && p.Pos.Line == w.line && strings.Contains(p.Message, w.message) &&
							strings.Contains(p.Hint, w.hint)
					}
					if !found {
						t.Errorf("no problem has %q at %s:%d:\n%v", w.message, file, w.line, list)
					}
				}
			}
			if _, err := os.Stat(dir + "/touched"); err == nil && name != "with a pillar" {
				t.Error("a template was rendered with an incomplete pillar")
			}
		})
	}
}

// TestStatesThatCannotRunSayWhere checks the positions in the results of states that compile and cannot run.
func TestStatesThatCannotRunSayWhere(t *testing.T) {
	set, dir := settings(t,
		map[string]string{"states/t.sls": "a:\n  file.manged: []\nb:\n  test.nop:\n    - require:\n      - file: nowhere\n" +
			"    - whatever: 1\n"})
	s := families.New(set)
	got, err := answer(t, s, "state.apply", "t")
	if err != nil {
		t.Fatal(err)
	}
	text := value.Repr(got)
	for _, want := range []string{dir + "/states/t.sls:2:3: file.manged: no such state function",
		"require: file: nowhere (" + dir + "/states/t.sls:5:7)"} {
		if !strings.Contains(text, want) {
			t.Errorf("%q is missing in %s", want, text)
		}
	}
}

// TestProblemsOfEveryCallHaveAnExcerpt calls the functions that show states with a file that does not compile.
func TestProblemsOfEveryCallHaveAnExcerpt(t *testing.T) {
	set, _ := settings(t, map[string]string{"states/t.sls": "a:\n  file.managed:\n    - require: 3\n",
		"states/top.sls": "base:\n  '*': [t]\n"})
	for _, name := range []string{"state.show_sls t", "state.show_low_sls t", "state.show_lowstate t",
		"state.show_lowstate", "state.apply t", "state.apply"} {
		words := strings.Fields(name)
		args := make([]any, len(words)-1)
		for i, word := range words[1:] {
			args[i] = word
		}
		_, err := answer(t, families.New(set), words[0], args...)
		for _, p := range mustProblems(t, err) {
			if !strings.Contains(p.Excerpt, "require: 3") {
				t.Errorf("%s shows no excerpt: %s", name, p.Text())
			}
		}
	}
}

// TestStatesThatAlwaysRunAreRecognized checks the mark of states that act in every run, and of one that reacts only to
// such a state. States with a guard, or that report their own changes, have no mark.
func TestStatesThatAlwaysRunAreRecognized(t *testing.T) {
	set, _ := settings(t, map[string]string{"states/t.sls": `
plain: {cmd.run: [{name: "true"}]}
guarded: {cmd.run: [{name: "true"}, {unless: "false"}]}
reacts: {cmd.run: [{name: "true"}, {onchanges: [{test: pretends}]}]}
says: {cmd.run: [{name: "echo changed=yes"}, {stateful: true}]}
fails: {cmd.run: [{name: "false"}]}
pretends: {test.succeed_with_changes: []}
nothing: {test.nop: []}
environment: {environ.setenv: [{value: x}]}
script: {cmd.script: [{source: salt://s.sh}]}
`, "states/s.sh": "#!/bin/sh\ntrue\n"})
	for _, dry := range []bool{true, false} {
		set.Test = dry
		s := families.New(set)
		p, err := s.Program(t.Context(), s.Named("t"))
		if err != nil {
			t.Fatal(err)
		}
		for _, r := range s.Run(t.Context(), p, nil).All() {
			want := r.ID() == "plain" || r.ID() == "reacts" || r.ID() == "pretends" || r.ID() == "environment" ||
				r.ID() == "script" || dry && r.ID() == "fails"
			if r.Always != want {
				t.Errorf("dry %v: %s is marked %v, want %v", dry, r.ID(), r.Always, want)
			}
		}
	}
}
