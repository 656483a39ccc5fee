package exec_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/corpus-agent/corpus-agent/state/compile"
	engine "github.com/corpus-agent/corpus-agent/state/exec"
	"github.com/corpus-agent/corpus-agent/state/families"
	"github.com/corpus-agent/corpus-agent/state/host"
	"github.com/corpus-agent/corpus-agent/state/host/machine"
	"github.com/corpus-agent/corpus-agent/state/roots"
	"github.com/corpus-agent/corpus-agent/state/session"
	"github.com/corpus-agent/corpus-agent/state/value"
)

// canceller is an observer that cancels a run when its first step begins.
type canceller func()

func (e canceller) StepStarted(*compile.Step) { e() }
func (canceller) StepDone(*engine.Result)     {}

// TestTreeRemovalStopsWithRun cancels a run while a state removes a large tree.
func TestTreeRemovalStopsWithRun(t *testing.T) {
	dir := t.TempDir()
	for i := range 100 {
		sub := filepath.Join(dir, "tree", fmt.Sprint(i))
		if err := os.MkdirAll(sub, 0o755); err != nil {
			t.Fatal(err)
		}
		for j := range 200 {
			if err := os.WriteFile(filepath.Join(sub, fmt.Sprint(j)), nil, 0o644); err != nil {
				t.Fatal(err)
			}
		}
	}
	sls := fmt.Sprintf("gone:\n  file.absent:\n    - name: %s/tree\n", dir)
	if err := os.WriteFile(filepath.Join(dir, "t.sls"), []byte(sls), 0o644); err != nil {
		t.Fatal(err)
	}
	h, err := machine.New(host.Options{})
	if err != nil {
		t.Fatal(err)
	}
	run := func(ctx context.Context, o engine.Observer) *engine.Result {
		s := families.New(session.Settings{
			Host: h, ID: "plan", Grains: value.NewMap("id", "plan"), Grace: time.Millisecond,
			States: []roots.Env{{Name: "base", Dirs: []string{dir}}},
		})
		program, err := s.Program(context.Background(), s.Named("t"))
		if err != nil {
			t.Fatal(err)
		}
		return s.Run(ctx, program, o).All()[0]
	}
	ctx, cancel := context.WithCancel(context.Background())
	if r := run(ctx, canceller(cancel)); r.Outcome != engine.Failed || !strings.Contains(r.Comment, "cancelled after") ||
		!r.Ended() {
		t.Errorf("%v: %s", r.Outcome.Value(), r.Comment)
	}
	if _, err := os.Stat(filepath.Join(dir, "tree")); err != nil {
		t.Errorf("the tree was removed: %v", err)
	}
	if r := run(context.Background(), nil); r.Outcome != engine.Succeeded {
		t.Errorf("the next run: %s", r.Comment)
	}
}
