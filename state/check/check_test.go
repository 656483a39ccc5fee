package check_test

import (
	"strings"
	"testing"
	"testing/fstest"

	"github.com/corpus-agent/corpus-agent/state/check"
)

func TestMistakesOfATree(t *testing.T) {
	for text, want := range map[string]string{
		"a:\n  file.mangd:\n    - contents: x\n": `states/a.sls:2:3: no such state ` +
			`function: file has no mangd`,
		"a:\n  fil.managed:\n    - contents: x\n": `states/a.sls:2:3: no such state ` +
			`function: fil.managed`,
		"a:\n  file:\n    - mangd\n    - contents: x\n": `states/a.sls:2:3: no such state ` +
			`function: file has no mangd`,
		"a:\n  file.managed:\n    - contnts: x\n": `states/a.sls:3:7: file.managed has no ` +
			`argument contnts`,
		"a:\n  file.managed:\n    - contents: \"x\n":            `states/a.sls:3:`,
		"extend:\n  a:\n    file.mangd: []\n":                   `states/a.sls:3:5: no such state function`,
		"{% if grains.x %}\na:\n  pkg.instaled\n{% endfor %}\n": `states/a.sls:4:`,
		"{{ grains.x | no_filter }}: {}\n":                      `states/a.sls:1:15: No filter named`,
		"{% if grains.x %}\na:\n  pkg.instaled: []\n{% endif %}\n": `states/a.sls:3:3: no such state ` +
			`function: pkg has no instaled`,
		"{{ grains.id }}:\n  pkg.installed:\n    - nmaes: [x]\n": `states/a.sls:3:7: pkg.installed has no ` +
			`argument nmaes`,
		"#!yaml\na:\n  cmd.rnu:\n    - name: '{{ x }}'\n": `states/a.sls:3:3: no such state ` +
			`function: cmd has no rnu`,
		"a:\n  file.managed:\n    - source: x\n    {# why #}\n    - unles: x\n": `states/a.sls:5:7: file.managed has no ` +
			`argument unles`,
	} {
		tree := fstest.MapFS{"states/a.sls": {Data: []byte(text)}}
		found, err := check.Tree(tree)
		if err != nil || len(found) != 1 || !strings.HasPrefix(found[0].Error(), want) {
			t.Errorf("%s\ngives %v, %v, want %s", text, found, err, want)
		}
		if len(found) == 1 && found[0].Hint == "" && strings.Contains(want, "argument") {
			t.Errorf("%v has no hint", found[0])
		}
	}
}

// TestUndecidableNamesAreNotReported checks names that depend on the host, on base, or on modules of the tree.
func TestUndecidableNamesAreNotReported(t *testing.T) {
	for name, text := range map[string]string{
		"a state of base's":     "a:\n  portal.managed:\n    - contents: x\n",
		"a state of the tree's": "a:\n  mine.mangd: []\n",
		"a computed function":   "a:\n  {{ f }}:\n    - x: y\n  pkg.{{ what }}: []\n",
		"arguments after a tag": "a:\n  {% if x %}\n  file.managed:\n  {% else %}\n  file.absent:\n  {% endif %}\n    - " +
			"contents: x\n",
		"a block of data":         "{% load_yaml as x %}\nDebian:\n  pkg.name: []\n{% endload %}\n",
		"a block of text":         "{% set x %}\nDebian:\n  pkg.name: []\n{% endset %}\n",
		"a macro":                 "{% macro m() %}\na:\n  pkg.name: []\n{% endmacro %}\n",
		"the same ID twice":       "{% if x %}\na:\n  pkg.instaled: []\n{% else %}\na:\n  pkg.removed: []\n{% endif %}\n",
		"a program":               "#!py\ndef run():\n  return {'a': [}\n",
		"another template engine": "#!mako|yaml\n${x\n",
		"data":                    "Debian:\n  pkg.name: foo\n",
		"general arguments": "a:\n  file.managed:\n    - require: [x]\n    - __id__: x\n    - check_cmd: x\n    - " +
			"names: [x]\n",
		"a filter of the host":  "a:\n  file.managed:\n    - contents: {{ 'x' | which }}\n",
		"arguments of any name": "a:\n  module.run:\n    - test.ping:\n    - any: x\n",
	} {
		tree := fstest.MapFS{
			"states/a.sls": {Data: []byte(text)}, "states/_states/mine.py": {},
			"salt/config/pillar/p.sls": {Data: []byte("file.mangd: []\n")},
		}
		if found, err := check.Tree(tree); err != nil || len(found) > 0 {
			t.Errorf("%s: %v, %v", name, found, err)
		}
	}
}

func TestTemplatesAndPillarAreParsed(t *testing.T) {
	tree := fstest.MapFS{
		"salt/config/states/a.conf.jinja": {Data: []byte("{% for x in y %}\n")},
		"pillar/p.sls":                    {Data: []byte("a: b: c\n")},
		"salt/config/states/top.sls":      {Data: []byte("base: [\n")},
	}
	found, err := check.Tree(tree)
	if err != nil || len(found) != 3 {
		t.Errorf("%v, %v", found, err)
	}
}
