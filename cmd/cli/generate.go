package cli

import (
	"errors"
	"os"
	"path/filepath"

	"github.com/spf13/cobra"
)

// Completions writes a command's completions for the shells below a directory, under the names by
// which the shells find them.
func Completions(root *cobra.Command, dir string) error {
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
