package python_test

import (
	"strings"
	"testing"

	"github.com/corpus-agent/corpus-agent/state/jinja"
	"github.com/corpus-agent/corpus-agent/state/value"
)

const objects = `
import datetime

class Version:
    def __init__(self, text):
        self.words = [int(word) for word in text.split(".")]
    def __eq__(self, other):
        return self.words == getattr(other, "words", None)
    def __lt__(self, other):
        return self.words < (other if isinstance(other, Version) else Version(other)).words
    def __gt__(self, other):
        return self.words > (other if isinstance(other, Version) else Version(other)).words
    def __str__(self):
        return ".".join(map(str, self.words))

class Own:
    text, _hidden = "t", 1
    def __getitem__(self, key):
        return {"a": "item a"}[key]
    def __contains__(self, key):
        return key == "x"
    def __repr__(self):
        return "<own>"
    def joined(self, *words, by="-"):
        return by.join(words)
    def fails(self):
        raise ValueError("the reason")

class Few:
    def __iter__(self):
        return iter([1, 2])

def all():
    return {"v9": Version("1.9"), "v10": Version("1.10"), "again": Version("1.9"), "own": Own(), "few": Few(),
            "date": datetime.date(2024, 1, 2), "set": {1, 2}}
`

// TestTemplatesUseObjects has templates use the attributes, methods, items and operators of Python's objects. What is
// expected is what Jinja2 does in Python.
func TestTemplatesUseObjects(t *testing.T) {
	w := start(t, &fakeSession{texts: map[string]string{"modules/m": objects}})
	vars, err := call(w, t.Context(), "m.all")
	if err != nil {
		t.Fatal(err)
	}
	env := jinja.New(jinja.Options{})
	for source, want := range map[string]string{
		"{{ v10 > v9 }} {{ v10 < v9 }} {{ v10 < '1.9' }} {{ '1.9' < v10 }}":            "True False False True",
		"{{ v9 == again }} {{ v9 != again }} {{ v9 == '1.9' }} {{ again in [1, v9] }}": "True False False True",
		"{{ [v10, v9, '1.2'] | max }} {{ [v10, v9] | min }}":                           "1.10 1.9",
		"{{ date.year + 1 }} {{ date.strftime('%d.%m') }} {{ date.replace(year=3) }}":  "2025 02.01 0003-01-02",
		"{{ (date - date).days }} {{ set - set == set }}":                              "0 False",
		"{{ own['a'] }} {{ own.b is defined }} {{ own._hidden is defined }}":           "item a False False",
		"{{ own.text }} {{ 'x' in own }} {{ 'y' in own }} {{ '%s' % own }}":            "t True False <own>",
		"{{ own.joined('a', 'b') }} {{ own.joined('a', 'b', by='') }}":                 "a-b ab",
		"{% for i in few %}{{ i }},{% endfor %}{{ own is iterable }}":                  "1,2,False",
		"{{ date is callable }} {{ date.ctime is callable }} {{ set is sequence }}":    "False True False",
		"{{ v9 + 3 }}":         "Version: TypeError: unsupported operand type(s) for +: 'Version' and 'int'",
		"{{ own.fails() }}":    "method: ValueError: the reason (/tree/modules/m.py:",
		"{{ v9.nothing }}":     "has no attribute 'nothing'",
		"{{ v9 | length }}":    "object of type 'Version' has no len()",
		"{{ v9.words | sum }}": "10",
	} {
		checkRendered(t, env, vars.(*value.Map), source, want)
	}
	w.Close()
	for source, want := range map[string]string{
		"{{ date }} {{ date == own }} {{ date != 1 }} {{ 1 in set }}": "2024-01-02 False True True",
		"{{ date < 3 }}":  "has ended, so < is not supported",
		"{{ date.year }}": "has no attribute 'year'",
	} {
		checkRendered(t, env, vars.(*value.Map), source, want)
	}
}

// checkRendered renders a template, and compares its text, or part of its error.
func checkRendered(t *testing.T, env *jinja.Env, vars *value.Map, source, want string) {
	t.Helper()
	template, err := env.Parse(jinja.Source{Name: "t", Text: source})
	got := "nothing"
	if err == nil {
		var out *jinja.Output
		if out, err = template.Render(t.Context(), vars); err == nil {
			got = out.Text
		} else {
			got = err.Error()
		}
	}
	if got != want && (err == nil || !strings.Contains(got, want)) {
		t.Errorf("%s: got %q, want %q", source, got, want)
	}
}
