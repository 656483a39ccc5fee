package lock

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/corpus-agent/corpus-agent/state/diag"
)

func TestWaitTimesOut(t *testing.T) {
	file := filepath.Join(t.TempDir(), "lock")
	open := func() *os.File {
		f, err := os.OpenFile(file, os.O_RDWR|os.O_CREATE, 0o600)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = f.Close() })
		return f
	}
	stopped, other := open(), open()
	if err := Wait(stopped); err != nil {
		t.Fatal(err)
	}
	if err := wait(other, 50*time.Millisecond); err == nil || !strings.Contains(err.Error(), file) ||
		!strings.Contains(diag.HintOf(err), "lslocks") {
		t.Errorf("for a lock that is held: error %v, hint %q", err, diag.HintOf(err))
	}
	if err := stopped.Close(); err != nil {
		t.Fatal(err)
	}
	if err := Wait(other); err != nil {
		t.Error(err)
	}
}
