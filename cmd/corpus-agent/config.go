package main

import (
	"fmt"

	"github.com/spf13/cobra"

	"github.com/corpus-agent/corpus-agent/agent"
	"github.com/corpus-agent/corpus-agent/agent/config"
	"github.com/corpus-agent/corpus-agent/agent/config/editing"
	"github.com/corpus-agent/corpus-agent/agent/exit"
	"github.com/corpus-agent/corpus-agent/cmd/cli"
)

func (p *program) configCommand() *cobra.Command {
	c := &cobra.Command{Use: "config", Short: "Check, write or edit the configuration"}
	strict := false
	check := &cobra.Command{
		Use:   "check",
		Short: "Check the configuration file, the environment and the identity of this host",
		Long: `check exits with 2 if the configuration has mistakes, and lists all of them with their positions: invalid stores,
engines that are not installed, and conventions of hostnames that cannot be parsed are among them. It warns of
credentials in URLs of stores, of webhooks that are not http(s), of commands and files for metrics that no run can
use, and of secret files that other users can read or write; with --strict these are mistakes too. An update of the
agent runs check without --strict, so that a warning does not prevent the update.`,
		Example: `  corpus-agent config check --config agent.yaml
  corpus-agent config check --strict`,
		Args: cli.Args(cobra.NoArgs),
		RunE: func(c *cobra.Command, _ []string) error {
			if err := p.checkConfig(strict); err != nil {
				return err
			}
			a, err := p.opened(map[string]string{})
			if err != nil {
				return err
			}
			if damaged := a.Config.File.Damaged; damaged != nil {
				return exit.WithCode(exit.Usage, damaged)
			}
			s, err := a.Status()
			if err != nil {
				return err
			}
			id, err := a.Identify(c.Context(), agent.Given{}.Identity, s.Host)
			if err != nil {
				return err
			}
			return p.answer(map[string]any{"identity": id}, "the configuration is valid; this host is "+id.String())
		},
	}
	check.Flags().BoolVar(&strict, "strict", false, "treat warnings as mistakes")
	c.AddCommand(check, p.configInitCommand(), p.configEditCommand())
	return c
}

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
			if err := editing.Create(sources.File, config.Example(p.store)); err != nil {
				return err
			}
			return p.answer(map[string]any{"file": sources.File}, "wrote "+sources.File)
		},
	}
}

func (p *program) configEditCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "edit",
		Short: "Edit the configuration file, and install it only without mistakes",
		Long: `edit opens a copy of agent.yaml (or --config FILE) in $VISUAL, $EDITOR or vi, and checks it as config check does.
Without mistakes the copy replaces the file at once. With mistakes, edit prints them and offers to open the editor
again; without a terminal it exits with 2. The file itself stays unchanged until then. A file that another program
changed during the editing is not replaced: the error names the edited copy. Without a file, the editor starts with all
settings as comments.`,
		Example: `  sudo corpus-agent config edit
  EDITOR=nano corpus-agent config edit --config agent.yaml`,
		Args: cli.Args(cobra.NoArgs),
		RunE: func(c *cobra.Command, _ []string) error {
			sources, err := p.sources(map[string]string{})
			if err != nil {
				return err
			}
			changed, err := p.editConfig(c, sources)
			if err != nil {
				return err
			}
			text := "installed " + sources.File
			if !changed {
				text = sources.File + " is unchanged"
			}
			return p.answer(map[string]any{"file": sources.File, "changed": changed}, text)
		},
	}
}

func (p *program) editConfig(c *cobra.Command, sources config.Sources) (bool, error) {
	e := editing.Editing{Sources: sources, Root: p.layout().Root, New: config.Example(p.store), Getenv: p.Getenv,
		In: p.In, Err: p.Err}
	if p.Asks() {
		e.Confirm = p.Confirm
	}
	return e.Run(c.Context())
}

// checkConfig prints the warnings of a configuration and returns its mistakes; with strict, warnings are mistakes.
func (p *program) checkConfig(strict bool) error {
	sources, err := p.sources(map[string]string{})
	if err != nil {
		return err
	}
	mistakes, warnings := config.Check(sources, p.layout().Root)
	if strict {
		mistakes, warnings = append(mistakes, warnings...), nil
	}
	for _, d := range warnings {
		fmt.Fprintln(p.Err, "warning:", d.Text())
	}
	return exit.WithCode(exit.Usage, mistakes.Err())
}
