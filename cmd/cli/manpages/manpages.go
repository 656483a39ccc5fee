// Package manpages generates the man pages and completions of the packages from the commands. Tests use it, so that
// the programs do not link its libraries.
package manpages

import (
	"errors"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/cobra/doc"
)

// Check generates the man pages and completions of a program, and reports an error for a command without a
// description. If dir is not empty, the files stay there.
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
	epoch := time.Unix(0, 0) // a fixed date, so that the pages are reproducible
	header := &doc.GenManHeader{Section: "1", Source: "corpus-agent", Manual: "corpus-agent", Date: &epoch}
	if err := doc.GenManTree(root, header, man); err != nil {
		t.Fatal(err)
	}
	if err := completions(root, dir); err != nil {
		t.Fatal(err)
	}
	page := filepath.Join(man, root.Name()+".1")
	if info, err := os.Stat(page); err != nil || info.Size() == 0 {
		t.Errorf("%s was not written: %v", page, err)
	}
}

// explained reports an error for commands without a description, and for commands with flags but without an
// example.
func explained(t *testing.T, c *cobra.Command) {
	t.Helper()
	if c.Short == "" {
		t.Errorf("%s does not say what it does", c.CommandPath())
	}
	if c.Runnable() && c.Name() != "help" && c.HasLocalFlags() && c.LocalNonPersistentFlags().HasFlags() &&
		c.Example == "" {
		t.Errorf("%s has flags and no example", c.CommandPath())
	}
	for _, sub := range c.Commands() {
		explained(t, sub)
	}
}

// completions writes the completions of a command below a directory, under the names that the shells expect.
func completions(root *cobra.Command, dir string) error {
	name := root.Name()
	write := func(file string, generate func(path string) error) error {
		path := filepath.Join(dir, "completions", file)
		return errors.Join(os.MkdirAll(filepath.Dir(path), 0o755), generate(path))
	}
	return errors.Join(
		write(filepath.Join("bash", name), func(p string) error { return root.GenBashCompletionFileV2(p, true) }),
		write(filepath.Join("zsh", "_"+name), root.GenZshCompletionFile),
		write(filepath.Join("fish", name+".fish"), func(p string) error { return root.GenFishCompletionFile(p, true) }))
}
