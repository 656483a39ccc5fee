package main

import (
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/corpus-agent/corpus-agent/agent/exit"
	"github.com/corpus-agent/corpus-agent/artifact"
	"github.com/corpus-agent/corpus-agent/artifact/durable"
	"github.com/corpus-agent/corpus-agent/cmd/cli"
	"github.com/corpus-agent/corpus-agent/packaging"
	"github.com/corpus-agent/corpus-agent/state/diag"
)

// startedTree is the output of init.
type startedTree struct {
	Tree  string   `json:"tree"`
	Kind  string   `json:"kind"`
	Name  string   `json:"name"`
	Files []string `json:"files"`
}

func (p *program) initCommand() *cobra.Command {
	kind, name := "", ""
	c := &cobra.Command{
		Use:   "init DIR",
		Short: "Start a tree that can be built and deployed as it is",
		Long: `init writes a small tree to start from into a new or empty directory: a recipe (corpus.yaml) with a health probe, the
states that install and run it, and a service that answers over HTTP on port 8000.

Kinds are ` + strings.Join(packaging.StarterKinds(), ", ") + `: base is what every host gets, cloud is for nodes of a cloud, go and python are services, and static is a site
that nginx serves. docs/packaging.md explains the files.`,
		Example: `  corpus init myapp --kind go
  corpus init ./base --kind base
  corpus init site --kind static --name www`,
		Args: cli.Args(cobra.ExactArgs(1)),
		RunE: func(_ *cobra.Command, args []string) error {
			b := startedTree{Tree: args[0], Kind: kind, Name: name}
			if err := b.write(); err != nil {
				return exit.WithCode(exit.Usage, err)
			}
			return p.answer(b, "started %s of %s; next:\n  corpus check %[1]s\n  corpus build %[1]s --version 0.1 -o "+
				"%[3]s-0.1.tar.zst", b.Tree,
				diag.Count(len(b.Files), "file"), b.Name)
		},
	}
	c.Flags().StringVar(&kind, "kind", "", "kind of tree: "+strings.Join(packaging.StarterKinds(), ", "))
	c.Flags().StringVar(&name, "name", "", "name of the project, by default that of the directory; not for the kinds "+
		"base and cloud")
	return c
}

// write fills the directory. It writes nothing if the directory is not empty.
func (b *startedTree) write() error {
	if b.Tree == "" {
		return diag.Usage.Hint(errors.New("the name of the directory is empty"),
			"name a new directory, such as myapp, or . for the current directory")
	}
	if b.Kind == "" {
		return diag.Usage.Hint(errors.New("no kind of tree was given"), "give one with --kind: %s",
			strings.Join(packaging.StarterKinds(), ", "))
	}
	full, err := filepath.Abs(b.Tree)
	if err != nil {
		return err
	}
	if b.Name == "" {
		b.Name = filepath.Base(full)
	}
	if err := artifact.CheckProject(b.Name); err != nil {
		return diag.Usage.Hint(err, "give the project another name with --name")
	}
	files, err := packaging.Starter(b.Kind, b.Name)
	if err != nil {
		return err
	}
	if err := isVacant(b.Tree); err != nil {
		return err
	}
	b.Files = slices.Sorted(maps.Keys(files))
	for _, name := range b.Files {
		file := filepath.Join(b.Tree, name)
		if err := durable.MkdirAll(filepath.Dir(file), 0o755); err != nil {
			return err
		}
		if err := durable.WriteFile(file, files[name], packaging.StarterMode(files[name])); err != nil {
			return err
		}
	}
	return nil
}

// isVacant returns an error if dir is neither missing nor an empty directory.
func isVacant(dir string) error {
	entries, err := os.ReadDir(dir)
	switch {
	case errors.Is(err, os.ErrNotExist):
		return nil
	case err != nil:
		return err
	case len(entries) == 0:
		return nil
	}
	return diag.Usage.Hint(fmt.Errorf("%s is there already", dir), "init needs a new or empty directory")
}
