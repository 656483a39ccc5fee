package session_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/corpus-agent/corpus-agent/state/value"
)

// packageFiles is a Python package of the tree whose modules import each other.
var packageFiles = map[string]string{
	"states/_modules/parted/__init__.py": "from .part import inner\nfrom .deep.low import lowest\n\ndef f():\n" +
		"    return [inner(), lowest()]\n",
	"states/_modules/parted/part.py":           "def inner():\n    return 'inner of ' + __grains__['id']\n",
	"states/_modules/parted/deep/__init__.py":  "",
	"states/_modules/parted/deep/low.py":       "from ..part import inner\n\ndef lowest():\n    return inner().upper()\n",
	"states/_modules/lacks/__init__.py":        "from .nothing import inner\n",
	"states/_modules/outside/__init__.py":      "from ....os import system\n",
	"states/_modules/plain.py":                 "def f():\n    return 1\n",
	"states/_modules/parted/unused_by_any.txt": "",
}

// TestAPackageOfTheTreeImportsItsParts checks imports between the modules of a package, and the error for a missing
// module.
func TestAPackageOfTheTreeImportsItsParts(t *testing.T) {
	s, _ := pythonSession(t, packageFiles)
	got, err := s.Call(t.Context(), "parted.f", nil, nil, nil)
	if want := "['inner of web-01', 'INNER OF WEB-01']"; err != nil || value.Repr(got.Value) != want {
		t.Errorf("%s, %v, want %s", value.Repr(got.Value), err, want)
	}
	_, err = s.Call(t.Context(), "lacks.f", nil, nil, nil)
	if err == nil || !strings.Contains(err.Error(), "the package lacks has no module nothing") {
		t.Errorf("a missing module: %v", err)
	}
}

// TestModulesThatAnotherUserCanChangeDoNotRun checks a package with a module that a user owns, and a state tree that
// all users may write to.
func TestModulesThatAnotherUserCanChangeDoNotRun(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("this requires root")
	}
	for name, change := range map[string]func(dir string) error{
		"parted.f": func(dir string) error {
			return os.Chown(filepath.Join(dir, "states/_modules/parted/part.py"), nobody, nobody)
		},
		"plain.f": func(dir string) error { return os.Chmod(filepath.Join(dir, "states"), 0o777) },
	} {
		s, dir := pythonSession(t, packageFiles)
		if err := change(dir); err != nil {
			t.Fatal(err)
		}
		got, err := s.Call(t.Context(), name, nil, nil, nil)
		if err == nil || !strings.Contains(err.Error(), "refused") {
			t.Errorf("%s: %s, %v", name, value.Repr(got.Value), err)
		}
	}
}

// contractModule is the module that was called in Salt 3006.0. TestModulesAnswerAsUnderSalt has the results.
const contractModule = `
import salt.exceptions
import salt.utils.args
import salt.utils.url

def retcode(n):
    __context__["retcode"] = n
    return "ended with %d" % n

def parse():
    args, kwargs = salt.utils.args.parse_input(["a", "b=5", "c=[1, 2]", "d={x: y}"], condition=False)
    return [args, kwargs]

def url():
    return salt.utils.url.add_env("salt://x", "dev")

def render_error():
    return sorted(salt.exceptions.SaltRenderError("x", line_num=1, buf="a\nb").__dict__)

def info():
    return salt.exceptions.CommandExecutionError("a", info={"b": 1}).strerror
`

// TestModulesAnswerAsUnderSalt compares results with those of Salt 3006.0.
func TestModulesAnswerAsUnderSalt(t *testing.T) {
	s, _ := pythonSession(t, map[string]string{"states/_modules/contract.py": contractModule,
		"states/_states/mine.py": "def present(name, size=1):\n    return {}\n\ndef _hidden(name):\n    return {}\n"})
	for _, c := range []struct {
		function string
		argument []any
		want     string
		code     int
	}{
		{"contract.retcode", []any{5}, "'ended with 5'", 5},
		{"contract.retcode", []any{0}, "'ended with 0'", 0},
		{"contract.parse", nil, "[['a'], {'b': 5, 'c': [1, 2], 'd': {'x': 'y'}}]", 0},
		{"contract.url", nil, "'salt://x?saltenv=dev'", 0},
		{"contract.render_error", nil, "['buffer', 'context', 'error', 'line_num', 'message', 'strerror']", 0},
		{"contract.info", nil, `'a. Additional info follows:\n\nb:\n    1'`, 0},
		{"sys.list_state_functions", []any{"mine"}, "['mine.present']", 0},
	} {
		got, err := s.Call(t.Context(), c.function, c.argument, nil, nil)
		if err != nil || value.Repr(got.Value) != c.want || got.Code != c.code {
			t.Errorf("%s: %s with code %d, %v, want %s with code %d", c.function, value.Repr(got.Value), got.Code, err, c.want,
				c.code)
		}
	}
}
