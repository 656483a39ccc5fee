package session_test

import (
	"errors"
	"syscall"
	"testing"

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
	for name, want := range map[string]error{"m.full": syscall.ENOSPC, "m.after": syscall.ENOSPC, "m.memory": syscall.ENOMEM,
		"late.f": syscall.EIO} {
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
