package session_test

import (
	"context"
	"errors"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/corpus-agent/corpus-agent/state/families"
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
		ctx, cancel := context.WithTimeout(t.Context(), 400*time.Millisecond)
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
