package agent_test

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/corpus-agent/corpus-agent/agent/failure"
	"github.com/corpus-agent/corpus-agent/agent/site"
	"github.com/corpus-agent/corpus-agent/grains"
	"github.com/corpus-agent/corpus-agent/state/value"
)

// TestGrainModulesRun collects the grains of Salt's grain modules in the directories of Salt and of this project.
func TestGrainModulesRun(t *testing.T) {
	if _, err := os.Stat("/usr/bin/python3"); err != nil {
		t.Skip("/usr/bin/python3 is not installed")
	}
	a := newLab(t)
	a.Layout.Root = "/" // modules run only without --root; they change nothing
	dir := t.TempDir()
	for name, text := range map[string]string{
		"states/_grains/own.py": "import fact.deep, pack, tool\ndef role(grains=None):\n" +
			"    return {'role': tool.NAME, 'parts': [fact.deep.N, pack.M], 'saw': 'kernel' in grains, " +
			"'empty': __grains__ == {}}\n" +
			"def broken():\n    return {'x': 1 / 0}\ndef number():\n    return 3\ndef _hidden():\n    return {'hidden': 1}\n",
		"seen/_grains/seen.py": "def f(grains):\n    return {'seen': [__opts__['id'], grains['id'], __opts__['site'], " +
			"__grains__['tier'], b'x', (b'y',)]}\n",
		"states/_grains/idiom.py": "import salt.modules.cmdmod\nc = salt.modules.cmdmod\n" +
			"__salt__ = {'cmd.run': c._run_quiet, 'cmd.run_all': c._run_all_quiet}\ndef f():\n" +
			"    return {'ran': [__salt__['cmd.run']('echo out'), __salt__['cmd.run_all']('echo all')['stdout'],\n" +
			"        c.retcode('false'), c.run_stdout('echo x; echo y', python_shell=True)]}\n",
		"states/_utils/tool.py":           "NAME = 'web'\n",
		"states/_python/fact/__init__.py": "from .deep import N\n",
		"states/_python/fact/deep.py":     "N = 1\n",
		"states/_utils/pack/__init__.py":  "from .part import M\n",
		"states/_utils/pack/part.py":      "M = 2\n",
		"states/_grains/no.py":            "def __virtual__():\n    return False, 'no disk'\n",
		"base/grains/more.py":             "def more():\n    return {'more': (1, 2), 'role': 'base'}\n",
		"other/_grains/own.py":            "def weaker():\n    return {'weaker': True}\n",
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
	for name, want := range map[string]string{"role": "'base'", "more": "(1, 2)", "empty": "True", "saw": "True",
		"parts": "[1, 2]", "hidden": "None", "weaker": "None",
		"ran": `['out', 'all', 1, 'x\ny']`} {
		if got := value.Repr(all.Value(name)); got != want {
			t.Errorf("%s is %s, want %s", name, got, want)
		}
	}
	all, _, err = a.Grains(t.Context(), grains.Identity{}, site.GrainDirs{States: []string{filepath.Join(dir, "seen")},
		Options: value.NewMap("id", "named", "site", "north", "grains", value.NewMap("tier", "gold"))})
	if got := value.Repr(all.Value("seen")); err != nil || got != "['named', 'named', 'north', 'gold', 'x', ('y',)]" {
		t.Errorf("with the options of a minion file a module sees %s: %v", got, err)
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

// TestGrainModulesOfOtherUsersDoNotRun has modules, and files that they import, that another user owns or can change.
// Root does not run them, and the warning has the reason.
func TestGrainModulesOfOtherUsersDoNotRun(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("this test needs root: it makes files of other users")
	}
	if _, err := os.Stat("/usr/bin/python3"); err != nil {
		t.Skip("/usr/bin/python3 is not installed")
	}
	const nobody = 65534
	a := newLab(t)
	a.Layout.Root = "/"
	for name, spoil := range map[string]func(dir string) error{
		"owner of a module":         func(dir string) error { return os.Chown(dir+"/states/_grains/own.py", nobody, nobody) },
		"mode of a module":          func(dir string) error { return os.Chmod(dir+"/states/_grains/own.py", 0o666) },
		"mode of its directory":     func(dir string) error { return os.Chmod(dir+"/states/_grains", 0o777) },
		"owner of a directory":      func(dir string) error { return os.Chown(dir+"/more", nobody, nobody) },
		"owner of base's directory": func(dir string) error { return os.Chown(dir+"/base/grains", nobody, nobody) },
		"link to another user's file": func(dir string) error {
			file := dir + "/states/_grains/own.py"
			return errors.Join(os.WriteFile(dir+"/theirs.py", []byte("def f():\n    return {'own': 1}\n"), 0o644),
				os.Chown(dir+"/theirs.py", nobody, nobody), os.Remove(file), os.Symlink(dir+"/theirs.py", file))
		},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			for _, part := range []string{"states/_grains/own", "base/grains/base", "more/more"} {
				file := filepath.Join(dir, part+".py")
				key := filepath.Base(part)
				if err := errors.Join(os.MkdirAll(filepath.Dir(file), 0o755),
					os.WriteFile(file, []byte("def f():\n    return {'"+key+"': 1}\n"), 0o644)); err != nil {
					t.Fatal(err)
				}
			}
			dirs := site.GrainDirs{Base: dir + "/base", More: []string{dir + "/more"}, States: []string{dir + "/states"}}
			given := func() (names []string, warnings []error) {
				all, warnings, err := a.Grains(t.Context(), grains.Identity{}, dirs)
				if err != nil {
					t.Fatal(err)
				}
				for _, key := range []string{"own", "base", "more"} {
					if all.Has(key) {
						names = append(names, key)
					}
				}
				return names, warnings
			}
			if names, _ := given(); len(names) != 3 {
				t.Fatalf("the grains of root's modules are %q", names)
			}
			if err := spoil(dir); err != nil {
				t.Fatal(err)
			}
			names, warnings := given()
			if text := errors.Join(warnings...); len(names) != 2 || text == nil ||
				!strings.Contains(text.Error(), "can change it") {
				t.Errorf("the grains of a module that another user can change are %q, the warnings %v", names, text)
			}
		})
	}
}

// TestGrainModulesReportFaultsOfTheHost has grain modules that fail for a fault of the host, and others that fail for
// another reason: only the former make the grains of the host unknown.
func TestGrainModulesReportFaultsOfTheHost(t *testing.T) {
	if _, err := os.Stat("/usr/bin/python3"); err != nil {
		t.Skip("/usr/bin/python3 is not installed")
	}
	a := newLab(t)
	a.Layout.Root = "/" // modules run only without --root; they change nothing
	const function = "import os\ndef f():\n    "
	for text, fault := range map[string]bool{
		"import os\nos.kill(os.getpid(), 9)\n":                             true,
		"raise OSError(28, 'No space left on device')\n":                   true,
		function + "os.kill(os.getpid(), 9)\n":                             true,
		function + "raise OSError(5, 'Input/output error')\n":              true,
		function + "raise MemoryError\n":                                   true,
		function + "raise ConnectionRefusedError(111, 'refused')\n":        true,
		function + "os._exit(1)\n":                                         false,
		function + "raise ValueError('no') # Input/output error\n":         false,
		function + "open('/no/such/file')\n":                               false,
		"import not_there\n" + function + "return {}\n":                    false,
		"def __virtual__():\n    return False, 'not on this host'\n":       false,
		"def __virtual__():\n    raise OSError(24, 'Too many open files')": true,
	} {
		dir := t.TempDir()
		for name, source := range map[string]string{"own": text, "role": "def f():\n    return {'role': 'web'}\n"} {
			file := filepath.Join(dir, "_grains", name+".py")
			must(t, errors.Join(os.MkdirAll(filepath.Dir(file), 0o755), os.WriteFile(file, []byte(source), 0o644)))
		}
		all, warnings, err := a.Grains(t.Context(), grains.Identity{}, site.GrainDirs{States: []string{dir}})
		if err != nil || len(warnings) != 1 {
			t.Fatalf("%q: %v, warnings %v", text, err, warnings)
		}
		unknown := failure.OfGrains(warnings)
		if got := unknown != nil; got != fault {
			t.Errorf("%q is a fault of the host: %v, want %v: %v", text, got, fault, warnings)
		}
		if all.Value("role") != "web" && !fault {
			t.Errorf("%q costs the grains of another module", text)
		}
	}
}
