package session_test

import (
	"strings"
	"testing"

	"github.com/corpus-agent/corpus-agent/state/diag"
	"github.com/corpus-agent/corpus-agent/state/families"
	"github.com/corpus-agent/corpus-agent/state/value"
)

func TestMissingFunctionsAreUndefined(t *testing.T) {
	for template, want := range map[string]string{
		`{{ salt['no.such'] is defined }}`:                                        "False",
		`{{ salt['test.echo'] is defined }}`:                                      "True",
		`{{ salt.foo is defined }}`:                                               "False",
		`{{ salt.test.nope is defined }}`:                                         "False",
		`{{ salt.test.echo is defined }}`:                                         "True",
		`{{ salt['test']['echo']('x') }}`:                                         "x",
		`{{ 'no.such' in salt }}`:                                                 "False",
		`{{ 'test.echo' in salt }}`:                                               "True",
		`{{ 'echo' in salt.test }}`:                                               "True",
		`{{ 'no.such' in salt.keys() }}`:                                          "False",
		`{{ salt.get('no.such', 'fallback') }}`:                                   "fallback",
		`{{ salt.get('no.such') is none }}`:                                       "True",
		`{{ salt.get('test.echo')('x') }}`:                                        "x",
		`{{ salt['no.such'] | default('none') }}`:                                 "none",
		`{% if salt['no.such'] is defined %}a{% else %}b{% endif %}`:              "b",
		`{{ salt['no.such']('x') if 'no.such' in salt else 'b' }}`:                "b",
		`{% set f = salt['x509.read_certificate'] %}{{ f is undefined }}`:         "True",
		`{% set n = 'test.echo' %}{{ salt[n]('dynamic') }}`:                       "dynamic",
		`{{ salt['no.such'] is callable and salt['test.echo'] is callable }}`:     "True",
		`{% for f in ['no.such', 'test.echo'] if f in salt %}{{ f }}{% endfor %}`: "test.echo",
	} {
		set, _ := settings(t, map[string]string{"states/t.sls": "a: '" + strings.ReplaceAll(template, "'", "\"") + "'\n"})
		got, err := answer(t, families.New(set), "slsutil.renderer", "salt://t.sls")
		if m, ok := got.(*value.Map); err != nil || !ok || value.Str(m.Value("a")) != want {
			t.Errorf("%s: %v, %v; want %s", template, value.Repr(got), err, want)
		}
	}
}

func TestMissingFunctionErrorHasReason(t *testing.T) {
	cases := []struct{ template, message, hint string }{
		{`{{ salt['x509.read_certificate']('/x') }}`, "certificates are not made while a template is rendered", ""},
		{`{{ salt.service.restart('x') }}`, "service.restart: it changes the host, and templates only read", "module.run"},
		{`{{ salt['service.restart']('x') }}`, "service.restart: it changes the host, and templates only read", "module.run"},
		{`{{ salt.pillar.gte('x') }}`, "there is no function pillar.gte", `did you mean "pillar.get"?`},
		{`{{ salt['pilar.get']('x') }}`, "there is no function pilar.get", `did you mean "pillar.get"?`},
		{`{{ salt['mine_own.thing']('x') }}`, "there is no function mine_own.thing", "engine: salt-call"},
		{`{{ salt.mine_own.thing('x') }}`, "there is no function mine_own", "engine: salt-call"},
		{`{{ salt['no.such'] }}`, "there is no function no.such", "engine: salt-call"},
	}
	for _, c := range cases {
		set, dir := settings(t, map[string]string{"states/t.sls": "a:\n  b: " + c.template + "\n"})
		_, err := answer(t, families.New(set), "state.show_sls", "t")
		list := mustProblems(t, err)
		if len(list) != 1 || !strings.Contains(list[0].Message, c.message) || !strings.Contains(list[0].Hint, c.hint) {
			t.Errorf("%s: %v", c.template, err)
			continue
		}
		if p := list[0].Pos; p.File != dir+"/states/t.sls" || p.Line != 2 || p.Col == 0 {
			t.Errorf("%s: at %s", c.template, p)
		}
	}
}

// mustProblems returns the problems in users' files.
func mustProblems(t *testing.T, err error) diag.List {
	t.Helper()
	list := problemsOf(err)
	if len(list) == 0 {
		t.Fatalf("want problems with places, got %T: %v", err, err)
	}
	return list
}

func TestExpensiveGrainsAreLazy(t *testing.T) {
	for template, want := range map[string]int{
		`{{ grains.fqdn_ip4 }}`:                                1,
		`{{ grains['fqdn_ip4'][0] }} {{ grains.fqdn_ip4 }}`:    1,
		`{{ salt['grains.get']('fqdn_ip4') }}`:                 1,
		`{{ salt['grains.get']('fqdn_ip4:0') }}`:               1,
		`{{ salt.grains.item('fqdn_ip4') }}`:                   1,
		`{{ opts.grains.fqdn_ip4 }}`:                           1,
		`{{ salt['config.get']('fqdn_ip4') }}`:                 1,
		`{{ grains.os }} {{ 'fqdn_ip4' in grains }}`:           0,
		`{{ salt['grains.filter_by']({'Debian': {'a': 1}}) }}`: 0,
		`{{ salt['match.compound']('G@os:Debian') }}`:          0,
		`{{ salt['grains.ls']() }}`:                            0,
	} {
		set, _ := settings(t, map[string]string{
			"states/top.sls": "base:\n  'os:Debian':\n    - match: grain\n    - t\n",
			"states/t.sls":   "a:\n  test.show_notification:\n    - text: |\n        " + template + "\n",
			"pillar/top.sls": "base:\n  'G@role:web':\n    - match: compound\n    - p\n",
			"pillar/p.sls":   "a: {{ grains.os }}\n",
		})
		computed := 0
		set.Grains.SetLater("fqdn_ip4", func() any { computed++; return value.NewList("10.0.0.9") })
		got, err := answer(t, families.New(set), "state.show_lowstate")
		if err != nil {
			t.Errorf("%s: %v", template, err)
			continue
		}
		if computed != want {
			t.Errorf("%s: computed %d times, want %d", template, computed, want)
		}
		if text := value.Repr(got); want > 0 && !strings.Contains(text, "10.0.0.9") {
			t.Errorf("%s: got %s", template, text)
		}
	}
}
