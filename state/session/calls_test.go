package session_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/corpus-agent/corpus-agent/state/diag"
	"github.com/corpus-agent/corpus-agent/state/families"
	"github.com/corpus-agent/corpus-agent/state/host"
	"github.com/corpus-agent/corpus-agent/state/host/machine"
	"github.com/corpus-agent/corpus-agent/state/roots"
	"github.com/corpus-agent/corpus-agent/state/session"
	"github.com/corpus-agent/corpus-agent/state/statetest"
	"github.com/corpus-agent/corpus-agent/state/value"
)

// functionCall is a call of an execution module and its expected result. If want begins with ~, the rest is a part of
// the result; if it begins with !, the rest is a part of the error.
type functionCall struct {
	name   string
	args   []any
	kwargs *value.Map
	want   string
	file   string // path of a file of the root that has the content text after the call; "" for none
	text   string
}

// sessionBelow returns a new root with files, and a session on it. programs imitates the programs of the root; nil
// means the real ones.
func sessionBelow(t *testing.T, files map[string]string, programs statetest.Commands) (*session.Session, string) {
	t.Helper()
	root := t.TempDir()
	for name, text := range files {
		path := filepath.Join(root, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	o := host.Options{Root: root}
	if programs != nil {
		o.Commands = programs
	}
	h, err := machine.New(o)
	if err != nil {
		t.Fatal(err)
	}
	return families.New(session.Settings{Host: h, ID: "web1", Shell: true,
		Grains: value.NewMap("id", "web1", "os_family", "Debian", "roles", value.Strings("web"), "rack",
			value.NewMap("row", 4)),
		Options: value.NewMap("cachedir", "/var/cache/corpus"),
		States:  []roots.Env{{Name: "base", Dirs: []string{"/srv/salt"}}}}), root
}

// runCalls makes the calls one after the other, and checks their results.
func runCalls(t *testing.T, s *session.Session, root string, calls []functionCall) {
	t.Helper()
	for _, c := range calls {
		kwargs := c.kwargs
		if kwargs == nil {
			kwargs = value.NewMap()
		}
		answer, err := s.Call(context.Background(), c.name, c.args, kwargs, nil)
		got := value.Repr(answer.Value)
		if err != nil {
			got = "!" + err.Error() + " " + diag.HintOf(err)
		}
		if ok := got == c.want || c.want[0] == '~' && err == nil && strings.Contains(got, c.want[1:]) ||
			c.want[0] == '!' && err != nil && strings.Contains(got, c.want[1:]); !ok {
			t.Errorf("%s%v %s\n got %s\nwant %s", c.name, c.args, value.Repr(kwargs), got, c.want)
		}
		if c.file == "" {
			continue
		}
		data, err := os.ReadFile(filepath.Join(root, c.file))
		if (err != nil || string(data) != c.text) && !(c.text == "" && errors.Is(err, os.ErrNotExist)) {
			t.Errorf("after %s%v %s holds %q, %v; want %q", c.name, c.args, c.file, data, err, c.text)
		}
	}
}

func TestGrainsAreSet(t *testing.T) {
	s, root := sessionBelow(t, map[string]string{"etc/corpus/grains.yaml": "# who we are\nrole: db\n"}, nil)
	const file = "etc/corpus/grains.yaml"
	runCalls(t, s, root, []functionCall{
		{name: "grains.setval", args: []any{"tier", "gold"}, want: "{'tier': 'gold'}", file: file,
			text: "role: db\ntier: gold\n"},
		{name: "grains.get", args: []any{"tier"}, want: "'gold'"},
		{name: "grains.append", args: []any{"roles", "db"}, want: "{'roles': ['web', 'db']}", file: file,
			text: "role: db\nroles:\n- web\n- db\ntier: gold\n"},
		{name: "grains.append", args: []any{"roles", "db"}, want: "'The val db was already in the list roles'"},
		{name: "grains.append", args: []any{"tier", "x"}, want: "'The key tier is not a valid list'"},
		{name: "grains.append", args: []any{"tier", "x"}, kwargs: value.NewMap("convert", true),
			want: "{'tier': ['gold', 'x']}"},
		{name: "grains.remove", args: []any{"roles", "web"}, want: "{'roles': ['db']}"},
		{name: "grains.remove", args: []any{"roles", "web"}, want: "'The val web was not in the list roles'"},
		{name: "grains.set", args: []any{"rack:unit", 17},
			want: "{'comment': '', 'changes': {'rack': {'row': 4, 'unit': 17}}, 'result': True}"},
		{name: "grains.set", args: []any{"rack:unit", 17}, want: "~Grain is already set"},
		{name: "grains.set", args: []any{"rack", 1}, want: "~'result': False"},
		{name: "grains.set", args: []any{"rack", 1}, kwargs: value.NewMap("force", true), want: "~{'rack': 1}"},
		{name: "grains.delval", args: []any{"rack"}, want: "~{'rack': None}"},
		{name: "grains.delkey", args: []any{"rack"}, want: "~'result': True", file: file,
			text: "role: db\nroles:\n- db\ntier:\n- gold\n- x\n"},
		{name: "grains.get", args: []any{"rack", "gone"}, want: "'gone'"},
		{name: "grains.setvals", args: []any{value.NewMap("a", 1, "tier", nil)}, kwargs: value.NewMap("destructive", true),
			want: "{'a': 1, 'tier': None}",
			file: file, text: "a: 1\nrole: db\nroles:\n- db\n"},
		{name: "grains.setvals", args: []any{"x"}, want: "!a mapping was expected"},
	})
	if err := os.WriteFile(filepath.Join(root, file), []byte("- no\n- mapping\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	runCalls(t, s, root,
		[]functionCall{{name: "grains.setval", args: []any{"a", 1}, want: "!a mapping was expected", file: file,
			text: "- no\n- mapping\n"}})
}

const passwd = "root:x:0:0:root:/root:/bin/sh\nann:x:1000:1000::/home/ann:/bin/sh\n"

// account is a user and an /etc/passwd that has it.
type account struct{ name, passwd string }

// tester returns the account that runs the test and owns the files of a root.
func tester() account {
	uid := os.Getuid()
	switch uid {
	case 0:
		return account{"root", passwd}
	case 1000:
		return account{"ann", passwd}
	}
	return account{"tester", fmt.Sprintf("%stester:x:%d:%d::/:/bin/sh\n", passwd, uid, uid)}
}

func TestShadowAndCron(t *testing.T) {
	tab := "MAILTO=me\n"
	programs := func(c host.Command) (host.Output, error) {
		if filepath.Base(c.Argv[0]) == "crontab" && c.Argv[len(c.Argv)-1] == "-" {
			tab = c.Stdin
		}
		return host.Output{}, nil
	}
	s, root := sessionBelow(t, map[string]string{"etc/passwd": passwd, "etc/group": "root:x:0:\n",
		"etc/shadow":      "root:*:19000:0:99999:7:::\nann:$6$x:19001::90::::\n",
		"usr/bin/crontab": "", "var/spool/cron/crontabs/root": tab}, programs)
	if err := os.Chmod(filepath.Join(root, "usr/bin/crontab"), 0o755); err != nil {
		t.Fatal(err)
	}
	write := func() {
		if err := os.WriteFile(filepath.Join(root, "var/spool/cron/crontabs/root"), []byte(tab), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for _, c := range []functionCall{
		{name: "shadow.info", args: []any{"ann"},
			want: "{'name': 'ann', 'passwd': '$6$x', 'lstchg': 19001, 'min': -1, 'max': 90, 'warn': -1, 'inact': -1, " +
				"'expire': -1}"},
		{name: "shadow.info", args: []any{"bob"}, want: "~'name': '', 'passwd': ''"},
		{name: "shadow.set_password", args: []any{"bob", "x"}, want: "!user bob does not exist"},
		{name: "cron.list_tab", args: []any{"root"}, want: "{'pre': ['MAILTO=me'], 'crons': [], 'special': [], 'env': []}"},
		{name: "cron.set_job", args: []any{"root", "*/5", "*", "*", "*", 1, "/bin/true"}, want: "'new'"},
		{name: "cron.set_job", args: []any{"root", "*/5", "*", "*", "*", 1, "/bin/true"}, want: "'present'"},
		{name: "cron.set_job", args: []any{"root", "7", "*", "*", "*", 1, "/bin/true"}, want: "'updated'"},
		{name: "cron.set_job", args: []any{"root", "7 8", "*", "*", "*", 1, "/bin/true"},
			want: "!is not a valid time for a crontab"},
		{name: "cron.ls", args: []any{"root"},
			want: "{'pre': ['MAILTO=me'], 'crons': [{'minute': '7', 'hour': '*', 'daymonth': '*', 'month': '*', " +
				"'dayweek': '1', 'identifier': None, 'cmd': '/bin/true', 'comment': None, 'commented': False}], 'special': [], " +
				"'env': []}"},
		{name: "cron.set_special", args: []any{"root", "@daily", "/bin/x"}, want: "'new'"},
		{name: "cron.set_env", args: []any{"root", "PATH", "/bin"}, want: "'new'"},
		{name: "cron.list_tab", args: []any{"root"},
			want: "~'special': [{'spec': '@daily', 'identifier': None, 'cmd': '/bin/x', 'comment': None, 'commented': " +
				"False}], 'env': [{'name': 'PATH', 'value': '/bin'}]}"},
		{name: "cron.rm_job", args: []any{"root", "/bin/true", "8"}, want: "'absent'"},
		{name: "cron.rm_job", args: []any{"root", "/bin/true"}, want: "'removed'"},
		{name: "cron.rm", args: []any{"root", "/bin/true"}, want: "'absent'"},
		{name: "cron.rm_special", args: []any{"root", "/bin/x"}, want: "'removed'"},
		{name: "cron.rm_env", args: []any{"root", "PATH"}, want: "'removed'"},
		{name: "cron.raw_cron", args: []any{"root"}, want: "~MAILTO=me"},
		{name: "cron.list_tab", args: []any{"nobody-here/.."}, want: "!is not a user's name"},
	} {
		runCalls(t, s, root, []functionCall{c})
		write()
	}
}

func TestStatesGivenInTheCall(t *testing.T) {
	s, root := sessionBelow(t,
		map[string]string{"tmp/one.sls": "include: [more]\n{% set n = 'b' %}\n/{{ n }}:\n  file.managed:\n" +
			"    - contents: two\n",
			"srv/salt/more.sls": "/more:\n  file.touch: []\n"}, nil)
	managed := value.NewMap("/c", value.NewMap("file.managed", value.NewList(value.NewMap("contents", "three"))))
	runCalls(t, s, root, []functionCall{
		{name: "state.template_str", args: []any{"/a:\n  file.managed:\n    - contents: {{ grains['id'] }}\n"},
			want: "~'result': True", file: "a", text: "web1\n"},
		{name: "state.template_str", args: []any{"/a:\n  file.mangaed: []\n"}, want: "~file.mangaed"},
		{name: "state.template_str", args: []any{"{% if %}"}, want: "!template_str:1"},
		{name: "state.template_str", want: "!the argument tem is missing"},
		{name: "state.template", args: []any{"/tmp/one"}, want: "~'result': True", file: "b", text: "two\n"},
		{name: "file.file_exists", args: []any{"/more"}, want: "True"},
		{name: "state.template", args: []any{"tmp/one"}, want: "!is not an absolute path"},
		{name: "state.high", args: []any{managed}, kwargs: value.NewMap("test", true), want: "~'result': None", file: "c"},
		{name: "state.high", args: []any{managed}, want: "~'__sls__': 'high'", file: "c", text: "three\n"},
		{name: "state.low", args: []any{value.NewMap("state", "file", "fun", "managed", "name", "/d", "contents", "four")},
			want: "~'changes': ", file: "d", text: "four\n"},
		{name: "state.low", args: []any{value.NewMap("state", "file")}, want: "!no fun"},
		{name: "state.low", args: []any{value.NewMap("state", "file", "fun", "managed", "name", "/e", "contents", "x")},
			kwargs: value.NewMap("tset", true),
			want:   "!state.low has no argument tset", file: "e"},
	})
}

func TestSysListsStates(t *testing.T) {
	s, root := sessionBelow(t, nil, nil)
	runCalls(t, s, root, []functionCall{
		{name: "sys.list_state_functions", args: []any{"timezone"}, want: "['timezone.system']"},
		{name: "sys.list_state_functions", args: []any{"archive.*", "timezone"},
			want: "['archive.extracted', 'timezone.system']"},
		{name: "sys.list_state_modules", args: []any{"time*", "arch*"}, want: "['archive', 'timezone']"},
		{name: "sys.state_argspec", args: []any{"timezone.system"},
			want: "{'timezone.system': {'args': ['name', 'utc'], 'defaults': [True], 'varargs': None, 'kwargs': None}}"},
		{name: "sys.state_doc", args: []any{"file.copy"}, want: "~file.copy(name, source, "},
		{name: "test.versions", want: "~corpus-agent"},
	})
	if got := fmt.Sprint(s.Callable()); !strings.Contains(got, "state.template_str") {
		t.Errorf("sys lists %s", got)
	}
}

// TestShellIsTheDefaultOfTheCallAlone checks that cmd.run uses a shell if a user calls it, and not in the templates of
// what a user calls: a converge renders them the same.
func TestShellIsTheDefaultOfTheCallAlone(t *testing.T) {
	set, _ := settings(t, map[string]string{"states/t.sls": "x:\n  test.nop: []\n"})
	set.Shell = true
	s := families.New(set)
	for name, c := range map[string]struct{ argument, value, want string }{
		"cmd.run":           {"cmd", "echo a; echo b", "a\nb"},
		"slsutil.renderer":  {"string", "{{ salt['cmd.run']('echo a; echo b') }}", "a; echo b"},
		"cmd.run_stdout":    {"cmd", "echo a | tr a b", "b"},
		"slsutil.renderer ": {"string", "{{ salt['cmd.run']('echo a | tr a b', python_shell=True) }}", "b"},
	} {
		kwargs := value.NewMap(c.argument, c.value)
		if c.argument == "string" {
			kwargs.Set("default_renderer", "jinja")
		}
		answer, err := s.Call(t.Context(), strings.TrimSpace(name), nil, kwargs, nil)
		if err != nil || value.Str(answer.Value) != c.want {
			t.Errorf("%s of %q is %q, want %q: %v", name, c.value, value.Str(answer.Value), c.want, err)
		}
	}
}
