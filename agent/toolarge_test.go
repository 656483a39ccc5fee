package agent_test

import (
	"context"
	"os"
	"strings"
	"testing"

	"github.com/corpus-agent/corpus-agent/agent/exit"
)

const largeStates = `
/etc/app/large:
  file.managed:
    - contents: small
/etc/app/same:
  file.managed:
    - contents: more than ten bytes
/etc/app/tree:
  file.absent
/etc/app/little:
  file.managed:
    - contents: new
`

// TestDryRunListsFilesAboveUndoLimit checks the note about each file that the deploy would change or remove, and that
// is too large for the journal.
func TestDryRunListsFilesAboveUndoLimit(t *testing.T) {
	l := newNativeLab(t)
	l.states("1", goodStates)
	l.expect(exit.OK)
	l.Config.UndoFileLimit = 10
	must(t, os.MkdirAll(l.Layout.Path("/etc/app/tree/deep"), 0o755))
	for _, name := range []string{"large", "same", "tree/deep/inside"} {
		must(t, os.WriteFile(l.Layout.Path("/etc/app/"+name), []byte("more than ten bytes\n"), 0o644))
	}
	must(t, os.WriteFile(l.Layout.Path("/etc/app/little"), []byte("little"), 0o644))
	l.states("2", largeStates)
	r, err := l.Deploy(context.Background(), l.firstDeploy(), true)
	if err != nil {
		t.Fatal(err)
	}
	noted(t, r, "/etc/app/large has 20 B, more than undo.file_limit (10 B)")
	noted(t, r, "/etc/app/tree/deep/inside has 20 B")
	notes := strings.Join(r.Notes, "\n")
	if strings.Count(notes, "undo.file_limit") != 2 {
		t.Errorf("the notes are\n%s", notes)
	}
	l.Config.UndoFileLimit = 100
	if r, err = l.Deploy(context.Background(), l.firstDeploy(), true); err != nil ||
		strings.Contains(strings.Join(r.Notes, "\n"), "undo.file_limit") {
		t.Errorf("below the limit: %v, %q", err, r.Notes)
	}
}
