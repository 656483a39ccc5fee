// Package manpages writes what packages need beside the programs: man pages and completions, made
// of the commands themselves. Tests use it, so that the programs do not carry its libraries.
package manpages

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/cobra/doc"

	"github.com/corpus-agent/corpus-agent/cmd/cli"
)

// Check writes the man pages and completions of a program and fails where a command does not
// explain itself. With a directory they stay there.
func Check(t *testing.T, root *cobra.Command, dir string) {
	t.Helper()
	if dir == "" {
		dir = t.TempDir()
	}
	man := filepath.Join(dir, "man")
	if err := os.MkdirAll(man, 0o755); err != nil {
		t.Fatal(err)
	}
	explained(t, root)
	root.DisableAutoGenTag = true
	epoch := time.Unix(0, 0) // the same pages whenever they are made
	header := &doc.GenManHeader{Section: "1", Source: "corpus-agent", Manual: "corpus-agent", Date: &epoch}
	if err := doc.GenManTree(root, header, man); err != nil {
		t.Fatal(err)
	}
	if err := cli.Completions(root, dir); err != nil {
		t.Fatal(err)
	}
	page := filepath.Join(man, root.Name()+".1")
	if info, err := os.Stat(page); err != nil || info.Size() == 0 {
		t.Errorf("%s was not written: %v", page, err)
	}
}

// explained holds every command to a line about itself, and every one with flags to an example.
func explained(t *testing.T, c *cobra.Command) {
	t.Helper()
	if c.Short == "" {
		t.Errorf("%s does not say what it does", c.CommandPath())
	}
	if c.Runnable() && c.Name() != "help" && c.HasLocalFlags() && c.LocalNonPersistentFlags().HasFlags() && c.Example == "" {
		t.Errorf("%s has flags and no example", c.CommandPath())
	}
	for _, sub := range c.Commands() {
		explained(t, sub)
	}
}
