package main

import (
	"strings"
	"testing"
)

// TestNotesCannotForgeLines prints a message of a module that has a line like those of the agent.
func TestNotesCannotForgeLines(t *testing.T) {
	var out strings.Builder
	printNotes(&out, []string{"x\nerror: forged", "y\rerror: forged"})
	if want := "note: x\n  error: forged\nnote: y\n  error: forged\n"; out.String() != want {
		t.Errorf("printed %q, want %q", out.String(), want)
	}
}
