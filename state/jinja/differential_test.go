package jinja_test

import (
	"bytes"
	"encoding/json"
	"math/rand/v2"
	"os"
	"os/exec"
	"strings"
	"testing"

	"github.com/corpus-agent/corpus-agent/state/jinja"
	"github.com/corpus-agent/corpus-agent/state/value"
)

const python = "/usr/bin/python3"

// seeds are the seeds of the templates that each run of the tests compares.
var seeds = []uint64{1, 2, 3, 5, 8, 13, 21, 34}

// verdict is the result of a template in one of the two implementations.
type verdict struct {
	Out  string `json:"out"`
	Kind string `json:"kind"`
	Line int    `json:"line"`
	Why  string `json:"why"`
	Skip string `json:"skip"`
}

// sharedFiles are templates that generated templates include, import and extend.
var sharedFiles = map[string]string{
	"inc": "[{{ s }}{% if n %}{{ n }}{% endif %}]\n",
	"mac": "{% macro m(a, b=2) %}<{{ a }}{{ b }}{{ kwargs }}{{ varargs }}>{% endmacro %}\n" +
		"{% macro q() %}{{ caller() }}{% endmacro %}{% set v = [1, 2] %}",
	"base": "A{% block one %}1{{ s }}{% endblock %}\n{% block two scoped %}2{% endblock %}Z",
	"bad":  "line\n{{ missing }}\n",
}

const sharedVars = `{"s": "Hello, world", "e": "", "u": "Größe ñ", "n": 7, "z": 0, "g": -3, "f": 2.5, "t": true, "no": null,
	"l": [3, 1, 2], "w": ["b", "a", "C", "a"], "d": {"a": 1, "b": "x", "c": [1, 2], "items": 5}, "h": "<b>&\"'</b>",
	"m": {"x": {"y": {"z": 1}}, "k": null}, "us": [{"n": "zed", "g": 1, "a": 30}, {"n": "amy", "g": 2, "a": 25}, {"n": "bob", "g": 1, "a": 25}],
	"el": [], "ed": {}, "ln": "one\ntwo\n\nthree", "num": "42", "mix": [1, "a", null, 2.0, true]}`

func renderWithJinja2(t *testing.T, templates []string) []verdict {
	t.Helper()
	in, err := json.Marshal(map[string]any{"vars": json.RawMessage(sharedVars), "files": sharedFiles,
		"templates": templates})
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(python, "../../testdata/jinja/oracle.py")
	cmd.Stdin, cmd.Stderr = bytes.NewReader(in), os.Stderr
	out, err := cmd.Output()
	if err != nil {
		t.Fatal(err)
	}
	var verdicts []verdict
	if err := json.Unmarshal(out, &verdicts); err != nil {
		t.Fatal(err)
	}
	return verdicts
}

func renderHere(t *testing.T, template string) verdict {
	t.Helper()
	vars, err := value.FromJSON([]byte(sharedVars))
	if err != nil {
		t.Fatal(err)
	}
	out, err := render(jinja.Options{Loader: files(sharedFiles)}, template, value.Plainly(vars).(*value.Map))
	if err == nil {
		return verdict{Out: out}
	}
	e := jinjaError(t, err)
	return verdict{Kind: e.Kind, Line: e.Diagnostic.Pos.Line, Why: e.Diagnostic.Message}
}

// incomparable reports whether two results cannot be compared: they have addresses of objects, or one has an error of
// a limit that only this package has, or of Python before the template ran.
func incomparable(got, want verdict) bool {
	if want.Kind != "" && want.Line == 0 && got.Kind != "" {
		return true
	}
	if got.Kind == "UndefinedError" && got.Line == want.Line && strings.Contains(want.Why, "StrictUndefined") {
		return true // an undefined argument: Python's error names the type that a built-in function requires
	}
	return want.Skip != "" || strings.Contains(want.Out, "Markup(") || want.Kind == "SyntaxError" ||
		strings.Contains(strings.ToLower(want.Out), " at 0x") || strings.Contains(want.Why, " at 0x") ||
		strings.Contains(want.Out, "Undefined") || // in a mapping, whose values Salt prints one by one
		strings.Contains(want.Out, "<function ") || got.Kind == "LimitError"
}

// TestRenderMatchesJinja2 compares generated templates with Jinja2. Both must have the same output, or the same kind of
// error on the same line. JINJA_DIFFERENTIAL=seed,count makes a longer run by hand.
func TestRenderMatchesJinja2(t *testing.T) {
	if err := exec.Command(python, "-c", "import jinja2.sandbox").Run(); err != nil {
		t.Skip("needs /usr/bin/python3 with Jinja2: apt-get install python3-jinja2")
	}
	chosen, count := seeds, 150
	if s := os.Getenv("JINJA_DIFFERENTIAL"); s != "" {
		var seed uint64
		if err := json.Unmarshal([]byte("["+s+"]"), &[]any{&seed, &count}); err != nil {
			t.Fatal(err)
		}
		chosen = []uint64{seed}
	}
	var templates []string
	for _, seed := range chosen {
		g := &generator{Rand: rand.New(rand.NewPCG(seed, 0))}
		for range count {
			templates = append(templates, g.template())
		}
	}
	alike := map[string]int{}
	for i, want := range renderWithJinja2(t, templates) {
		got := renderHere(t, templates[i])
		switch {
		case incomparable(got, want):
			alike["incomparable"]++
		case got.Out != want.Out || got.Kind != want.Kind || got.Line != want.Line && want.Line > 0:
			t.Errorf("%q\n got %q %s on line %d: %s\nwant %q %s on line %d: %s", templates[i],
				got.Out, got.Kind, got.Line, got.Why, want.Out, want.Kind, want.Line, want.Why)
		case want.Kind == "":
			alike["output"]++
		default:
			alike[want.Kind]++
		}
	}
	t.Logf("seeds %v, %d templates: %v", chosen, len(templates), alike)
	if alike["output"] < len(templates)/4 {
		t.Errorf("only %d of %d templates had any output to compare", alike["output"], len(templates))
	}
}
