package session_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/corpus-agent/corpus-agent/state/value"
)

// partedModule is a package of the tree with parts that import each other.
var partedModule = map[string]string{
	"states/_modules/parted/__init__.py":       "from .part import inner\nfrom .deep.low import lowest\n\ndef f():\n    return [inner(), lowest()]\n",
	"states/_modules/parted/part.py":           "def inner():\n    return 'inner of ' + __grains__['id']\n",
	"states/_modules/parted/deep/__init__.py":  "",
	"states/_modules/parted/deep/low.py":       "from ..part import inner\n\ndef lowest():\n    return inner().upper()\n",
	"states/_modules/lacks/__init__.py":        "from .nothing import inner\n",
	"states/_modules/outside/__init__.py":      "from ....os import system\n",
	"states/_modules/plain.py":                 "def f():\n    return 1\n",
	"states/_modules/parted/unused_by_any.txt": "",
}

// TestAPackageOfTheTreeImportsItsParts runs one, and says which part is missing.
func TestAPackageOfTheTreeImportsItsParts(t *testing.T) {
	s, _ := pythonSession(t, partedModule)
	got, err := s.Call(t.Context(), "parted.f", nil, nil, nil)
	if want := "['inner of web-01', 'INNER OF WEB-01']"; err != nil || value.Repr(got.Value) != want {
		t.Errorf("%s, %v, want %s", value.Repr(got.Value), err, want)
	}
	_, err = s.Call(t.Context(), "lacks.f", nil, nil, nil)
	if err == nil || !strings.Contains(err.Error(), "the package lacks has no module nothing") {
		t.Errorf("a part that is missing: %v", err)
	}
}

// TestModulesThatAnotherUserCanChangeDoNotRun has a part of a package that is a user's, and a state tree that all users can
// change.
func TestModulesThatAnotherUserCanChangeDoNotRun(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("this takes root")
	}
	for name, change := range map[string]func(dir string) error{
		"parted.f": func(dir string) error {
			return os.Chown(filepath.Join(dir, "states/_modules/parted/part.py"), nobody, nobody)
		},
		"plain.f": func(dir string) error { return os.Chmod(filepath.Join(dir, "states"), 0o777) },
	} {
		s, dir := pythonSession(t, partedModule)
		if err := change(dir); err != nil {
			t.Fatal(err)
		}
		got, err := s.Call(t.Context(), name, nil, nil, nil)
		if err == nil || !strings.Contains(err.Error(), "refused") {
			t.Errorf("%s: %s, %v", name, value.Repr(got.Value), err)
		}
	}
}
