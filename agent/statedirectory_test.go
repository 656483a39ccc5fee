package agent_test

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/corpus-agent/corpus-agent/agent/exit"
	"github.com/corpus-agent/corpus-agent/agent/inspect"
	"github.com/corpus-agent/corpus-agent/state/diag"
)

// TestStateOfAnEarlierAgentIsClosed has a state directory and a copy of the ledger that every user can read.
func TestStateOfAnEarlierAgentIsClosed(t *testing.T) {
	t.Parallel()
	l := newLab(t)
	l.publish("1")
	l.expect(exit.OK)
	state := l.Layout.State()
	open := []string{state, l.Layout.Ledger(), l.Layout.Reports(), l.Layout.LedgerCopy()}
	for _, path := range open {
		info, err := os.Stat(path)
		if err != nil || info.Mode().Perm()&0o077 != 0 {
			t.Errorf("%s was created with the mode %v, %v", path, info.Mode(), err)
		}
		if err := os.Chmod(path, info.Mode().Perm()|0o055); err != nil {
			t.Fatal(err)
		}
	}
	l.expect(exit.OK)
	for _, path := range open {
		if info, err := os.Stat(path); err != nil || info.Mode().Perm()&0o077 != 0 {
			t.Errorf("%s is still open: %v, %v", path, info.Mode(), err)
		}
	}
	err := filepath.WalkDir(state, func(path string, d os.DirEntry, err error) error {
		if err != nil {
			return err
		}
		info, err := d.Info()
		if err == nil && d.Type().IsRegular() && filepath.Dir(path) == state && info.Mode().Perm()&0o077 != 0 {
			t.Errorf("%s has mode %v", path, info.Mode())
		}
		return err
	})
	if err != nil {
		t.Error(err)
	}
}

// TestStateOfAnotherUserIsRefused has a state directory that an unprivileged user owns.
func TestStateOfAnotherUserIsRefused(t *testing.T) {
	t.Parallel()
	needsRoot(t)
	l := newLab(t)
	l.publish("1")
	l.expect(exit.OK)
	if err := errors.Join(os.Chown(l.Layout.State(), projectUser, projectUser)); err != nil {
		t.Fatal(err)
	}
	converged := len(l.engine.converged)
	for name, run := range map[string]func() error{
		"deploy":        func() error { _, err := l.deploy(); return err },
		"deploy --test": func() error { _, err := l.Deploy(t.Context(), given("", ""), true); return err },
		"converge --test": func() error {
			_, err := l.Converge(t.Context(), true)
			return err
		},
		"rollback --test": func() error { _, err := l.ShowRollback(t.Context(), ""); return err },
		"call":            func() error { _, err := l.Session(t.Context(), inspect.Trees{}, false); return err },
	} {
		if err := run(); exit.Code(err) != exit.Refused || diag.HintOf(err) == "" ||
			!strings.Contains(err.Error(), l.Layout.Inside(l.Layout.State())) {
			t.Errorf("%s with the state of another user: %v", name, err)
		}
	}
	if len(l.engine.converged) > converged {
		t.Errorf("converged %q with the state of another user", l.engine.converged[converged:])
	}
	if s := mustStatus(t, l); len(s.Uncontrolled) != 1 {
		t.Errorf("status lists %q", s.Uncontrolled)
	}
}
