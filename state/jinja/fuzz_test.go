package jinja_test

import (
	"context"
	"encoding/json"
	"errors"
	"math/rand/v2"
	"os"
	"strings"
	"testing"

	"github.com/corpus-agent/corpus-agent/state/jinja"
	"github.com/corpus-agent/corpus-agent/state/value"
)

// FuzzEvaluator renders templates with Salt's filters. The result must be text within the limits or an error with a
// position. The limits are low, so that no template runs for long.
func FuzzEvaluator(f *testing.F) {
	data, err := os.ReadFile("../../testdata/jinja/golden.json")
	if err != nil {
		f.Fatal(err)
	}
	var r recorded
	if err := json.Unmarshal(data, &r); err != nil {
		f.Fatal(err)
	}
	for _, c := range r.Cases {
		f.Add(c.Template)
	}
	for _, text := range []string{
		"{% for i in range(100000) %}{% for j in range(100000) %}x{% endfor %}{% endfor %}",
		"{% macro m() %}{{ m() }}{% endmacro %}{{ m() }}",
		"{% set l = [] %}{% do l.append(l) %}{{ l }}{{ l == l }}{{ l | json }}{{ l | yaml }}",
		"{{ 'x' * 999999999 * 999999999 }}", "{{ 9 ** 9 ** 9 }}",
		"{{ '%999999999d' % 1 }}{{ '{:>999999999}'.format(1) }}", "{{ 'a' | center(999999999) }}",
		"{{ range(999999999) | list }}", "{{ '[' * 5000 | load_json }}",
		"{{ ('[' * 5000) | load_yaml }}", "{{ 'aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaab' | regex_match('(a+)+$') }}",
		"{{ 'a' | regex_replace('(?=a)', 'b') }}",
		"{% include 't.sls' %}", "{{ 'x'.zfill(9999999999) }}", "{{ ('a,' * 1000).split(',') | combinations(5) | list }}",
		"{{ 1e308 * 10 | int }}",
		"{{ namespace(**{'a': 1}) }}", "{{ 'a' | indent('b' * 100000) }}", "{{ [1, 'a'] | sort }}",
		"{{ d | dictsort(by='q') }}",
	} {
		f.Add(text)
	}
	g := &generator{Rand: rand.New(rand.NewPCG(55, 0))}
	for range 200 {
		f.Add(g.template())
	}
	vars, err := value.FromJSON([]byte(sharedVars))
	if err != nil {
		f.Fatal(err)
	}
	f.Fuzz(func(t *testing.T, text string) {
		files := map[string]string{"t.sls": text, "inc": sharedFiles["inc"], "mac": sharedFiles["mac"],
			"base": sharedFiles["base"]}
		o := options(files)
		o.Limits = jinja.Limits{Steps: 100_000, OutputBytes: 1 << 20, MemoryBytes: 32 << 20, Depth: 50}
		all := host()
		all.Update(value.Copy(vars).(*value.Map))
		all.Set("salt", modules{"test.arg": func(c *jinja.Call) (any, error) { return value.NewList(c.Args...), nil }})
		template, err := jinja.New(o).Parse(jinja.Source{Name: "t.sls", File: "/srv/t.sls", Text: text})
		if err == nil {
			var out *jinja.Output
			if out, err = template.Render(context.Background(), all); err == nil {
				checkOutput(t, text, out, o.Limits)
				return
			}
		}
		var e *jinja.Error
		if !errors.As(err, &e) {
			t.Fatalf("%q: the error has no position: %v", text, err)
		}
		if p := e.Diagnostic.Pos; e.Kind == "" || p.Line < 1 || !strings.HasPrefix(p.File, "/srv/") {
			t.Fatalf("%q: %q at %s: %v", text, e.Kind, p, err)
		}
	})
}

func checkOutput(t *testing.T, text string, out *jinja.Output, l jinja.Limits) {
	t.Helper()
	if len(out.Text) > l.OutputBytes+len(text)+1 {
		t.Fatalf("%q: %d bytes came out", text, len(out.Text))
	}
	if strings.TrimSpace(out.Text) == "" {
		return
	}
	for line := range strings.Count(out.Text, "\n") + 1 {
		if p := out.Origin(line+1, 1); p.Line < 1 || p.File == "" {
			t.Fatalf("%q: line %d of %q comes from %s", text, line+1, out.Text, p)
		}
	}
}
