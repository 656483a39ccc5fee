package syntax

import (
	"errors"
	"os"
	"strings"
	"testing"
)

// addTemplates adds the templates of the recorded cases, and incomplete templates, to the corpus of a fuzz target.
func addTemplates(f *testing.F) {
	f.Helper()
	for _, text := range []string{
		"", "{{ a.b['c'](1, *d, **e) | f(g=1) is h }}", "{% for x, y in z if w recursive %}{% else %}{% endfor %}",
		"{%- raw -%}{{ {%- endraw -%}",
		"{% macro m(a, b=1) %}{% endmacro %}{% call(x) m() %}{% endcall %}", "{# {{ #}", "{{ '\\x41\\u00e9\\N{DASH}' }}",
		"{% set a.b, c = 1 %}",
		"{% load_yaml as x %}{% endload %}{% import_json 'a' as b %}", "{{ 1_0.5e-3 // 2 ** -3 ~ not a }}", "{%", "{{ (",
		"{% if %}{% elif %}", "{{ [ }}",
		strings.Repeat("{{ (", 500), strings.Repeat("{% if a %}", 500), "{{ " + strings.Repeat("-", 2000) + "1 }}",
		"{{ a" + strings.Repeat(".b", 2000) + " }}",
	} {
		f.Add(text, true, true)
		f.Add(text, false, false)
	}
	data, err := os.ReadFile("../../../testdata/jinja/golden.json")
	if err != nil {
		f.Fatal(err)
	}
	for part := range strings.SplitSeq(string(data), `"template": "`) {
		text, _, _ := strings.Cut(part, `"`)
		f.Add(strings.NewReplacer(`\n`, "\n", `\"`, `"`, `\\`, `\`).Replace(text), false, true)
	}
}

// FuzzLexer checks that the tokens of a text are in order, inside of the text, and on the right lines.
func FuzzLexer(f *testing.F) {
	addTemplates(f)
	f.Fuzz(func(t *testing.T, text string, trim, lstrip bool) {
		text = Normalize(text)
		tokens, err := tokenize(text, Options{TrimBlocks: trim, LstripBlocks: lstrip})
		if len(tokens) == 0 || tokens[len(tokens)-1].kind != tokEOF {
			t.Fatalf("the last token of %q is not its end", text)
		}
		checkPosition(t, text, err)
		at := 0
		for _, token := range tokens {
			if token.at < at || token.at > len(text) {
				t.Fatalf("%q: token %s at %d after %d", text, token.describe(), token.at, at)
			}
			if line := strings.Count(text[:token.at], "\n") + 1; token.kind != tokEOF && token.kind != tokData &&
				token.line != line {
				t.Fatalf("%q: token %s at %d is on line %d, not %d", text, token.describe(), token.at, line, token.line)
			}
			at = token.at
		}
	})
}

// FuzzParser checks that a text gives a tree, or an error with a position in the text.
func FuzzParser(f *testing.F) {
	addTemplates(f)
	f.Fuzz(func(t *testing.T, text string, trim, lstrip bool) {
		tree, err := Parse(text, Options{TrimBlocks: trim, LstripBlocks: lstrip})
		if (tree == nil) == (err == nil) {
			t.Fatalf("%q: %v, %v", text, tree, err)
		}
		checkPosition(t, Normalize(text), err)
	})
}

func checkPosition(t *testing.T, text string, err error) {
	t.Helper()
	if err == nil {
		return
	}
	var e *Error
	if !errors.As(err, &e) {
		t.Fatalf("%q: the error has no position: %v", text, err)
	}
	if e.Offset < 0 || e.Offset > len(text) || e.Line < 1 || e.Line > strings.Count(text, "\n")+1 || e.Message == "" {
		t.Fatalf("%q: %+v", text, e)
	}
}
