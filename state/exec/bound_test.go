package exec_test

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/corpus-agent/corpus-agent/state/diag"
	"github.com/corpus-agent/corpus-agent/state/families"
	"github.com/corpus-agent/corpus-agent/state/host"
	"github.com/corpus-agent/corpus-agent/state/host/machine"
	"github.com/corpus-agent/corpus-agent/state/roots"
	"github.com/corpus-agent/corpus-agent/state/session"
	"github.com/corpus-agent/corpus-agent/state/value"
)

// hanging is an SLS with a state that does not end by itself, and one after it.
const hanging = `
hang:
  cmd.run:
    - name: sleep 600
after:
  cmd.run:
    - name: "true"
`

// runHanging runs the states of a tree until ctx is done and the grace period has passed. It returns the results as
// text.
func runHanging(t *testing.T, ctx context.Context, sls string, grace time.Duration) (comment string,
	took time.Duration) {
	t.Helper()
	states := t.TempDir()
	if err := os.WriteFile(filepath.Join(states, "t.sls"), []byte(sls), 0o644); err != nil {
		t.Fatal(err)
	}
	machine, err := machine.New(host.Options{})
	if err != nil {
		t.Fatal(err)
	}
	s := families.New(session.Settings{
		Host: machine, ID: "golden", Grains: value.NewMap("id", "golden", "shell", "/bin/sh"), Failhard: true, Grace: grace,
		States: []roots.Env{{Name: "base", Dirs: []string{states}}},
	})
	program, err := s.Program(context.Background(), s.Named("t"))
	if err != nil {
		t.Fatal(err)
	}
	started := time.Now()
	var all []string
	for _, r := range s.Run(ctx, program, nil).All() {
		all = append(all, r.ID()+": "+r.Comment+" "+diag.HintOf(r.Cause()))
	}
	return strings.Join(all, "\n"), time.Since(started)
}

// TestRunTimeoutEndsHangingStep checks that a deadline, as converge.timeout sets it, ends a step that hangs.
func TestRunTimeoutEndsHangingStep(t *testing.T) {
	ctx, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	got, took := runHanging(t, ctx, hanging, time.Hour)
	if !strings.Contains(got, "hang: cancelled after") || !strings.Contains(got,
		"the time limit of the run was reached") || strings.Contains(got, "after: ") || took > time.Minute {
		t.Errorf("after %s: %s", took, got)
	}
}

// TestInterruptedGuardFailsItsState checks that a state fails if the deadline of the run passes, or a signal arrives,
// while its guard hangs: an interrupted guard has no result.
func TestInterruptedGuardFailsItsState(t *testing.T) {
	for _, guard := range []string{"onlyif", "unless"} {
		guarded := strings.Replace(hanging, "sleep 600", "\"true\"\n    - "+guard+": sleep 600", 1)
		ctx, cancel := context.WithTimeout(context.Background(), time.Second)
		got, _ := runHanging(t, ctx, guarded, time.Hour)
		cancel()
		if !strings.Contains(got, "hang: cancelled after") || !strings.Contains(got,
			"while its "+guard+" ran: the time limit of the run was reached") || strings.Contains(got, "after: ") {
			t.Errorf("after the deadline: %s", got)
		}

		ctx, cancel = context.WithCancel(context.Background())
		time.AfterFunc(300*time.Millisecond, cancel)
		got, _ = runHanging(t, ctx, guarded, time.Second)
		if !strings.Contains(got, "hang: cancelled after") || !strings.Contains(got,
			"while its "+guard+" ran: the run was cancelled") {
			t.Errorf("cancelled: %s", got)
		}
	}
}

// TestSignalEndsHangingStepAfterGrace checks that after a signal a step that hangs is cancelled, and that one that ends
// within the grace period is not.
func TestSignalEndsHangingStepAfterGrace(t *testing.T) {
	ctx, cancel := context.WithCancel(context.Background())
	time.AfterFunc(300*time.Millisecond, cancel)
	got, took := runHanging(t, ctx, hanging, time.Second)
	if !strings.Contains(got, "hang: cancelled after") || !strings.Contains(got, "the run was cancelled") ||
		strings.Contains(got, "after: ") || took > time.Minute {
		t.Errorf("after %s: %s", took, got)
	}

	ctx, cancel = context.WithCancel(context.Background())
	time.AfterFunc(300*time.Millisecond, cancel)
	got, _ = runHanging(t, ctx, strings.Replace(hanging, "sleep 600", "sleep 1", 1), time.Minute)
	if strings.Contains(got, "cancelled") || strings.Contains(got, "after: ") {
		t.Errorf("a step that ends in time: %s", got)
	}
}
