package main

import (
	"testing"

	"github.com/spf13/cobra"

	"github.com/corpus-agent/corpus-agent/cmd/cli"
	"github.com/corpus-agent/corpus-agent/cmd/cli/hints"
)

// TestHintsNameCommandsThatExist looks up every command of corpus that hints and documentation name, and its flags.
func TestHintsNameCommandsThatExist(t *testing.T) {
	program := func() *cobra.Command { return (&program{IO: cli.Process()}).root() }
	if count := hints.Check(t, program, "..", "../../agent", "../../artifact", "../../grains", "../../packaging",
		"../../state"); count < 50 {
		t.Errorf("only %d commands were found in the texts", count)
	}
	if count := hints.Check(t, program, "../../docs", "../../README.md", "../../CONTRIBUTING.md"); count < 100 {
		t.Errorf("only %d commands were found in the documentation", count)
	}
}
