package session_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/corpus-agent/corpus-agent/state/exec"
	"github.com/corpus-agent/corpus-agent/state/value"
	"github.com/corpus-agent/corpus-agent/state/yaml"
)

// TestAnswersOfAMasterlessSalt compares answers with those of Salt 3006.0.
func TestAnswersOfAMasterlessSalt(t *testing.T) {
	s, _ := pythonSession(t, map[string]string{
		"states/_modules/own.py": "import datetime\n" +
			"def top(): return __opts__['state_top']\ndef day(): return datetime.date(2024, 1, 2)\n" +
			"def plain(): return {'b': 2, 'a': 1}\n" +
			"def last(): return [__salt__['cmd.retcode']('false'), __salt__['cmd.retcode']('true')]\n",
		"pillar/top.sls": "base:\n  '*':\n    - p\n",
		"pillar/p.sls":   "#!py\ndef run():\n    return {'key': 'x'}\n",
	})
	for function, want := range map[string]string{"own.top": "top.sls\n", "own.day": "2024-01-02\n",
		"own.plain": "a: 1\nb: 2\n", "own.last": "- 1\n- 0\n", "saltutil.refresh_pillar": "false\n"} {
		answer, err := s.Call(t.Context(), function, nil, nil, nil)
		got := yaml.Dump(answer.Value, yaml.DumpOptions{Collections: yaml.Block, Sort: yaml.SortPlain})
		if err != nil || answer.Code != 0 || got != want && got != want+"...\n" {
			t.Errorf("%s: %q with code %d, %v, want %q", function, got, answer.Code, err, want)
		}
	}
}

// TestSubStates runs a state that returns sub_state_run: its results are beside that of the state.
func TestSubStates(t *testing.T) {
	s, _ := pythonSession(t, map[string]string{
		"states/_states/mine.py": "def many(name):\n    return {'name': name, 'result': __opts__['test'] or True, " +
			"'changes': {}, 'comment': 'c', 'sub_state_run': [{'changes': {'x': 1}, 'result': False, 'comment': 'sub', " +
			"'low': {'name': 'n', 'state': 's', '__id__': 'i', 'fun': 'f'}}]}\n",
		"states/web.sls": "x:\n  mine.many: []\n",
	})
	p, err := s.Program(t.Context(), s.Named("web"))
	if err != nil {
		t.Fatal(err)
	}
	if r := s.Run(t.Context(), p, nil).All()[0]; !r.Fails() || r.Outcome != exec.Succeeded ||
		r.Explanation() != "c; its sub state s.f n failed: sub" {
		t.Errorf("a deploy has result %v, fails %v: %s", r.Outcome, r.Fails(), r.Explanation())
	}
	dry, err := s.Call(t.Context(), "state.test", []any{"web"}, nil, nil)
	if results, _ := dry.Value.(*value.Map); err != nil || !dry.Failed || !results.Has("s_|-i_|-n_|-f") {
		t.Errorf("a dry run gives %s, failed %v, %v", value.Repr(dry.Value), dry.Failed, err)
	}
	answer, err := s.Call(t.Context(), "state.apply", []any{"web"}, nil, nil)
	all, _ := answer.Value.(*value.Map)
	sub, _ := all.Value("s_|-i_|-n_|-f").(*value.Map)
	parent, _ := all.Value("mine_|-x_|-x_|-many").(*value.Map)
	if err != nil || !answer.Failed || parent == nil || parent.Has("sub_state_run") || parent.Value("result") != true {
		t.Fatalf("got %s, failed %v, %v", value.Repr(answer.Value), answer.Failed, err)
	}
	if sub.Value("comment") != "sub" || sub.Value("result") != false || sub.Value("__id__") != "x" ||
		value.Repr(sub.Value("changes")) != "{'x': 1}" {
		t.Errorf("the sub state is %s", value.Repr(sub))
	}
}

// TestSubStatesThatCountAsFailures runs states whose sub_state_run is malformed, or has a failure at its second level.
func TestSubStatesThatCountAsFailures(t *testing.T) {
	for result, want := range map[string]string{
		"5": "`sub_state_run` in the answer of the state function is not a list, but int " +
			"(DIR/states/_states/mine.py:1, in many)",
		"['x']": "a sub state in `sub_state_run` is not a mapping, but str",
		"[{'result': False, 'low': 5, 'comment': 'no disk'}]": "a sub state in `sub_state_run` has no mapping `low`; " +
			"its comment: no disk",
		"({'low': {}, 'changes': {}},)": "a sub state in `sub_state_run` lacks result",
		"({'result': True, 'low': {'name': 'a'}, 'changes': {}, 'sub_state_run': [{'result': 0, 'changes': {}, 'low': " +
			"{'state': 's', 'fun': 'f', '__id__': 'i', 'name': 'n'}, 'comment': 'no disk'}]},)": "its sub state s.f n " +
			"failed: no disk",
	} {
		s, dir := pythonSession(t, map[string]string{
			"states/_states/mine.py": "def many(name):\n    return {'name': name, 'result': True, 'changes': {}, " +
				"'comment': '', 'sub_state_run': " + result + "}\n",
			"states/web.sls": "x:\n  mine.many: []\n",
		})
		p, err := s.Program(t.Context(), s.Named("web"))
		if err != nil {
			t.Fatal(err)
		}
		r := s.Run(t.Context(), p, nil).All()[0]
		if got := strings.ReplaceAll(r.Explanation(), dir, "DIR"); !r.Fails() || !strings.Contains(got, want) {
			t.Errorf("%s fails %v: %s, want %q", result, r.Fails(), got, want)
		}
		if answer, err := s.Call(t.Context(), "state.apply", []any{"web"}, nil, nil); err != nil || !answer.Failed {
			t.Errorf("a call of %s: %v, %v", result, answer, err)
		}
	}
}

// TestEncodingsOfModules loads modules in several encodings. Python reads each as it does a file that it imports.
func TestEncodingsOfModules(t *testing.T) {
	s, _ := pythonSession(t, map[string]string{
		"states/_modules/declared.py": "# -*- coding: latin-1 -*-\ndef f(): return '\xe9'\n",
		"states/_modules/marked.py":   "\ufeffdef f(): return 'é'\n",
		"states/_modules/plain.py":    "\ndef f(): return '\xe9'\n",
		"states/_modules/unknown.py":  "# coding: nonsense\ndef f(): return 1\n",
		"states/own.sls":              "#!py\n# coding: utf-8\ndef run(): return {'é': {'test.nop': []}}\n",
	})
	for _, module := range []string{"declared", "marked"} {
		if a, err := s.Call(t.Context(), module+".f", nil, nil, nil); err != nil || a.Value != "é" {
			t.Errorf("%s gives %v, %v", module, a.Value, err)
		}
	}
	for module, want := range map[string]string{"plain": "_modules/plain.py:2:", "unknown": "_modules/unknown.py:1:1"} {
		_, err := s.Call(t.Context(), module+".f", nil, nil, nil)
		if err == nil || !strings.Contains(err.Error(), "SyntaxError") || !strings.Contains(err.Error(), want) {
			t.Errorf("%s gives %v, want a SyntaxError at %s", module, err, want)
		}
	}
	if _, err := s.Program(t.Context(), s.Named("own")); err != nil {
		t.Errorf("a program with an encoding: %v", err)
	}
}

// TestErrorsNameTheFilesOfModules checks errors that no line of a function raises, and those of loading.
func TestErrorsNameTheFilesOfModules(t *testing.T) {
	s, dir := pythonSession(t, map[string]string{
		"states/_modules/m.py": "def own():\n    a = []\n    a.append(a)\n    return a\n" +
			"def deep():\n    a = 1\n    for _ in range(5000):\n        a = {'a': a}\n    return a\n" +
			"def sends():\n    a = []\n    a.append(a)\n    return __salt__['test.echo'](a)\n",
		"states/_modules/raises.py":  "def __virtual__():\n    raise ValueError('no disk')\n",
		"states/_modules/imports.py": "\nimport nowhere_at_all\n",
		"states/_modules/calls.py":   "def f():\n    return __salt__['imports.f']()\n",
		"states/_states/st.py":       "def lacks(name):\n    return {'name': name, 'changes': {}}\n",
		"states/loop.sls":            "#!py\ndef run():\n    a = {}\n    a['a'] = a\n    return a\n",
	})
	const deep = "the value refers to itself or is nested too deeply (DIR/"
	for name, want := range map[string]string{
		"m.own": deep + "_modules/m.py:1, in own)", "m.deep": deep + "_modules/m.py:5, in deep)",
		"m.sends":   deep + "_modules/m.py:13, in sends)",
		"raises.f":  "no disk (DIR/_modules/raises.py:2, in __virtual__)",
		"imports.f": "No module named 'nowhere_at_all' (DIR/_modules/imports.py:2, in <module>)",
		"calls.f":   "No module named 'nowhere_at_all' (DIR/_modules/imports.py:2, in <module>)",
	} {
		_, err := s.Call(t.Context(), name, nil, nil, nil)
		if got := strings.ReplaceAll(fmt.Sprint(err), dir+"/states", "DIR"); !strings.Contains(got, want) {
			t.Errorf("%s gives %s, want %q", name, got, want)
		}
	}
	_, err := s.Call(t.Context(), "state.show_sls", []any{"loop"}, nil, nil)
	got := strings.ReplaceAll(fmt.Sprint(err), dir+"/states", "DIR")
	if !strings.Contains(got, deep+"loop.sls:2, in run)") {
		t.Errorf("a program gives %s", got)
	}
	answer, err := s.Call(t.Context(), "state.single", []any{"st.lacks", "x"}, nil, nil)
	got = strings.ReplaceAll(value.Repr(answer.Value), dir+"/states", "DIR")
	if err != nil || !strings.Contains(got, "lacks result, comment (DIR/_states/st.py:1, in lacks)") {
		t.Errorf("a state gives %s, %v", got, err)
	}
}
