package session_test

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/corpus-agent/corpus-agent/state/diag"
	"github.com/corpus-agent/corpus-agent/state/families"
	"github.com/corpus-agent/corpus-agent/state/session"
	"github.com/corpus-agent/corpus-agent/state/value"
)

// theirs are changes after which an unprivileged user can change the file at a path.
var theirs = map[string]func(t *testing.T, file string) error{
	"owner":     func(_ *testing.T, file string) error { return os.Chown(file, nobody, nobody) },
	"mode":      func(_ *testing.T, file string) error { return os.Chmod(file, 0o666) },
	"directory": func(_ *testing.T, file string) error { return os.Chown(filepath.Dir(file), nobody, nobody) },
	"link": func(t *testing.T, file string) error {
		home := t.TempDir()
		if err := os.Chown(home, nobody, nobody); err != nil {
			return err
		}
		moved := filepath.Join(home, filepath.Base(file))
		if err := os.Rename(file, moved); err != nil {
			return err
		}
		return os.Symlink(moved, file)
	},
}

// TestRootRunsNoFileOfAUser calls what runs or renders a file, with files of the tree and of the host that root alone
// can change, and after each of the changes.
func TestRootRunsNoFileOfAUser(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("this requires root")
	}
	needPython(t)
	for name, c := range map[string]struct {
		call string // the function
		args func(dir string) []any
		with []any // further arguments, by name
		file string
	}{
		"from":     {"state.show_low_sls", words("from"), nil, "states/lib/um.sls"},
		"import":   {"state.show_low_sls", words("import"), nil, "states/lib/um.sls"},
		"helper":   {"state.show_low_sls", words("helper"), nil, "states/lib/t.jinja"},
		"script":   {"cmd.script", words("salt://bin/s.sh"), nil, "states/bin/s.sh"},
		"retcode":  {"cmd.script_retcode", words("salt://bin/s.sh"), nil, "states/bin/s.sh"},
		"host":     {"cmd.script", words("DIR/x/s.sh"), nil, "x/s.sh"},
		"rendered": {"cmd.script", words("DIR/x/s.sh"), []any{"template", "jinja", "runas", "nobody"}, "x/s.sh"},
		"template": {"state.template", words("DIR/x/t.sls"), nil, "x/t.sls"},
		"module": {"state.single", words("module.run"), []any{"name", "cmd.script", "source", "salt://bin/s.sh"},
			"states/bin/s.sh"},
	} {
		run := func(change func(*testing.T, string) error) string {
			set, dir := settings(t, map[string]string{
				"states/from.sls":    "#!pyobjects\nfrom salt://lib/um.sls import X\nTest.nop(X)\n",
				"states/import.sls":  "#!pyobjects\nimport salt://lib/um.sls\nTest.nop(um.X)\n",
				"states/lib/um.sls":  "#!pyobjects\nX = 'x'\n",
				"states/lib/t.jinja": "x\n",
				"states/bin/s.sh":    "#!/bin/sh\n:\n", "x/s.sh": "#!/bin/sh\n:\n", "x/t.sls": "x: {test.nop: []}\n",
			})
			helper := "#!py\nimport salt.utils.templates\ndef run():\n    return {salt.utils.templates.JINJA('" + dir +
				"/states/lib/t.jinja')['data']: {'test.nop': []}}\n"
			if err := os.WriteFile(filepath.Join(dir, "states/helper.sls"), []byte(helper), 0o644); err != nil {
				t.Fatal(err)
			}
			if err := change(t, filepath.Join(dir, c.file)); err != nil {
				t.Fatal(err)
			}
			return outcome(t, set, c.call, c.args(dir), value.NewMap(c.with...))
		}
		if got := run(func(*testing.T, string) error { return nil }); strings.Contains(got, "refused") {
			t.Errorf("%s of root: %s", name, got)
		}
		for by, change := range theirs {
			if (name == "import" || name == "helper") && by != "owner" {
				continue // the checks of "from" are the same
			}
			if got := run(change); !strings.Contains(got, "refused, since") || !strings.Contains(got, "C072") {
				t.Errorf("%s, %s of a user: %s", name, by, got)
			}
		}
	}
}

// words returns a function for arguments, in which DIR stands for the directory.
func words(all string) func(dir string) []any {
	return func(dir string) []any { return []any{strings.ReplaceAll(all, "DIR", dir)} }
}

// outcome returns the answer of a call, and its error with the hint.
func outcome(t *testing.T, set session.Settings, name string, args []any, kwargs *value.Map) string {
	t.Helper()
	s := families.New(set)
	defer s.Close()
	answer, err := s.Call(t.Context(), name, args, kwargs, nil)
	if err != nil {
		return err.Error() + " " + diag.HintOf(err)
	}
	return value.Repr(answer.Value)
}

// TestScriptsOfUsersRunAsThem calls a script of a user who runs it.
func TestScriptsOfUsersRunAsThem(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("this requires root")
	}
	set, dir := settings(t, map[string]string{"x/s.sh": "#!/bin/sh\nid -un\n"})
	file := filepath.Join(dir, "x/s.sh")
	if err := os.Chown(file, nobody, nobody); err != nil {
		t.Fatal(err)
	}
	got := outcome(t, set, "cmd.script", []any{file}, value.NewMap("runas", "nobody", "cwd", "/"))
	if !strings.Contains(got, "'stdout': 'nobody'") {
		t.Errorf("as nobody: %s", got)
	}
}

// TestScriptsAreAloneInTheirDirectory runs scripts that look for other files beside them, as interpreters do that load
// modules from there. In /tmp each user could put one.
func TestScriptsAreAloneInTheirDirectory(t *testing.T) {
	beside, err := os.CreateTemp("/tmp", "beside-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = errors.Join(beside.Close(), os.Remove(beside.Name())) })
	const looks = "#!/bin/sh\nset -e\ncd \"$(dirname \"$0\")\"\n[ \"$(ls -A | wc -l)\" = 1 ]\n" +
		"case $(stat -c %a .) in 700|711) echo alone;; esac\n"
	set, dir := settings(t, map[string]string{"states/s.sh": looks,
		"states/t.sh": "echo alone: {{ grains['id'] }}\n" + looks})
	left := func() []string {
		all, err := filepath.Glob("/tmp/.corpus-tmp-*")
		if err != nil {
			t.Fatal(err)
		}
		return all
	}
	before := len(left())
	for name, c := range map[string]struct {
		call string
		args []any
		with []any
	}{
		"function": {"cmd.script", []any{"salt://s.sh"}, nil},
		"code":     {"cmd.exec_code", []any{"sh", looks}, nil},
		"state":    {"state.single", []any{"cmd.script"}, []any{"name", "salt://s.sh"}},
		"rendered": {"state.single", []any{"cmd.script"}, []any{"name", "salt://t.sh", "template", "jinja"}},
		"check": {"state.single", []any{"file.managed"}, []any{"name", dir + "/f", "contents", looks, "check_cmd", "sh",
			"tmp_ext", ".sh"}},
	} {
		got := outcome(t, set, c.call, c.args, value.NewMap(c.with...))
		if name == "check" {
			if data, err := os.ReadFile(dir + "/f"); err == nil {
				got = string(data)
			}
		}
		if !strings.Contains(got, "alone") {
			t.Errorf("%s: %s", name, got)
		}
	}
	if len(left()) > before {
		t.Errorf("temporary files are left: %q", left())
	}
}
