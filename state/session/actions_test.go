package session_test

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/corpus-agent/corpus-agent/state/host"
	"github.com/corpus-agent/corpus-agent/state/roots"
	"github.com/corpus-agent/corpus-agent/state/session"
	"github.com/corpus-agent/corpus-agent/state/value"
)

// stateTree is a session over a directory of SLS files. DIR in them stands for the directory.
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
	h, err := host.New(host.Options{})
	if err != nil {
		t.Fatal(err)
	}
	return session.New(session.Settings{Host: h, ID: "web1", States: []roots.Env{{Name: "base", Dirs: []string{dir}}}}), dir
}

// applied runs an SLS file and gives the results by ID.
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

// TestCallingFunctions runs module states in all their forms: dry, where nothing is called, and for real.
func TestCallingFunctions(t *testing.T) {
	s, dir := stateTree(t, map[string]string{"t.sls": `
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
slip:
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
says no:
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
not here:
  module.run:
    - boto_ec2.run: []
`})
	dry := applied(t, s, true)
	for id, want := range map[string]any{"old form": nil, "new form": nil, "no such function": false, "missing argument": false, "waits": true, "not here": false} {
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
		"old form":         {true, "called file.append", "'ret': 'wrote 2 to"},
		"reserved names":   {true, "called file.touch", ""},
		"new form":         {true, "called test.echo, called file.append", "'test.echo': 'x'"},
		"no arguments":     {true, "called test.ping", "{'test.ping': True}"},
		"by a state":       {true, "", "'new': '"},
		"slip":             {true, "", `did you mean "text"`},
		"no such function": {false, "there is no function service.restrt", ""},
		"missing argument": {false, "file.symlink lacks its argument path", ""},
		"says no":          {false, "file.check_hash says no", ""},
		"waits":            {true, "", "'changes': {}"},
		"watches":          {true, "called file.append", ""},
		"command":          {false, "ended with code 3", ""},
		"not here":         {false, "boto_ec2.run: clouds are not asked", ""},
	} {
		text := value.Repr(got[id])
		if got[id].Value("result") != want.result || !strings.Contains(text, want.comment) || !strings.Contains(text, want.more) {
			t.Errorf("%s gives %s, want %v, %q and %q", id, text, want.result, want.comment, want.more)
		}
	}
	data, err := os.ReadFile(filepath.Join(dir, "log"))
	if want := "one\ntwo\nthree\n"; err != nil || string(data) != want {
		t.Errorf("the log is %q, %v, want %q", data, err, want)
	}
	if _, err := os.Stat(filepath.Join(dir, "watched")); err != nil {
		t.Errorf("what watched a change was not called: %v", err)
	}
}

// TestTemplatesOnlyRead holds that a template cannot call what changes the host, and that it can ask
// the network.
func TestTemplatesOnlyRead(t *testing.T) {
	s, _ := stateTree(t, map[string]string{"t.sls": `
{% set links = salt['network.interfaces']() %}
{{ 'up' if links['lo']['up'] else 'down' }}:
  test.show_notification:
    - text: {{ salt.network.ip_addrs('lo', True) | first }} {{ salt.dig.check_ip('::1') }}
`, "acts.sls": "{{ salt['service.restart']('x') }}"})
	got := applied(t, s, false)
	if got["up"] == nil || !strings.Contains(value.Repr(got["up"]), "127.0.0.1 True") {
		t.Errorf("lo was not seen: %v", got)
	}
	_, err := s.Call(context.Background(), "state.sls", []any{"acts"}, value.NewMap(), nil)
	if err == nil || !strings.Contains(err.Error(), "templates only read") {
		t.Errorf("a template that restarts a service gives %v", err)
	}
}
