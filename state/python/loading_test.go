package python_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/corpus-agent/corpus-agent/state/value"
)

// TestFileThatCannotBeLoadedCostsItselfAlone lists modules of which one ends the process, and others hang while they
// are imported or in __virtual__.
func TestFileThatCannotBeLoadedCostsItselfAlone(t *testing.T) {
	w := start(t, &fakeSession{texts: map[string]string{
		"modules/exits":   "import os\nos._exit(0)\n",
		"modules/hangs":   "import time\n\ntime.sleep(100)\n",
		"modules/virtual": "import time\ndef __virtual__():\n    time.sleep(100)\n",
		"modules/good":    "def f():\n    return 1\n",
	}})
	w.LimitImports(300 * time.Millisecond)
	v, err := w.Do(t.Context(), "list", value.NewMap("kind", "modules", "module", ""))
	if list, _ := v.(*value.Map); err != nil || list.Len() != 1 || !list.Has("good.f") {
		t.Fatalf("the list is %s: %v", value.Repr(v), err)
	}
	for name, want := range map[string][]string{
		"exits":   {"/tree/modules/exits.py: python3 ended while it was loaded (exit status 0)"},
		"hangs":   {"/tree/modules/hangs.py: loading it took more than 300ms", `"/tree/modules/hangs.py", line 3`},
		"virtual": {"/tree/modules/virtual.py: loading it took more than 300ms", "line 3 in __virtual__"},
	} {
		_, err := call(w, t.Context(), name+".f")
		for _, part := range want {
			if err == nil || !strings.Contains(err.Error(), part) {
				t.Errorf("%s.f gives %v, want %q", name, err, part)
			}
		}
	}
	if v, err := call(w, t.Context(), "good.f"); err != nil || v != 1 {
		t.Errorf("good.f gives %v, %v", v, err)
	}
}

// TestLoadingEndsWithItsContext cancels the context of a list while a file hangs.
func TestLoadingEndsWithItsContext(t *testing.T) {
	w := start(t, &fakeSession{texts: map[string]string{"modules/hangs": "import time\ntime.sleep(100)\n"}})
	if _, err := w.Do(t.Context(), "ping", value.NewMap()); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 500*time.Millisecond)
	defer cancel()
	_, err := w.Do(ctx, "list", value.NewMap("kind", "modules", "module", ""))
	if !errors.Is(err, context.DeadlineExceeded) ||
		!strings.Contains(err.Error(), "loading /tree/modules/hangs.py was ended") ||
		!strings.Contains(err.Error(), "line 2 in <module>") {
		t.Errorf("the error is %v", err)
	}
}

// TestGrainFunctionThatEndsTheWorkerCostsItselfAlone collects grains while a function ends the process, one is killed,
// and one hangs.
func TestGrainFunctionThatEndsTheWorkerCostsItselfAlone(t *testing.T) {
	w := start(t, &fakeSession{texts: map[string]string{
		"grains/bad": "import os, time\ndef a():\n    return {'a': 1}\ndef exits():\n    os._exit(3)\n" +
			"def hangs():\n    time.sleep(100)\ndef killed():\n    os.kill(os.getpid(), 9)\n",
		"grains/good": "def f():\n    return {'good': 1}\n",
	}})
	w.LimitImports(300 * time.Millisecond)
	v, err := w.Do(t.Context(), "grains", value.NewMap())
	all, _ := v.(*value.Map)
	if got := value.Repr(all.Value("good")); err != nil || got != "{'grains': {'good': 1}, 'problems': []}" {
		t.Errorf("the good file gives %s: %v", got, err)
	}
	got := value.Repr(all.Value("bad"))
	for _, want := range []string{"{'grains': {'a': 1}, ", "bad.exits: python3 ended while it ran (exit status 3)",
		"bad.hangs: it took more than 300ms", "line 7 in hangs",
		"bad.killed: python3 ended while it ran (signal: killed)"} {
		if !strings.Contains(got, want) {
			t.Errorf("the bad file gives %s, want %q", got, want)
		}
	}
}

// TestStandardLibraryIsImportedFirst imports modules of Python of whose names the tree has files, while a module is
// loaded and afterwards.
func TestStandardLibraryIsImportedFirst(t *testing.T) {
	w := start(t, &fakeSession{texts: map[string]string{
		"modules/json":    "def f():\n    return 'of the tree'\n",
		"modules/sys":     "raise ValueError('of the tree')\n",
		"utils/traceback": "def g():\n    return 'of the tree'\n",
		"utils/tool":      "NAME = 'tool'\n",
		"modules/own": "import json, sys, tool\ndef f():\n    import traceback\n    import salt.utils.traceback\n" +
			"    return [json.dumps(1), sys.maxsize > 1, hasattr(traceback, 'extract_tb'), __salt__['json.f'](),\n" +
			"            __utils__['traceback.g'](), salt.utils.traceback.g(), tool.NAME]\n",
	}})
	v, err := call(w, t.Context(), "own.f")
	want := "['1', True, True, 'of the tree', 'of the tree', 'of the tree', 'tool']"
	if err != nil || value.Repr(v) != want {
		t.Errorf("%s, want %s: %v", value.Repr(v), want, err)
	}
	if _, err := call(w, t.Context(), "own.missing"); err == nil || !strings.Contains(err.Error(), "own.missing") {
		t.Errorf("a call of a function that does not exist gives %v", err)
	}
}

// TestHostileAnswersDoNotEndTheWorker calls functions that raise exceptions without a text or with a long one, or
// return a mapping without an end.
func TestHostileAnswersDoNotEndTheWorker(t *testing.T) {
	w := start(t, &fakeSession{texts: map[string]string{"modules/own": `
class Mute(Exception):
    def __str__(self):
        raise ValueError("never")

class Endless(dict):
    def items(self):
        while True:
            yield "k", 1

def mute():
    raise Mute()

def long():
    raise ValueError("x" * 3000000)

def endless():
    return Endless()

def managed():
    __salt__['file.get_managed']('/etc/f')
`}})
	for name, want := range map[string]string{
		"mute":    "Mute: its text cannot be read, since str() of it raises ValueError",
		"long":    "x... (2934464 more characters)",
		"endless": "ValueError: a mapping gives more than 100000 items",
		"managed": "'file.get_managed' is not available; call __states__['file.managed'](name, ...) instead",
	} {
		_, err := call(w, t.Context(), "own."+name)
		if err == nil || !strings.Contains(err.Error(), want) || len(err.Error()) > 1<<17 {
			t.Errorf("own.%s gives %.300v, want %q", name, err, want)
		}
	}
	if w.Started() != 1 {
		t.Errorf("%d processes were started, want 1", w.Started())
	}
}
