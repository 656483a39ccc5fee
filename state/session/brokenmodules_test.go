package session_test

import (
	"strings"
	"testing"
)

// TestErrorsOfBrokenModulesHaveTheirPlaces calls modules that cannot be loaded, or that raise exceptions, from
// templates: each error has the place in the template and the place in the module.
func TestErrorsOfBrokenModulesHaveTheirPlaces(t *testing.T) {
	s, dir := pythonSession(t, map[string]string{
		"states/_modules/wrong.py":  "x = 1\ndef f(:\n    pass\n",
		"states/_modules/lacks.py":  "import os\nimport not_there\ndef f():\n    return 1\n",
		"states/_modules/raises.py": "x = 1\n\ny = {}['x']\n",
		"states/_modules/fails.py":  "def f():\n    return 1 / 0\n",
		"states/_modules/uses.py":   "def f():\n    return __salt__['lacks.f']()\n",
		"states/a.sls":              "x:\n  test.nop:\n    - name: {{ salt['wrong.f']() }}\n",
		"states/b.sls":              "x:\n  test.nop:\n    - name: {{ salt.lacks.f() }}\n",
		"states/c.sls":              "x:\n  test.nop:\n    - name: {{ salt['raises.f']() }}\n",
		"states/d.sls":              "x:\n  test.nop:\n    - name: {{ salt['fails.f']() }}\n",
		"states/e.sls":              "x:\n  test.nop:\n    - name: {{ salt['uses.f']() }}\n",
		"states/f.sls":              "{% from 'm.jinja' import m %}\nx:\n  test.nop:\n    - name: {{ m() }}\n",
		"states/m.jinja":            "\n{% macro m() %}{{ salt['lacks.f']() }}{% endmacro %}\n",
	})
	for sls, want := range map[string][]string{
		"a": {"/states/a.sls:3:", "/states/_modules/wrong.py:2:"},
		"b": {"/states/b.sls:3:", "/states/_modules/lacks.py:2, in"},
		"c": {"/states/c.sls:3:", "/states/_modules/raises.py:3"}, "d": {"/states/d.sls:3:", "/states/_modules/fails.py:2"},
		"e": {"/states/e.sls:3:", "/states/_modules/uses.py:2"},
		"f": {"/states/m.jinja:2:", "/states/_modules/lacks.py:2, in"},
	} {
		_, err := s.Call(t.Context(), "state.show_sls", []any{sls}, nil, nil)
		for _, part := range want {
			if err == nil || !strings.Contains(err.Error(), dir+part) {
				t.Errorf("%s gives %v, want %s", sls, err, part)
			}
		}
	}
}
