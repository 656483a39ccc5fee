package agent_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/corpus-agent/corpus-agent/agent/site"
	"github.com/corpus-agent/corpus-agent/grains"
	"github.com/corpus-agent/corpus-agent/state/value"
)

// TestGrainModulesRun collects grains of Salt's grain modules in the directories where Salt and this project have them.
func TestGrainModulesRun(t *testing.T) {
	if _, err := os.Stat("/usr/bin/python3"); err != nil {
		t.Skip("this host has no /usr/bin/python3 to run modules with")
	}
	a := newLab(t)
	a.Layout.Root = "/" // modules run on the running system alone; nothing is changed
	dir := t.TempDir()
	for name, text := range map[string]string{
		"states/_grains/own.py": "import tool\ndef role(grains=None):\n" +
			"    return {'role': tool.NAME, 'saw': 'kernel' in grains, 'empty': __grains__ == {}}\n" +
			"def broken():\n    return {'x': 1 / 0}\ndef number():\n    return 3\ndef _hidden():\n    return {'hidden': 1}\n",
		"states/_utils/tool.py": "NAME = 'web'\n",
		"states/_grains/no.py":  "def __virtual__():\n    return False, 'no disk'\n",
		"base/grains/more.py":   "def more():\n    return {'more': (1, 2), 'role': 'base'}\n",
		"other/_grains/own.py":  "def weaker():\n    return {'weaker': True}\n",
	} {
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	all, warnings, err := a.Grains(t.Context(), grains.Identity{}, site.GrainDirs{Base: filepath.Join(dir, "base"),
		States: []string{filepath.Join(dir, "states"), filepath.Join(dir, "other")}})
	if err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]string{"role": "'base'", "more": "(1, 2)", "empty": "True", "saw": "True", "hidden": "None",
		"weaker": "None"} {
		if got := value.Repr(all.Value(name)); got != want {
			t.Errorf("%s is %s, want %s", name, got, want)
		}
	}
	text := ""
	for _, w := range warnings {
		text += w.Error() + "\n"
	}
	for _, want := range []string{"own.broken: ZeroDivisionError", "'no' __virtual__ returned False: no disk"} {
		if !strings.Contains(text, want) {
			t.Errorf("the warnings are %s, want %q", text, want)
		}
	}
}
