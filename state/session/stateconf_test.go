package session_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/corpus-agent/corpus-agent/state/families"
	"github.com/corpus-agent/corpus-agent/state/value"
)

// TestStateconf compares files of the renderer stateconf with the low data that Salt 3006.0 makes of them.
func TestStateconf(t *testing.T) {
	given, _ := settings(t, map[string]string{
		"states/a.sls": "#!stateconf yaml . jinja\n.params:\n  stateconf.set:\n    - port: 80\n    - site: web\n" +
			"# --- end of state config ---\n.one:\n  test.nop:\n    - text: {{ params.port }}\n" +
			".two:\n  test.nop:\n    - require:\n      - test: .one\n" +
			"three:\n  test.nop:\n    - name: {{ params.site }}-{{ params.port }}\n    - watch:\n      - test: .two\n",
		"states/b.sls": "#!stateconf\ninclude:\n  - .a\nextend:\n  .a::params:\n    stateconf.set:\n      - port: 8080\n" +
			"x:\n  test.nop:\n    - require:\n      - stateconf: a::goal\n",
		"states/order.sls": "#!stateconf -o -s -G\n.first:\n  test.nop\nsecond:\n  test:\n    - nop\n",
		"states/piped.sls": "#!yaml|stateconf -p\n.x:\n  test.nop\n",
		"states/deep/er/f.sls": "#!stateconf\ninclude:\n  - ..top\n.x:\n  test.nop:\n    - name: {{ sls_dir }}\n" +
			"    - require_in:\n      - test: ..top::y\n",
		"states/deep/top.sls": "#!stateconf -G\n.y:\n  test.nop\n",
	})
	low := func(name string) string {
		s := families.New(given)
		defer s.Close()
		v, err := s.Call(t.Context(), "state.show_low_sls", []any{name}, nil, nil)
		if err != nil {
			return err.Error()
		}
		var all []string
		for _, item := range v.Value.(*value.List).Items {
			m := item.(*value.Map)
			text := fmt.Sprintf("%s.%s %s", m.Value("state"), m.Value("fun"), m.Value("__id__"))
			for _, key := range slices.Sorted(slices.Values(m.Names())) {
				if !strings.HasPrefix(key, "__") && key != "state" && key != "fun" && key != "order" {
					text += fmt.Sprintf(" %s=%s", key, value.Repr(m.Value(key)))
				}
			}
			all = append(all, text)
		}
		return strings.Join(all, "\n")
	}
	for name, want := range map[string]string{
		"a": "test.nop three name='web-80' watch=[{'test': 'a::two'}]\n" +
			"stateconf.set a::params name='a::params' port=80 site='web'\n" +
			"test.nop a::one name='one' text=80\n" +
			"test.nop a::two name='two' require=[{'test': 'a::one'}]\n" +
			"stateconf.set a::goal name='a::goal' require=[{'stateconf': 'a::params'}, {'test': 'a::one'}, " +
			"{'test': 'a::two'}, {'test': 'three'}]",
		"order": "test.nop second name='second' require=[{'test': 'order::first'}]\n" +
			"test.nop order::first name='first'\n" +
			"stateconf.set order::start name='order::start' require_in=[{'test': 'order::first'}]",
		"piped": "test.nop piped::x name='x'\nstateconf.set piped::goal name='piped::goal' require=[{'test': 'piped::x'}]",
	} {
		if got := low(name); got != want {
			t.Errorf("%s:\n%s\nwant\n%s", name, got, want)
		}
	}
	for name, want := range map[string]string{
		"b":         "test.nop three name='web-8080'",
		"deep.er.f": "test.nop deep.er.f::x name='deep/er'",
	} {
		if got := low(name); !strings.Contains(got, want) {
			t.Errorf("%s:\n%s\nlacks\n%s", name, got, want)
		}
	}
}

// TestMistakesOfStateconf checks that mistakes in files of stateconf are errors at their lines.
func TestMistakesOfStateconf(t *testing.T) {
	for text, want := range map[string]string{
		"#!stateconf\ninclude:\n  - ...a\n":                                         "s.sls:2:1: ...a has more dots than",
		"#!stateconf -o\n.x:\n  test.nop:\n    - names: [a]\n":                      "s.sls:2:1: .x has names",
		"#!stateconf -o\n.x: {test.nop: [{require: [{test: .y}]}]}\n.y: test.nop\n": "require of .x names .y",
		"#!stateconf\nx: {}\n.goal:\n  test.nop\n":                                  "s.sls:3:1: the renderer stateconf adds",
		"#!stateconf\n.x:\n  test.nop\ns::x:\n  test.nop\n":                         "the ID .x means s::x",
		"#!stateconf yaml\n.x:\n  test.nop\n":                                       "does not name two renderers",
		"#!stateconf nosuch . jinja\n.x:\n  test.nop\n":                             "there is no renderer \"nosuch\"",
		"#!stateconf -x\n.x:\n  test.nop\n":                                         "there is no option -x",
		"#!stateconf\n.x:\n  - test.nop\n":                                          "s.sls:2:1: ",
	} {
		given, _ := settings(t, map[string]string{"states/s.sls": text})
		s := families.New(given)
		_, err := s.Program(t.Context(), s.Named("s"))
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: the error is %v, want %q", text, err, want)
		}
		s.Close()
	}
}
