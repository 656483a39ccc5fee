package session_test

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/corpus-agent/corpus-agent/state/families"
	"github.com/corpus-agent/corpus-agent/state/host"
	"github.com/corpus-agent/corpus-agent/state/host/machine"
	"github.com/corpus-agent/corpus-agent/state/roots"
	"github.com/corpus-agent/corpus-agent/state/session"
	"github.com/corpus-agent/corpus-agent/state/value"
)

// stateTree returns a session with a directory of SLS files, and the directory. DIR in the files stands for it.
func stateTree(t *testing.T, files map[string]string) (*session.Session, string) {
	t.Helper()
	dir := t.TempDir()
	for name, text := range files {
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(strings.ReplaceAll(text, "DIR", dir)), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	h, err := machine.New(host.Options{})
	if err != nil {
		t.Fatal(err)
	}
	return families.New(session.Settings{Host: h, ID: "web1", States: []roots.Env{{Name: "base", Dirs: []string{dir}}}}),
		dir
}

// applied runs the SLS file t and returns the results by ID.
func applied(t *testing.T, s *session.Session, dry bool) map[string]*value.Map {
	t.Helper()
	answer, err := s.Call(context.Background(), "state.sls", []any{"t"}, value.NewMap("test", dry), nil)
	if err != nil {
		t.Fatal(err)
	}
	byID := map[string]*value.Map{}
	for _, v := range answer.Value.(*value.Map).All() {
		result := v.(*value.Map)
		byID[value.Str(result.Value("__id__"))] = result
	}
	return byID
}

// calls has module states in all their forms.
const calls = `
old form:
  module.run:
    - name: file.append
    - path: DIR/log
    - args: [one, two]
reserved names:
  module.run:
    - name: file.touch
    - m_name: DIR/touched
new form:
  module.run:
    - test.echo: [{text: x}]
    - file.append:again: ['DIR/log', three]
    - require: [{module: old form}]
no arguments:
  module.run:
    - test.ping:
by a state:
  module.run:
    - name: file.symlink
    - src: DIR/log
    - path: DIR/link
misspelled argument:
  module.run:
    - name: test.echo
    - text: x
    - textt: y
no such function:
  module.run:
    - service.restrt: [{name: x}]
missing argument:
  module.run:
    - name: file.symlink
    - src: x
returned False:
  module.run:
    - name: file.check_hash
    - path: DIR/t.sls
    - file_hash: md5=00000000000000000000000000000000
waits:
  module.wait:
    - name: file.append
    - path: DIR/log
    - args: [never]
watches:
  module.wait:
    - name: file.append
    - path: DIR/watched
    - args: [woken]
    - watch: [{module: by a state}]
command:
  module.run:
    - name: cmd.run
    - cmd: exit 3
    - python_shell: true
    - raise_err: true
unsupported function:
  module.run:
    - boto_ec2.run: []
`

// TestCallingFunctions runs module states in all their forms. A dry run calls no function.
func TestCallingFunctions(t *testing.T) {
	s, dir := stateTree(t, map[string]string{"t.sls": calls})
	dry := applied(t, s, true)
	for id, want := range map[string]any{"old form": nil, "new form": nil, "no such function": false,
		"missing argument": false, "waits": true, "unsupported function": false} {
		if got := dry[id].Value("result"); got != want {
			t.Errorf("dry run of %s gives %v, want %v: %s", id, got, want, value.Repr(dry[id]))
		}
	}
	if _, err := os.Stat(filepath.Join(dir, "log")); err == nil {
		t.Error("a dry run called a function")
	}
	got := applied(t, s, false)
	for id, want := range map[string]struct {
		result        bool
		comment, more string
	}{
		"old form":             {true, "called file.append", "'ret': 'wrote 2 to"},
		"reserved names":       {true, "called file.touch", ""},
		"new form":             {true, "called test.echo, called file.append", "'test.echo': 'x'"},
		"no arguments":         {true, "called test.ping", "{'test.ping': True}"},
		"by a state":           {true, "", "'ret': True"},
		"misspelled argument":  {true, "", `did you mean "text"`},
		"no such function":     {false, "there is no function service.restrt", ""},
		"missing argument":     {false, "file.symlink lacks its argument path", ""},
		"returned False":       {false, "file.check_hash returned False", ""},
		"waits":                {true, "", "'changes': {}"},
		"watches":              {true, "called file.append", ""},
		"command":              {false, "ended with code 3", ""},
		"unsupported function": {false, "boto_ec2.run: clouds are not asked", ""},
	} {
		text := value.Repr(got[id])
		if got[id].Value("result") != want.result || !strings.Contains(text, want.comment) ||
			!strings.Contains(text, want.more) {
			t.Errorf("%s gives %s, want %v, %q and %q", id, text, want.result, want.comment, want.more)
		}
	}
	data, err := os.ReadFile(filepath.Join(dir, "log"))
	if want := "one\ntwo\nthree\n"; err != nil || string(data) != want {
		t.Errorf("the log is %q, %v, want %q", data, err, want)
	}
	if _, err := os.Stat(filepath.Join(dir, "watched")); err != nil {
		t.Errorf("the function that watches a change was not called: %v", err)
	}
}

// TestTemplatesOnlyRead checks that a template cannot call functions that change the host, and that it can query the
// network.
func TestTemplatesOnlyRead(t *testing.T) {
	s, _ := stateTree(t, map[string]string{"t.sls": `
{% set links = salt['network.interfaces']() %}
{{ 'up' if links['lo']['up'] else 'down' }}:
  test.show_notification:
    - text: {{ salt.network.ip_addrs('lo', True) | first }} {{ salt.dig.check_ip('::1') }}
`, "acts.sls": "{{ salt['service.restart']('x') }}"})
	got := applied(t, s, false)
	if got["up"] == nil || !strings.Contains(value.Repr(got["up"]), "127.0.0.1 True") {
		t.Errorf("the interface lo is missing: %v", got)
	}
	_, err := s.Call(context.Background(), "state.sls", []any{"acts"}, value.NewMap(), nil)
	if err == nil || !strings.Contains(err.Error(), "templates only read") {
		t.Errorf("a template that restarts a service gives %v", err)
	}
}

// formulaFunctions are the functions that the templates of public formulas call.
const formulaFunctions = `grains.filter_by log.debug slsutil.serialize pillar.get config.get grains.get cmd.run slsutil.merge mine.get log.warning
file.dirname defaults.merge log.error user.info file.file_exists pkg.version file.join cp.list_states file.directory_exists pillar.fetch
cmd.shell alternatives.show_current file.basename grains.has_value file.readdir test.provider dig.A dig.AAAA network.calc_net
network.ip_in_subnet dnsutil.serial slsutil.renderer cmd.run_all cmd.which cmd.has_exec file.contains_regex file.get_user pkg.version_cmp
config.option cp.list_master_dirs`

// TestFunctionsOfFormulas checks that templates find all of formulaFunctions, in both notations.
func TestFunctionsOfFormulas(t *testing.T) {
	var text strings.Builder
	for _, name := range strings.Fields(formulaFunctions) {
		text.WriteString("'" + name + "': {in: {{ '" + name + "' in salt }}, by_key: {{ salt['" + name +
			"'] is callable }}, by_name: {{ salt." + name + " is callable }}}\n")
	}
	s, _ := stateTree(t, map[string]string{"data.sls": text.String(), "t.sls": `
{% import_yaml "data.sls" as data %}
{% for name, found in data.items() %}
{{ name }}:
  test.configurable_test_state:
    - result: {{ found.in and found.by_key and found.by_name }}
    - changes: False
{% endfor %}
called:
  test.show_notification:
    - text: {{ salt['network.calc_net']('10.0.0.7', '255.255.255.0') }} {{ salt.network.ip_in_subnet('10.0.0.7', '10.0.0.0/8') }} {{ salt['cmd.run']('echo hi') }}
`})
	got := applied(t, s, false)
	if len(got) != len(strings.Fields(formulaFunctions))+1 {
		t.Errorf("there are %d results", len(got))
	}
	for name, result := range got {
		if result.Value("result") != true {
			t.Errorf("templates do not find %s: %s", name, value.Repr(result))
		}
	}
	if text := value.Repr(got["called"]); !strings.Contains(text, "10.0.0.0/24 True hi") {
		t.Errorf("calls give %s", text)
	}
}

// TestRefusedStates checks that an unsupported state of Salt is refused with a reason.
func TestRefusedStates(t *testing.T) {
	s, _ := stateTree(t, map[string]string{"t.sls": "web:\n  boto_secgroup.present: []\n"})
	text := value.Repr(applied(t, s, true)["web"])
	if !strings.Contains(text, "boto_secgroup.present: no such state function: resources of AWS") {
		t.Errorf("boto_secgroup gives %s", text)
	}
}

// TestCommandsOfTemplatesAreLogged checks that each command that a template runs is logged.
func TestCommandsOfTemplatesAreLogged(t *testing.T) {
	s, _ := stateTree(t, map[string]string{"t.sls": "{{ salt['cmd.run']('echo seen') }}:\n  test.nop: []\n"})
	var lines []string
	settings := s.Settings
	settings.Log = func(level, message string) { lines = append(lines, level+": "+message) }
	applied(t, families.New(settings), true)
	if !strings.Contains(strings.Join(lines, "\n"), "running `echo seen`") {
		t.Errorf("the log is %q", lines)
	}
}
