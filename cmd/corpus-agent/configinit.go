package main

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strconv"

	"github.com/spf13/cobra"

	"github.com/corpus-agent/corpus-agent/agent/config"
	"github.com/corpus-agent/corpus-agent/agent/exit"
	"github.com/corpus-agent/corpus-agent/artifact/durable"
	"github.com/corpus-agent/corpus-agent/cmd/cli"
	"github.com/corpus-agent/corpus-agent/state/diag"
)

// newMode is the mode of a new agent.yaml: the URL of a webhook in it is often a secret.
const newMode = 0o640

func (p *program) configInitCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "init",
		Short: "Write a configuration file with all settings as comments",
		Long: `init writes agent.yaml (or --config FILE) with every setting as a comment: its meaning, its range and its default.
With --store, the file sets the store. A file that exists is never changed: init exits with 2.`,
		Example: `  corpus-agent config init --store s3://my-bucket/corpus`,
		Args:    cli.Args(cobra.NoArgs),
		RunE: func(*cobra.Command, []string) error {
			sources, err := p.sources(map[string]string{})
			if err != nil {
				return err
			}
			_, err = os.Lstat(sources.File)
			if err == nil {
				err = diag.WithHint(fmt.Errorf("%s exists already", sources.File), "corpus-agent config edit changes it")
			}
			if !errors.Is(err, fs.ErrNotExist) {
				return exit.WithCode(exit.Usage, err)
			}
			if err := p.writeConfig(sources.File, p.example(), newMode); err != nil {
				return err
			}
			return p.answer(map[string]any{"file": sources.File}, "wrote "+sources.File)
		},
	}
}

// example is the content of a new file, with the store of --store.
func (p *program) example() []byte {
	if p.store == "" {
		return config.Example()
	}
	store := regexp.MustCompile(`(?m)^#store: .*$`)
	return store.ReplaceAllLiteral(config.Example(), []byte("store: "+strconv.Quote(p.store)))
}

func (p *program) writeConfig(file string, data []byte, mode fs.FileMode) error {
	if err := durable.MkdirAll(filepath.Dir(file), 0o755); err != nil {
		return err
	}
	return durable.WriteFile(file, data, mode)
}
