package exec

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"testing"

	"github.com/corpus-agent/corpus-agent/state/compile"
	"github.com/corpus-agent/corpus-agent/state/host"
	"github.com/corpus-agent/corpus-agent/state/host/machine"
	"github.com/corpus-agent/corpus-agent/state/value"
)

// TestUserMayDelayAState checks that a state that is cancelled at the time limit of the run is obstructed if a user can
// change what it works on, since that user can make it as large as a disk allows.
func TestUserMayDelayAState(t *testing.T) {
	root := t.TempDir()
	users := filepath.Join(root, "srv/data")
	if err := errors.Join(os.MkdirAll(users, 0o755), os.Chmod(users, 0o777), os.Mkdir(root+"/etc", 0o755)); err != nil {
		t.Fatal(err)
	}
	h, err := machine.New(host.Options{Root: root})
	if err != nil {
		t.Fatal(err)
	}
	r := &Runner{Host: h}
	for _, c := range []struct {
		state, fun, argument, path string
		cause                      error
		obstructed                 bool
	}{
		{"file", "absent", "name", "/srv/data/x", errOverdue, true},
		{"file", "copy", "source", "/srv/data/x", errOverdue, true},
		{"git", "latest", "target", "/srv/data/x", errOverdue, true},
		{"file", "absent", "name", "/srv/data/x", errStopped, false},
		{"file", "absent", "name", "/etc/x", errOverdue, false},
		{"cmd", "run", "name", "/srv/data/x", errOverdue, false},
	} {
		ctx, cancel := context.WithCancelCause(t.Context())
		cancel(c.cause)
		step := &compile.Step{Chunk: value.NewMap("state", c.state, "fun", c.fun, c.argument, c.path)}
		got := r.endedBy(ctx, &Result{Step: step, Outcome: Failed})
		if (got.Obstruction() != nil) != c.obstructed || !got.Ended() {
			t.Errorf("%s of %s, %v: the obstruction is %v", step.Function(), c.path, c.cause, got.Obstruction())
		}
	}
}
