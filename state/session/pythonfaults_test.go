package session_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/corpus-agent/corpus-agent/state/diag"
	"github.com/corpus-agent/corpus-agent/state/families"
	"github.com/corpus-agent/corpus-agent/state/python"
	"github.com/corpus-agent/corpus-agent/state/session"
	"github.com/corpus-agent/corpus-agent/state/value"
)

// TestPythonReportsErrorsOfTheHost has modules and states raise and return errors of the host. Each is found in the
// error of its caller, so that a deploy does not count it as a mistake of the release.
func TestPythonReportsErrorsOfTheHost(t *testing.T) {
	s, _ := pythonSession(t, map[string]string{
		"states/_modules/m.py": `
import errno, os
from salt.exceptions import CommandExecutionError
def full():
    raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
def after():
    try:
        full()
    except OSError:
        raise CommandExecutionError("it did not work")
def memory():
    raise MemoryError
def absent():
    open("/no/such/file")
`,
		"states/_modules/late.py": "raise OSError(5, 'Input/output error')\n",
		"states/full.sls":         "{{ salt['m.full']() }}: test.nop\n",
		"states/py.sls":           "#!py\ndef run():\n    raise OSError(30, 'Read-only file system')\n",
	})
	for name, want := range map[string]error{"m.full": syscall.ENOSPC, "m.after": syscall.ENOSPC,
		"m.memory": syscall.ENOMEM, "late.f": syscall.EIO} {
		if _, err := s.Call(t.Context(), name, nil, nil, nil); !errors.Is(err, want) {
			t.Errorf("%s gives %v, want %v", name, err, want)
		}
	}
	for sls, want := range map[string]error{"full": syscall.ENOSPC, "py": syscall.EROFS} {
		_, err := s.Call(t.Context(), "state.show_sls", []any{sls}, value.NewMap(), nil)
		if !errors.Is(err, want) {
			t.Errorf("%s gives %v, want %v", sls, err, want)
		}
	}
	if _, err := s.Call(t.Context(), "m.absent", nil, nil, nil); errors.Is(err, syscall.ENOENT) {
		t.Errorf("%v counts as an error of the host", err)
	}
}

// TestHangingModulesObeyTheSession ends a session while a module hangs that another function's call loads as well.
func TestHangingModulesObeyTheSession(t *testing.T) {
	needPython(t)
	given, dir := settings(t, map[string]string{
		"states/_modules/a.py": "import time\ntime.sleep(100)\n",
		"states/_modules/b.py": "def f():\n    return 1\n",
	})
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Second)
	defer cancel()
	given.Until = ctx
	s := families.New(given)
	t.Cleanup(s.Close)
	_, err := s.Call(t.Context(), "b.f", nil, nil, nil)
	if err == nil || !strings.Contains(err.Error(), "loading "+dir+"/states/_modules/a.py was ended") {
		t.Errorf("the call gives %v", err)
	}
}

// TestHangsHavePlaces ends a function of a module that hangs in a template, and one in a state. Both errors have the
// line at which it hangs.
func TestHangsHavePlaces(t *testing.T) {
	s, dir := pythonSession(t, map[string]string{
		"states/_modules/m.py": "import time\n\ndef ready():\n    pass\n\ndef hang():\n    time.sleep(100)\n",
		"states/t.sls":         "x:\n  test.nop:\n    - name: {{ salt['m.hang']() }}\n",
		"states/s.sls":         "x:\n  module.run:\n    - m.hang: []\n",
	})
	want := dir + "/states/_modules/m.py:7, in hang)"
	if _, err := s.Call(t.Context(), "m.ready", nil, nil, nil); err != nil {
		t.Fatal(err)
	}
	short := func() context.Context {
		ctx, cancel := context.WithTimeout(t.Context(), 1200*time.Millisecond)
		t.Cleanup(cancel)
		return ctx
	}
	_, err := s.Call(short(), "state.show_sls", []any{"t"}, nil, nil)
	if err == nil || !strings.Contains(err.Error(), want) {
		t.Errorf("a template gives %v", err)
	}
	program, err := s.Program(t.Context(), s.Named("s"))
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range s.Run(short(), program, nil).All() {
		if !strings.Contains(r.Comment, "the time limit of the run was reached ("+want) {
			t.Errorf("a state gives %s", r.Comment)
		}
	}
}

// TestTemplatesReportFaultsOfTheHostWhileModulesLoad has modules that a fault of the host keeps from being loaded, or
// that reach no server. Every place that asks for one of their functions fails with that.
func TestTemplatesReportFaultsOfTheHostWhileModulesLoad(t *testing.T) {
	const refused = "raise ConnectionRefusedError(111, 'Connection refused')\n"
	files := map[string]string{"states/map.jinja": "{% set v = salt['full.f']() %}\n"}
	for name, text := range map[string]string{
		"full": "raise OSError(28, 'No space left on device')\n", "lost": refused,
		"other":   "__virtualname__ = 'named'\nraise OSError(28, 'No space left on device')\n",
		"virtual": "def __virtual__():\n    raise OSError(28, 'No space left on device')\n",
		"memory":  "def __virtual__():\n    raise MemoryError\n", "init": "def __init__(opts):\n    raise MemoryError\n",
		"calls": "import socket\ndef f():\n    " + refused + "def g():\n    raise socket.timeout('timed out')\n" +
			"def h():\n    raise socket.gaierror(-3, 'Temporary failure in name resolution')\n",
	} {
		files["states/_modules/"+name+".py"] = text
	}
	var asks []string
	for _, name := range []string{"full", "lost", "named", "virtual", "memory", "init"} {
		asks = append(asks, "{{ salt['"+name+".f']() }}", "{{ '"+name+".f' in salt }}")
	}
	asks = append(asks, "{{ salt.full.f() }}", "{{ salt.get('full.f') }}", "{% from 'map.jinja' import v %}{{ v }}",
		"{{ salt['full.f'] is defined }}", "{{ salt['calls.f']() }}", "{{ salt.calls.g() }}", "{{ salt.calls.h() }}")
	for i, ask := range asks {
		files[fmt.Sprintf("states/n%d.sls", i)] = ask + "\n"
	}
	s, dir := pythonSession(t, files)
	names := make([]string, len(asks))
	for i := range asks {
		names[i] = fmt.Sprintf("n%d", i)
	}
	_, err := s.Call(t.Context(), "state.show_sls", []any{strings.Join(names, ",")}, value.NewMap(), nil)
	problems, _ := errors.AsType[diag.List](err)
	for i, ask := range asks {
		file := dir + "/states/" + names[i] + ".sls"
		if strings.Contains(ask, "map.jinja") {
			file = dir + "/states/map.jinja"
		}
		if !slices.ContainsFunc(problems, func(d *diag.Diagnostic) bool { return d.Pos.File == file && d.Cause != nil }) {
			t.Errorf("%s is no fault of the host: %v", ask, err)
		}
	}
}

// TestPillarReportsFaultsOfTheHostWhileModulesLoad is the same for a file of the pillar.
func TestPillarReportsFaultsOfTheHostWhileModulesLoad(t *testing.T) {
	s, _ := pythonSession(t, map[string]string{
		"states/_modules/cz.py": "import os\nos.kill(os.getpid(), 9)\n",
		"pillar/top.sls":        "base: {'*': [p]}\n",
		"pillar/p.sls":          "a: {{ salt['cz.f']() }}\n",
	})
	_, err := s.Pillar(t.Context())
	if _, is := errors.AsType[*python.Killed](err); !is || !strings.Contains(err.Error(), "p.sls:1:") {
		t.Errorf("the pillar gives %v", err)
	}
}

// TestModuleThatIsKilledWhileItLoads calls functions and declares a state of a tree with such a module: the functions
// may exist, and the hint names the memory.
func TestModuleThatIsKilledWhileItLoads(t *testing.T) {
	files := map[string]string{
		"states/_modules/x.py":    "import os\nos.kill(os.getpid(), 9)\n",
		"states/_modules/good.py": "def f():\n    return 1\n",
		"states/_states/mine.py":  "import os\nos.kill(os.getpid(), 9)\n",
		"states/s.sls":            "a: mine.present\n",
	}
	s, dir := pythonSession(t, files)
	for _, name := range []string{"x.f", "good.f"} {
		_, err := s.Call(t.Context(), name, nil, nil, nil)
		if err == nil || errors.Is(err, session.ErrNoFunction) ||
			!strings.Contains(err.Error(), dir+"/states/_modules/x.py") ||
			!strings.Contains(diag.HintOf(err), "memory runs out") {
			t.Errorf("%s gives %v, hint %s", name, err, diag.HintOf(err))
		}
	}
	given, _ := settings(t, files)
	given.Strict = true
	strict := families.New(given)
	t.Cleanup(strict.Close)
	_, err := strict.Program(t.Context(), strict.Named("s"))
	problems, _ := errors.AsType[diag.List](err)
	if len(problems) != 1 || !strings.Contains(problems[0].Hint, "memory runs out") {
		t.Errorf("the state gives %s, with %d problems", value.Repr(session.Messages(err)), len(problems))
	}
}

// TestImportThatHangsHasItsPlace ends a compile while a template waits for a module to be imported.
func TestImportThatHangsHasItsPlace(t *testing.T) {
	needPython(t)
	given, dir := settings(t, map[string]string{
		"states/_modules/h.py": "import time\n\ntime.sleep(100)\n",
		"states/t.sls":         "a: {test.nop: [{name: '{{ salt['h.f']() }}'}]}\n",
	})
	ctx, cancel := context.WithTimeoutCause(t.Context(), 1500*time.Millisecond, errors.New("the setting was over"))
	defer cancel()
	given.Until = ctx
	s := families.New(given)
	t.Cleanup(s.Close)
	_, err := s.Call(ctx, "state.show_sls", []any{"t"}, nil, nil)
	for _, want := range []string{"t.sls:1:", "the setting was over", dir + "/states/_modules/h.py:3, in <module>"} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("a template gives %v, want %s", err, want)
		}
	}
}
