package session_test

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/corpus-agent/corpus-agent/state/diag"
	"github.com/corpus-agent/corpus-agent/state/families"
	"github.com/corpus-agent/corpus-agent/state/render"
	"github.com/corpus-agent/corpus-agent/state/session"
	"github.com/corpus-agent/corpus-agent/state/value"
)

// needPython skips a test on a host without /usr/bin/python3.
func needPython(t testing.TB) {
	t.Helper()
	if _, err := os.Stat("/usr/bin/python3"); err != nil {
		t.Skip("this host has no /usr/bin/python3 to run modules with")
	}
}

// pythonSession returns a session with files. It is closed at the end of the test.
func pythonSession(t testing.TB, files map[string]string) (*session.Session, string) {
	t.Helper()
	needPython(t)
	settings, dir := settings(t, files)
	s := families.New(settings)
	t.Cleanup(s.Close)
	return s, dir
}

const ownModule = `
"""The tree's own."""
import logging
import salt.utils.path
from salt.exceptions import CommandExecutionError
from salt.ext import six

__virtualname__ = "mine"
__func_alias__ = {"list_": "list"}
log = logging.getLogger(__name__)

def __virtual__():
    return __virtualname__

def hello(name, greeting="Hello"):
    """Greets."""
    return "%s %s from %s" % (greeting, name, __grains__["id"])

def list_(*args, **kwargs):
    return [list(args), kwargs]

def secret():
    return __pillar__.get("key"), __opts__["id"], __salt__["pillar.get"]("key")

def run(command):
    return __salt__["cmd.run"](command)

def fail():
    raise CommandExecutionError("no disk")

def wrong():
    return __salt__["test.arg"](1, b=2)

def count():
    __context__["n"] = __context__.get("n", 0) + 1
    return __context__["n"]
`

func TestTemplatesCallTheTreesModules(t *testing.T) {
	s, _ := pythonSession(t, map[string]string{
		"states/_modules/own.py": ownModule,
		"states/_utils/tool.py":  "def twice(n):\n    return 2 * n\n",
		"states/_modules/uses.py": "import tool\ndef four():\n    return tool.twice(2), __utils__['tool.twice'](3), " +
			"__utils__['stringutils.to_num']('4')\n",
		"states/_modules/test.py": "def ping():\n    return 'mine'\n",
		"pillar/top.sls":          "base:\n  '*':\n    - p\n",
		"pillar/p.sls":            "key: {{ salt['mine.hello']('pillar') }}\n",
	})
	for template, want := range map[string]string{
		"{{ salt['mine.hello']('you') }}":             "Hello you from web-01",
		"{{ salt.mine.hello('you', greeting='Hi') }}": "Hi you from web-01",
		"{{ salt['mine.list'](1, a=2) }}":             "[[1], {'a': 2}]",
		"{{ salt['mine.secret']() }}": "('Hello pillar from web-01', 'web-01', 'Hello " +
			"pillar from web-01')",
		"{{ salt['mine.run']('echo out') }}":                            "out",
		"{{ 'mine.hello' in salt }} {{ 'mine.nothing' in salt }}":       "True False",
		"{{ 'own.hello' in salt }}":                                     "False",
		"{{ salt['uses.four']() }}":                                     "(4, 6, 4)",
		"{{ salt['test.ping']() }} {{ 'test.echo' in salt }}":           "mine False",
		"{{ salt['mine.count']() }}{{ salt['mine.count']() }}":          "12",
		"{{ salt.get('mine.hello')('x') }} {{ 'pkg.version' in salt }}": "Hello x from web-01 True",
	} {
		v, err := s.Call(t.Context(), "slsutil.renderer", nil, value.NewMap("string", template, "default_renderer", "jinja"),
			nil)
		if err != nil || strings.TrimSpace(value.Str(v.Value)) != want {
			t.Errorf("%s gives %v, want %s: %v", template, v.Value, want, err)
		}
	}
	for template, words := range map[string][]string{
		"{{ salt['mine.fail']() }}":   {"mine.fail: CommandExecutionError: no disk", "own.py", "in fail"},
		"{{ salt['test.echo'](1) }}":  {"'test.echo' is not available."},
		"{{ salt['mine.hello']() }}":  {"TypeError", "missing 1 required positional argument"},
		"{{ salt['mine.absent']() }}": {"'mine.absent' is not available."},
	} {
		_, err := s.Call(t.Context(), "slsutil.renderer", nil, value.NewMap("string", template, "default_renderer", "jinja"),
			nil)
		for _, word := range words {
			if err == nil || !strings.Contains(err.Error(), word) {
				t.Errorf("%s: the error is %v, want %q", template, err, word)
			}
		}
	}
}

const ownStateModule = `
def present(name, text="x", mode="0644"):
    ret = {"name": name, "changes": {}, "result": True, "comment": "there"}
    if __salt__["file.file_exists"](name):
        return ret
    if __opts__["test"]:
        ret.update(result=None, comment="would be made", changes={"new": name})
        return ret
    with open(name, "w") as f:
        f.write(text)
    ret.update(comment="made", changes={"new": name})
    return ret

def managed(name, **kwargs):
    return __states__["file.managed"](name=name, contents=kwargs["contents"])

def acts(name):
    with open(name, "w") as f:
        f.write("acted")
    return {"name": name, "changes": {"made": True}, "result": True, "comment": ""}

def partial(name):
    return {"name": name, "result": True, "comment": ""}

def fails(name):
    return {"name": name, "result": False, "comment": ["one", "two"], "changes": {}}

def mod_watch(name, sfun=None, **kwargs):
    if __opts__["test"]:
        return {"name": name, "changes": {}, "result": None, "comment": "would react"}
    return {"name": name, "changes": {"watched": sfun}, "result": True, "comment": "reacted"}
`

func TestTheTreesStatesRun(t *testing.T) {
	s, dir := pythonSession(t, map[string]string{
		"states/_states/mine.py": ownStateModule,
		"states/a.sls": "DIR/one:\n  mine.present:\n    - text: hello\n  cmd.run:\n    - name: 'true'\n    - require_in:\n" +
			"      - mine: r\nr:\n  mine.present:\n    - name: DIR/two\n    - watch:\n      - mine: DIR/one\n" +
			"w:\n  mine.managed:\n    - name: DIR/three\n    - contents: text\n",
	})
	path := dir + "/states/a.sls"
	text, _ := os.ReadFile(path)
	if err := os.WriteFile(path, []byte(strings.ReplaceAll(string(text), "DIR", dir)), 0o600); err != nil {
		t.Fatal(err)
	}
	result := func(test bool) map[string]string {
		a, err := s.Call(t.Context(), "state.apply", []any{"a"}, value.NewMap("test", test), nil)
		if err != nil {
			t.Fatal(err)
		}
		found := map[string]string{}
		for tag, r := range a.Value.(*value.Map).All() {
			m := r.(*value.Map)
			found[strings.ReplaceAll(value.Str(tag), dir, "DIR")] = strings.ReplaceAll(value.Repr(m.Value("result"))+" "+
				value.Str(m.Value("comment"))+" "+value.Repr(m.Value("changes")), dir, "DIR")
		}
		return found
	}
	for tag, want := range map[string]string{
		"mine_|-DIR/one_|-DIR/one_|-present": "None would be made {'new': 'DIR/one'}",
		"mine_|-r_|-DIR/two_|-present":       "None would be made {'new': 'DIR/two'}",
	} {
		if got := result(true)[tag]; got != want {
			t.Errorf("dry, %s is %s, want %s", tag, got, want)
		}
	}
	if _, err := os.Stat(dir + "/one"); err == nil {
		t.Fatal("the dry run changed something")
	}
	got := result(false)
	for tag, want := range map[string]string{
		"mine_|-DIR/one_|-DIR/one_|-present": "True made {'new': 'DIR/one'}",
		"mine_|-r_|-DIR/two_|-present":       "True made {'new': 'DIR/two'}",
		"mine_|-w_|-DIR/three_|-managed":     "True made DIR/three {'diff': 'New file'}",
	} {
		if !strings.HasPrefix(got[tag], want) {
			t.Errorf("%s is %s, want %s", tag, got[tag], want)
		}
	}
	if got := result(false)["mine_|-DIR/one_|-DIR/one_|-present"]; got != "True there {}" {
		t.Errorf("the second run: %s", got)
	}
}

func TestInvalidResultsOfTreeStates(t *testing.T) {
	s, dir := pythonSession(t, map[string]string{
		"states/_states/mine.py": ownStateModule, "states/_states/bare.py": "def acts(name):\n    open(name, 'w').close()\n" +
			"    return {'name': name, 'changes': {'a': 1}, 'result': True, 'comment': ''}\n",
		"states/_states/no.py": "def __virtual__():\n    return False, 'no disk'\n",
	})
	single := func(fun string, test bool, more ...any) (string, error) {
		a, err := s.Call(t.Context(), "state.single", []any{fun, dir + "/x"},
			value.NewMap(append([]any{"test", test}, more...)...), nil)
		if err != nil {
			return "", err
		}
		for _, r := range a.Value.(*value.Map).All() {
			m := r.(*value.Map)
			return value.Repr(m.Value("result")) + " " + value.Str(m.Value("comment")), nil
		}
		return "", nil
	}
	for _, c := range []struct {
		fun  string
		test bool
		want string
	}{
		{"mine.partial", false, "False TypeError: the answer of the state function has no mapping `changes` (" +
			dir + "/states/_states/mine.py:22, in partial)"},
		{"mine.fails", false, "False one\ntwo"},
		{"bare.acts", true, "None bare.acts ignores test mode, so a dry run does not call it"},
	} {
		if got, err := single(c.fun, c.test); err != nil || got != c.want {
			t.Errorf("%s: %q, want %q: %v", c.fun, got, c.want, err)
		}
	}
	if _, err := os.Stat(dir + "/x"); err == nil {
		t.Error("the dry run changed something")
	}
	for fun, want := range map[string]string{
		"mine.present": "mine.present has no argument moed",
		"no.x":         "'no' __virtual__ returned False: no disk",
		"mine.absent":  "mine.absent",
	} {
		got, err := single(fun, false, "moed", "0600")
		if err == nil && (!strings.Contains(got, want) || !strings.HasPrefix(got, "False")) ||
			err != nil && !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %q, %v, want %s", fun, got, err, want)
		}
	}
}

func TestFilesThatAreProgramsOfTheTree(t *testing.T) {
	s, _ := pythonSession(t, map[string]string{
		"states/_renderers/upper.py": "def render(data, saltenv='base', sls='', **kwargs):\n" +
			"    if hasattr(data, 'read'):\n        return data.read().upper()\n" +
			"    return {'made': {'test.nop': [{'name': '%s %s' % (sorted(data), sls)}]}}\n",
		"states/_renderers/hands.py": "def render(data, saltenv='base', sls='', renderers=None, argline='', **kwargs):\n" +
			"    text = renderers['jinja'](data, saltenv, sls, context={'more': argline})\n" +
			"    return renderers['yaml'](text, saltenv, sls)\n",
		"states/py.sls": "#!py\ndef run():\n    return {'a': {'test.nop': [{'name': '%s %s %s %s' % (__grains__['id'], " +
			"pillar['key'], sls, salt['test.echo']('x'))}]}}\n",
		"states/up.sls":    "#!yaml|upper\nq: 1\n",
		"states/hands.sls": "#!hands -o\nb:\n  test.nop:\n    - name: {{ more }} {{ sls }} {{ pillar.key }}\n",
		"states/file.py":   "#!py\ndef run():\n    return 'text of %s' % context['who']\n",
		"pillar/top.sls":   "base:\n  '*':\n    - p\n",
		"pillar/p.sls":     "#!py\ndef run():\n    return {'key': 'secret'}\n",
	})
	for name, want := range map[string]string{"py": "web-01 secret py x", "up": "['q'] up", "hands": "-o hands secret"} {
		p, err := s.Program(t.Context(), s.Named(name))
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		if got := p.Steps[0].Name(); got != want {
			t.Errorf("%s names %q, want %q", name, got, want)
		}
	}
	text, err := s.RenderFile(t.Context(), "py", render.Source{Name: "salt://file.py", Env: "base",
		Text: "#!py\ndef run():\n    return 'text of %s' % who\n"}, value.NewMap("who", "me"))
	if err != nil || text != "text of me" {
		t.Errorf("template: py gives %q: %v", text, err)
	}
	_, err = s.RenderFile(t.Context(), "py", render.Source{Name: "salt://file.py", Env: "base",
		Text: "#!py\ndef run():\n    return 3\n"}, nil)
	if err == nil || !strings.Contains(err.Error(), "a text was expected") {
		t.Errorf("a number as the text of a file: %v", err)
	}
}

// TestProgramThatReturnsNothing runs a program of states and one of the pillar whose run() returns None.
func TestProgramThatReturnsNothing(t *testing.T) {
	needPython(t)
	settings, dir := settings(t, map[string]string{"states/none.sls": "#!py\ndef run():\n    pass\n",
		"states/empty.sls": "#!py\ndef run():\n    return {}\n",
		"pillar/top.sls":   "base: {'*': [p]}\n", "pillar/p.sls": "#!py\ndef run():\n    return None\n"})
	var logged []string
	settings.Log = func(level, message string) {
		logged = append(logged, level+" "+strings.TrimPrefix(message, dir+"/"))
	}
	s := families.New(settings)
	t.Cleanup(s.Close)
	for _, name := range []string{"none", "empty"} {
		if p, err := s.Program(t.Context(), s.Named(name)); err != nil || len(p.Steps) > 0 {
			t.Errorf("%s: %v, %v", name, p, err)
		}
	}
	const nothing = ": run() returned None, so the file declares nothing"
	want := []string{"warning pillar/p.sls" + nothing, "warning states/none.sls" + nothing}
	if !slices.Equal(logged, want) {
		t.Errorf("logged %q, want %q", logged, want)
	}
}

func TestPillarModulesOfTheTree(t *testing.T) {
	needPython(t)
	files := map[string]string{
		"states/_pillar/cmdb.py": "def ext_pillar(minion_id, pillar, url, extra=None):\n" +
			"    if url == 'down':\n        raise IOError('no route')\n    if url == 'list':\n        return [1]\n" +
			"    if url == 'none':\n        return None\n" +
			"    return {'cmdb': [minion_id, url, extra, pillar.get('key')], 'key': 'external', 'mine': 'external'}\n",
		"pillar/top.sls": "base:\n  '*':\n    - p\n",
		"pillar/p.sls":   "key: file\nsaw: {{ pillar.get('cmdb') is not none }}\n",
	}
	source := func(name string, argument any) *value.List { return value.NewList(value.NewMap(name, argument)) }
	for _, c := range []struct {
		name        string
		sources     any
		first       bool
		want, fails string
	}{
		{"over", source("cmdb", "u"), false, "['web-01', 'u', None, 'file'] external", ""},
		{"under", source("cmdb", value.NewMap("url", "u", "extra", 1)), true, "['web-01', 'u', 1, None] file", ""},
		{"command", source("cmd_yaml", "echo 'key: %s'"), false, "None web-01", ""},
		{"json", source("cmd_json", `echo '{"key": 3}'`), false, "None 3", ""},
		{"fails", source("cmdb", "down"), false, "", "ext_pillar cmdb: OSError: no route"},
		{"no mapping", source("cmdb", "list"), false, "", "it returned a list"},
		{"nothing", source("cmdb", "none"), false, "", "ext_pillar cmdb: it returned a NoneType"},
		{"no output", source("cmd_yaml", "true"), false, "None file", ""},
		{"no cfg", source("stack", "/none/stack.cfg"), false, "", "ext_pillar stack: there is no file /none/stack.cfg"},
		{"no root_dir", source("file_tree", "/none/ft"), false, "", "there is no directory /none/ft"},
		{"no relative root_dir", source("file_tree", "ft"), false, "", "there is no directory ft"},
		{"a command that fails", source("cmd_yaml", "exit 3"), false, "", "ended with 3"},
		{"unknown", source("mongo", "x"), false, "", "there is no such source of pillar data"},
		{"malformed", value.NewMap("cmdb", "u"), false, "", "a list was expected"},
	} {
		set, _ := settings(t, files)
		set.Options = value.NewMap("ext_pillar", c.sources, "ext_pillar_first", c.first)
		set.Override = value.NewMap("mine", "override")
		s := families.New(set)
		t.Cleanup(s.Close)
		data, err := s.Pillar(t.Context())
		got := value.Repr(data.Value("cmdb")) + " " + value.Str(data.Value("key"))
		switch {
		case c.fails != "":
			if err == nil || !strings.Contains(err.Error(), c.fails) {
				t.Errorf("%s: the error is %v, want %q", c.name, err, c.fails)
			}
		case err != nil || got != c.want || data.Value("mine") != "override":
			t.Errorf("%s: %s, %v, want %s: %v", c.name, got, data.Value("mine"), c.want, err)
		}
	}
}

func TestFunctionsThatListModulesOfTheTree(t *testing.T) {
	s, _ := pythonSession(t,
		map[string]string{"states/_modules/own.py": ownModule, "states/_states/mine.py": ownStateModule,
			"states/_modules/test.py": "def ping(a, b=3, *rest):\n    \"\"\"Pings.\"\"\"\n"})
	for name, want := range map[string]string{
		"saltutil.sync_modules": "['modules.own', 'modules.test']",
		"saltutil.sync_states":  "['states.mine']",
		"saltutil.sync_grains":  "[]",
	} {
		v, err := s.Call(t.Context(), name, nil, nil, nil)
		if got := value.Repr(v.Value); err != nil || got != want {
			t.Errorf("%s is %s, want %s: %v", name, got, want, err)
		}
	}
	for name, want := range map[string]string{"mine.hello": "{'mine.hello': 'Greets.'}",
		"test": "{'test.ping': 'Pings.'}"} {
		v, err := s.Call(t.Context(), "sys.doc", []any{name}, nil, nil)
		if got := value.Repr(v.Value); err != nil || got != want {
			t.Errorf("sys.doc %s is %s, want %s: %v", name, got, want, err)
		}
	}
	for call, want := range map[string]struct {
		args []any
		says string
	}{
		"sys.argspec": {[]any{"mine.count"},
			"{'mine.count': {'args': None, 'defaults': None, 'varargs': None, 'kwargs': None}}"},
		"sys.doc": {[]any{"mine.list"}, "{'mine.list': None}"},
		"mine.list": {[]any{value.NewMap("a", 1)}, "[[{'a': 1}], ['__pub_fun', '__pub_jid', '__pub_pid', " +
			"'__pub_tgt']]"},
	} {
		v, err := s.Call(t.Context(), call, want.args, value.NewMap(), nil)
		got := value.Repr(v.Value)
		if list, ok := v.Value.(*value.List); ok && list.Len() == 2 {
			got = value.Repr(value.NewList(list.Items[0], value.Strings(list.Items[1].(*value.Map).Names()...)))
		}
		if err != nil || got != want.says {
			t.Errorf("%s gives %s, want %s: %v", call, got, want.says, err)
		}
	}
	v, err := s.Call(t.Context(), "sys.argspec", []any{"test.ping"}, nil, nil)
	if got := value.Repr(v.Value); err != nil || !strings.Contains(got, "'args': ['a', 'b'], 'defaults': [3]") {
		t.Errorf("sys.argspec is %s: %v", got, err)
	}
}

// pythons counts the Python processes that are children of this process.
func pythons(t testing.TB) (n int) {
	t.Helper()
	tasks, err := filepath.Glob("/proc/self/task/*/children")
	if err != nil || len(tasks) == 0 {
		t.Fatalf("this process has no tasks: %v", err)
	}
	for _, task := range tasks {
		children, _ := os.ReadFile(task) // a thread may have ended
		for _, pid := range strings.Fields(string(children)) {
			if name, _ := os.ReadFile("/proc/" + pid + "/comm"); strings.HasPrefix(string(name), "python3") {
				n++
			}
		}
	}
	return n
}

// TestATreeStartsPythonOnlyForItsModules applies an SLS file that needs none of the modules of its tree, and then files
// that need modules of every kind.
func TestATreeStartsPythonOnlyForItsModules(t *testing.T) {
	s, _ := pythonSession(t, map[string]string{
		"states/plain.sls":          "a:\n  test.nop:\n    - name: {{ salt['test.echo']('x') }}\n",
		"states/all.sls":            "#!jinja|same|yaml\na:\n  mine.present:\n    - name: {{ salt['mine.hello']('x') }}\n",
		"states/program.sls":        "#!py\ndef run():\n    return {'b': {'test.nop': [{'name': salt['mine.hello']('')}]}}\n",
		"states/_renderers/same.py": "def render(data, saltenv='base', sls='', **kwargs):\n    return data\n",
		"states/_states/mine.py":    ownStateModule, "states/_modules/own.py": ownModule,
	})
	before := pythons(t)
	if _, err := s.Call(t.Context(), "state.apply", []any{"plain"}, nil, nil); err != nil {
		t.Fatal(err)
	}
	if n := pythons(t) - before; n != 0 {
		t.Errorf("%d processes of Python were started for an SLS file that needs none", n)
	}
	if _, err := s.Call(t.Context(), "sys.doc", []any{"mine"}, nil, nil); err != nil || pythons(t)-before != 1 {
		t.Errorf("a module needs 1 process of Python, and %d are running: %v", pythons(t)-before, err)
	}
	for _, sls := range []string{"all", "program"} {
		if _, err := s.Call(t.Context(), "state.apply", []any{sls}, nil, nil); err != nil || pythons(t)-before != 1 {
			t.Errorf("after state.apply %s, %d processes of Python are running, want 1: %v", sls, pythons(t)-before, err)
		}
	}
}

// TestFilesOfPyobjects checks states, blocks, requisites, maps by grain and imports.
func TestFilesOfPyobjects(t *testing.T) {
	s, _ := pythonSession(t, map[string]string{
		"states/lib/map.sls": "#!pyobjects\nclass Web(Map):\n    merge = 'web'\n    class Debian:\n        server = 'a'\n" +
			"    class Other:\n        __grain__ = 'id'\n        __match__ = 'web-01'\n        user = 'www'\n" +
			"Test.nop('not declared')\n",
		"states/web.sls": "#!pyobjects\nfrom salt://lib/map.sls import Web as W\ninclude('other')\n" +
			"with Test.nop('first', name=W.user):\n    Test.nop('second', name=W.port)\n" +
			"Test.succeed_without_changes('third', require=[Test('second')], name=grains('id') + pillar('none', '-'))\n" +
			"Test.nop('fourth', watch_in=Test('first'), name=salt.test.echo('x') + salt['test.echo']('y') + " +
			"__sls__)\n" +
			"Test.nop(extend('base'), name='extended')\n",
		"states/other.sls":  "base:\n  test.nop: []\n",
		"states/absent.sls": "#!pyobjects\nTest.nothing('x')\n",
		"states/twice.sls":  "#!pyobjects\nTest.nop('x')\nTest.nop('x')\n",
		"pillar/top.sls":    "base: {'*': [p]}\n",
		"pillar/p.sls":      "web: {port: '80'}\n",
	})
	v, err := s.Call(t.Context(), "state.show_low_sls", []any{"web"}, nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, item := range v.Value.(*value.List).Items {
		low := item.(*value.Map)
		got = append(got, fmt.Sprintf("%s %s %s%s", low.Value("__id__"), low.Value("name"), value.Repr(low.Value("require")),
			value.Repr(low.Value("watch_in"))))
	}
	want := []string{"base base NoneNone", "first www NoneNone", "second 80 [{'test': 'first'}]None",
		"third web-01- [{'test': 'second'}]None", "fourth xyweb None[{'test': 'first'}]"}
	if strings.Join(got, "\n") != strings.Join(want, "\n") {
		t.Errorf("the states are\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
	p, err := s.Program(t.Context(), s.Named("web"))
	if err != nil || p.Steps[0].Name() != "extended" {
		t.Errorf("the file extends base: %v, %v", p, err)
	}
	for name, words := range map[string]string{
		"absent": "absent.sls:2:1: renderer pyobjects: InvalidFunction: there is no state function test.nothing",
		"twice":  "twice.sls:3:1: renderer pyobjects: DuplicateState: the ID x has the state test.nop twice",
	} {
		if _, err := s.Call(t.Context(), "state.show_low_sls", []any{name}, nil, nil); err == nil ||
			!strings.Contains(err.Error(), words) {
			t.Errorf("%s: the error is %v, want %q", name, err, words)
		}
	}
}

// TestFilesOfPydsl checks states, requisites, the order of an ordered file, and mistakes.
func TestFilesOfPydsl(t *testing.T) {
	s, _ := pythonSession(t, map[string]string{
		"states/web.sls": "#!pydsl\ninclude('other', delayed=True)\n" +
			"extend(state('base').test.nop(name='extended'))\n__pydsl__.set(ordered=True)\n" +
			"a = state('first').test.nop(name='old')\nstate('first').test.nop('one')\n" +
			"state('second').test('nop', __grains__['id']).watch(a).require(test='base')\n" +
			"s = state('third')\ns.test.require(state('first').test)\ns.test.nop()\n" +
			"state().test.nop('four')\nassert state('third') is s and s.test is state('third').test\n",
		"states/other.sls":  "base:\n  test.nop: []\n",
		"states/two.sls":    "#!pydsl\nstate('x').test.nop()\nstate('x').test.fail()\n",
		"states/called.sls": "#!pydsl\ns = state('x')\ns.test.nop()\ns()\n",
		"states/later.sls":  "#!pydsl\ndef f(): pass\nstate('x').test.nop(f)\n",
		"states/wempy.sls":  "#!wempy|yaml\nx:\n  test.nop: []\n",
	})
	v, err := s.Call(t.Context(), "state.show_low_sls", []any{"web"}, nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, item := range v.Value.(*value.List).Items {
		low := item.(*value.Map)
		got = append(got, fmt.Sprintf("%s %s %s%s", low.Value("__id__"), low.Value("name"), value.Repr(low.Value("require")),
			value.Repr(low.Value("watch"))))
	}
	want := []string{"base base NoneNone", "first one NoneNone",
		"second web-01 [{'test': 'first'}, {'test': 'base'}][{'test': 'first'}]",
		"third third [{'test': 'second'}, {'test': 'first'}]None", "pydsl_web_1 four [{'test': 'third'}]None"}
	if strings.Join(got, "\n") != strings.Join(want, "\n") {
		t.Errorf("the states are\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
	p, err := s.Program(t.Context(), s.Named("web"))
	if err != nil || p.Steps[0].Name() != "extended" {
		t.Errorf("the file extends base: %v, %v", p, err)
	}
	for name, words := range map[string]string{
		"two":    "two.sls:3:1: renderer pydsl: PyDslError: test of x has the function nop, and gets fail",
		"called": "called.sls:4:1: renderer pydsl: PyDslError: x is called",
		"later":  "later.sls:3:1: renderer pydsl: PyDslError: test.nop of x gets a Python function",
		"wempy":  "wempy.sls:1:1: renderer wempy: ImportError: the host has no Python package wemplate",
	} {
		_, err := s.Call(t.Context(), "state.show_low_sls", []any{name}, nil, nil)
		if err == nil || !strings.Contains(err.Error(), words) {
			t.Errorf("%s: the error is %v, want %q", name, err, words)
		}
	}
}

// TestFilesOfPydslCallFunctions runs cmd.call and cmd.wait_call with functions that a file defines, as Salt does.
func TestFilesOfPydslCallFunctions(t *testing.T) {
	s, dir := pythonSession(t, map[string]string{"states/web.sls": "#!pydsl\n" +
		"def write(text, end='.'):\n    with open('DIR/out', 'a') as f:\n        f.write(text + end)\n    return 'wrote'\n" +
		"def answer():\n    return {'result': True, 'comment': 'mine', 'changes': {'a': 1}}\n" +
		"def no():\n    return False\ndef fails():\n    raise ValueError('no disk')\n" +
		"state('a').cmd.call(write, 'one', end='!')\nstate('b').cmd.call(answer)\nstate('c').cmd.call(no)\n" +
		"state('d').cmd.call(fails)\nstate('e').cmd.wait_call(write, 'two').watch(cmd='b')\n" +
		"state('f').cmd.wait_call(write, 'three')\n"})
	file := filepath.Join(dir, "states/web.sls")
	text, err := os.ReadFile(file)
	if err == nil {
		err = os.WriteFile(file, []byte(strings.ReplaceAll(string(text), "DIR", dir)), 0o644)
	}
	if err != nil {
		t.Fatal(err)
	}
	for _, dry := range []bool{true, false} {
		p, err := s.Program(t.Context(), s.Named("web"))
		if err != nil {
			t.Fatal(err)
		}
		s.Test = dry
		var got []string
		for _, r := range s.Run(t.Context(), p, nil).All() {
			first, _, _ := strings.Cut(r.Comment, "\n")
			got = append(got, fmt.Sprintf("%s %s %v %s %s", r.ID(), r.Name(), r.Outcome, value.Repr(r.Changes), first))
		}
		written, _ := os.ReadFile(filepath.Join(dir, "out"))
		want := wantedCalls(dry)
		if all := strings.ReplaceAll(strings.Join(got, "\n"), dir, "DIR"); all != want || (string(written) == "") != dry ||
			!dry && string(written) != "one!two." {
			t.Errorf("dry %v: written %q, results\n%s\nwant\n%s", dry, written, all, want)
		}
	}
}

// wantedCalls returns the results of TestFilesOfPydslCallFunctions.
func wantedCalls(dry bool) string {
	if dry {
		const says = " a dry run does not call the function "
		return "a write 2 {}" + says + "write\nb answer 2 {}" + says + "answer\nc no 2 {}" + says + "no\nd fails 2 {}" +
			says + "fails\ne write 2 {} unknown, because it runs only if cmd.call answer changes something:" + says +
			"write\nf write 1 {} "
	}
	return "a write 1 {'retval': 'wrote'} wrote\nb answer 1 {'a': 1} mine\nc no 0 {'retval': False} \n" +
		"d fails 0 {} ValueError: no disk (DIR/states/web.sls:11, in fails)\ne write 1 {'retval': 'wrote'} wrote\n" +
		"f write 1 {} "
}

// TestPackagesOfTheTree imports packages of _python as from a directory of PYTHONPATH.
func TestPackagesOfTheTree(t *testing.T) {
	s, dir := pythonSession(t, map[string]string{
		"states/_python/own/__init__.py":      "from .part import two\nfrom own.deep import low\nONE = 1\n",
		"states/_python/own/part.py":          "import os\ndef two():\n    return 2\nFILE = os.path.basename(__file__)\n",
		"states/_python/own/deep/__init__.py": "from ..part import two as low\n",
		"states/_python/own/data.txt":         "data",
		"states/_python/spread/part.py":       "PART = 'spread'\n",
		"states/_python/_plain.py":            "def f():\n    return '__salt__' in globals(), __name__\n",
		"states/_python/mako/__init__.py":     "MINE = True\n",
		"states/_python/salt/__init__.py":     "raise ValueError('not this one')\n",
		"states/_modules/use.py": "import _plain, mako, os, own, spread.part\nimport own.part as part\nimport salt.utils\n" +
			"def all():\n    with open(os.path.join(own.__path__[0], 'data.txt')) as f:\n" +
			"        return own.ONE, own.two(), own.low(), part.FILE, _plain.f(), mako.MINE, f.read(), spread.part.PART\n" +
			"def absent():\n    import own.absent\n",
		"states/web.sls": "#!py\nimport own\ndef run():\n    return {'x': {'test.nop': [{'name': 'n%d' % own.ONE}]}}\n",
	})
	a, err := s.Call(t.Context(), "use.all", nil, nil, nil)
	const want = "(1, 2, 2, 'part.py', (False, '_plain'), True, 'data', 'spread')"
	if got := value.Repr(a.Value); err != nil || got != want {
		t.Errorf("got %s, %v, want %s", got, err, want)
	}
	_, err = s.Call(t.Context(), "use.absent", nil, nil, nil)
	if err == nil || !strings.Contains(err.Error(), "ModuleNotFoundError: No module named 'own.absent'") {
		t.Errorf("a part that is missing: %v", err)
	}
	if p, err := s.Program(t.Context(), s.Named("web")); err != nil || p.Steps[0].Name() != "n1" {
		t.Errorf("an SLS file that imports a package: %v", err)
	}
	if os.Geteuid() != 0 {
		return
	}
	other := families.New(s.Settings)
	t.Cleanup(other.Close)
	if err := os.Chown(filepath.Join(dir, "states/_python/own/part.py"), 65534, 65534); err != nil {
		t.Fatal(err)
	}
	_, err = other.Call(t.Context(), "use.all", nil, nil, nil)
	if err == nil || !strings.Contains(err.Error(), "part.py") {
		t.Errorf("a part that another user owns is imported: %v", err)
	}
}

// TestReturnersAndOutputters passes a result to returners and to an outputter of the tree.
func TestReturnersAndOutputters(t *testing.T) {
	s, dir := pythonSession(t, map[string]string{
		"states/_returners/keep.py": "def returner(ret):\n    with open(ret['return'], 'a') as f:\n" +
			"        f.write(ret['fun'] + __opts__['id'])\n",
		"states/_returners/broken.py": "def returner(ret):\n    raise ValueError('no room')\n",
		"states/_output/loud.py":      "def output(data, **kwargs):\n    return str(data['local']).upper()\n",
	})
	kept := filepath.Join(dir, "kept")
	failed := s.Return(t.Context(), "keep, broken,none", value.NewMap("fun", "test.echo ", "return", kept))
	if data, err := os.ReadFile(kept); err != nil || string(data) != "test.echo web-01" {
		t.Errorf("the returner wrote %q, %v", data, err)
	}
	if len(failed) != 2 || !strings.Contains(failed[0].Error(), "ValueError: no room") ||
		failed[1].Error() != "the tree has no returner none" {
		t.Errorf("the returners failed with %v", failed)
	}
	text, err := s.Formatted(t.Context(), "loud", value.NewMap("local", "hi"))
	if err != nil || text != "HI" || !s.HasOutputter("loud") || s.HasOutputter("quiet") {
		t.Errorf("the outputter made %q, %v", text, err)
	}
}

// TestLoaderTakesWhatSaltTakes calls functions of modules that restrict or rename what they define.
func TestLoaderTakesWhatSaltTakes(t *testing.T) {
	s, _ := pythonSession(t, map[string]string{
		"states/_modules/all.py":    "__all__ = ['a']\ndef a(): return 'a'\ndef b(): return 'b'\n",
		"states/_modules/alone.py":  "__virtualname__ = 'other'\nfrom os.path import join\ndef f(): return 'alone'\n",
		"states/_modules/named.py":  "__virtualname__ = 'one'\ndef __virtual__(): return 'two'\ndef f(): return 'one'\n",
		"states/_modules/_own.py":   "def f(): return 'own'\n",
		"states/_modules/kept.py":   "def __virtual__(): return False, 'no disk'\n",
		"states/_modules/any.py":    "def f(a=1, **kwargs): return kwargs['b']\n",
		"states/_modules/failed.py": "def __virtual__(): raise ValueError('boom')\n",
		"states/_modules/needs.py": "from salt.utils.decorators import depends\nimport os\n" +
			"@depends('os')\ndef a(): return 'a'\n" +
			"@depends('nosuch')\ndef b(): return 'b'\n@depends('nosuch', fallback_function=lambda: 'c')\ndef c(): pass\n" +
			"@depends('true', retcode=0)\ndef d(): return 'd'\n@depends('false', retcode=0)\ndef e(): return 'e'\n",
		"states/_modules/disks.py": "__virtualname__ = 'mdisk'\ndef __virtual__(): return __virtualname__\n" +
			"def list_all(): return []\n",
		"states/_modules/look.py": "def f():\n    try:\n        __salt__['no.such']\n    except KeyError as e:\n" +
			"        return e.args[0]\n",
	})
	for name, want := range map[string]string{
		"all.a": "a", "alone.f": "alone", "one.f": "one", "any.f": "2", "needs.a": "a", "needs.c": "c", "needs.d": "d",
		"look.f": "no.such",
	} {
		v, err := s.Call(t.Context(), name, nil, value.NewMap(map[bool][]any{true: {"b", "2"}}[name == "any.f"]...), nil)
		if err != nil || v.Value != want {
			t.Errorf("%s: %v, %v", name, v.Value, err)
		}
	}
	for name, want := range map[string]string{
		"all.b": "'all.b' is not available", "other.f": "other.f", "two.f": "two.f", "_own.f": "_own.f",
		"alone.join": "'alone.join' is not available", "kept.f": "'kept' __virtual__ returned False: no disk",
		"failed.f": "Exception raised when processing __virtual__ function", "needs.b": "'needs.b' is not available",
		"needs.e": "'needs.e' is not available", "mdisk.list_al": "'mdisk.list_al' is not available",
	} {
		if v, err := s.Call(t.Context(), name, nil, nil, nil); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, %v, want %q", name, v.Value, err, want)
		}
	}
	_, err := s.Call(t.Context(), "mdisk.list_al", nil, nil, nil)
	if hint := diag.HintOf(err); !strings.Contains(hint, `did you mean "mdisk.list_all"?`) {
		t.Errorf("the hint about a misspelt function is %q", hint)
	}
}

// TestWhatModulesTellOfThemselves compares what sys and saltutil say of modules, and what modules see and return beside
// their values, with Salt 3006.
func TestWhatModulesTellOfThemselves(t *testing.T) {
	s, _ := pythonSession(t, map[string]string{
		"states/_modules/own.py": "from salt.utils.functools import alias_function\nimport salt.utils.yaml\n" +
			"from collections import OrderedDict\n" +
			"__outputter__ = {'table': 'txt'}\ndef table(): return 1\ndef other(a, *, b=1): return 1\n" +
			"def kinds(): return [type(__pillar__).__name__, isinstance(__pillar__, dict), __opts__['state_top'], " +
			"__opts__['default_top'], alias_function(table, 'x').__doc__, salt.utils.yaml.safe_dump({'b': [1], 'a': " +
			"OrderedDict([('z', 1), ('a', 2)])})]\n",
		"states/_states/mine.py": "\"\"\"Module.\"\"\"\ndef made(name, size=1, **kwargs):\n    \"\"\"Made.\"\"\"\n" +
			"    return {'name': name, 'changes': {}, 'result': True, 'comment': '', 'data': {'x': 1}}\n",
		"states/_renderers/rows.py": "def render(data, saltenv='', **kwargs):\n    \"\"\"Rows.\"\"\"\n    return {}\n",
		"states/_returners/keep.py": "def returner(ret):\n    \"\"\"Keeps.\"\"\"\n",
	})
	for _, c := range [][3]string{
		{"own.kinds", "", "['NamedLoaderContext', True, 'top.sls', 'base', " +
			"'\\nThis function is an alias of ``table``.\\n', 'a: {z: 1, a: 2}\\nb: [1]\\n']"},
		{"sys.argspec", "own.other",
			"{'own.other': {'args': ['a'], 'defaults': None, 'varargs': None, 'kwargs': None}}"},
		{"sys.state_argspec", "mine",
			"{'mine.made': {'args': ['name', 'size'], 'defaults': [1], 'varargs': None, 'kwargs': True}}"},
		{"sys.state_doc", "mine.made", "{'mine': 'Module.', 'mine.made': 'Made.'}"},
		{"sys.list_renderers", "*ow*", "['rows']"},
		{"sys.renderer_doc", "row*", "{'rows': 'Rows.'}"},
		{"sys.renderer_doc", "rows", "{}"},
		{"sys.list_returners", "", "['keep']"},
		{"sys.list_returner_functions", "keep", "['keep.returner']"},
		{"sys.returner_doc", "keep", "{'keep.returner': 'Keeps.'}"},
		{"saltutil.list_extmods", "",
			"{'modules': ['own'], 'states': ['mine'], 'renderers': ['rows'], 'returners': ['keep']}"},
	} {
		var args []any
		if c[1] != "" {
			args = []any{c[1]}
		}
		v, err := s.Call(t.Context(), c[0], args, nil, nil)
		if got := value.Repr(v.Value); err != nil || got != c[2] {
			t.Errorf("%s %s is %s, want %s: %v", c[0], c[1], got, c[2], err)
		}
	}
	if table, other := s.OutputOf("own.table"), s.OutputOf("own.other"); table != "txt" || other != "" {
		t.Errorf("the formats of the output are %q and %q", table, other)
	}
	v, err := s.Call(t.Context(), "state.single", []any{"mine.made", "x"}, nil, nil)
	if got := value.Repr(v.Value); err != nil || !strings.Contains(got, "'data': {'x': 1}") {
		t.Errorf("the result is %s: %v", got, err)
	}
}
