package agent_test

import (
	"errors"
	"os"
	"path/filepath"
	"testing"

	"github.com/corpus-agent/corpus-agent/agent/exit"
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
	if _, err := l.deploy(); exit.Code(err) != exit.Refused {
		t.Errorf("with the state of another user: %v", err)
	}
}
