package session_test

import (
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
		"states/_states/mine.py": "def many(name):\n    return {'name': name, 'result': True, " +
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
