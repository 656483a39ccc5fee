package session_test

import (
	"testing"

	"github.com/corpus-agent/corpus-agent/state/families"
	"github.com/corpus-agent/corpus-agent/state/value"
)

// TestTemplatePathVariablesMatchSalt compares the path variables with those of Salt 3006: an import or include with
// context has those of the SLS file, one without context its own.
func TestTemplatePathVariablesMatchSalt(t *testing.T) {
	const place = "{{ tpldir }} {{ tplfile }}"
	set, _ := settings(t, map[string]string{
		"states/a/sub/x.sls": `t:
  test.nop:
    - from: "` + place + ` {{ sls }} {{ slspath }}"
{% from "a/lib/m.jinja" import m, v with context %}
    - with: "{{ m() }} | {{ v }}"
{% from "a/lib/m2.jinja" import m2, v2 %}
    - without: "{{ m2() }} | {{ v2 }}"
    - after: "` + place + `"
{% include "a/lib/i.jinja" %}
{% include "a/lib/j.jinja" without context %}
    - again: "{{ m() }} | {{ m2() }}"
{% import "a/lib/n.jinja" as n with context %}
    - nested: "{{ n.w() }}"
{% import "a/lib/n2.jinja" as n2 %}
    - apart: "{{ n2.w() }} {{ tpldir }}"
`,
		"states/a/lib/m.jinja":  `{% set v = tpldir ~ " " ~ tplfile %}{% macro m() %}` + place + `{% endmacro %}`,
		"states/a/lib/m2.jinja": `{% set v2 = tpldir ~ " " ~ tplfile %}{% macro m2() %}` + place + `{% endmacro %}`,
		"states/a/lib/i.jinja":  `    - included: "` + place + `"`,
		"states/a/lib/j.jinja":  `    - alone: "` + place + `"`,
		"states/a/lib/n.jinja": `{% from "a/lib/deep/d.jinja" import q with context %}{% macro w() %}{{ tpldir }} {{ ` +
			`q() }}{% endmacro %}`,
		"states/a/lib/n2.jinja": `{% from "a/lib/deep/d.jinja" import q %}{% macro w() %}{{ tpldir }} {{ q() }}{% ` +
			`endmacro %}`,
		"states/a/lib/deep/d.jinja": `{% macro q() %}{{ tpldir }}{% endmacro %}`,
	})
	got, err := answer(t, families.New(set), "state.show_low_sls", "a.sub.x")
	if err != nil {
		t.Fatal(err)
	}
	chunk := got.(*value.List).Items[0].(*value.Map)
	for key, want := range map[string]string{
		"from": "a/sub a/sub/x.sls a.sub.x a/sub", "after": "a/sub a/sub/x.sls",
		"with":    "a/sub a/sub/x.sls | a/sub a/sub/x.sls",
		"without": "a/lib a/lib/m2.jinja | a/lib a/lib/m2.jinja", "included": "a/sub a/sub/x.sls",
		"alone": "a/lib a/lib/j.jinja",
		"again": "a/sub a/sub/x.sls | a/lib a/lib/m2.jinja", "nested": "a/sub a/sub", "apart": "a/lib a/lib a/sub",
	} {
		if v := chunk.Value(key); v != want {
			t.Errorf("%s is %q, want %q", key, v, want)
		}
	}
}
