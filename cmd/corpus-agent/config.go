package main

import (
	"fmt"

	"github.com/spf13/cobra"

	"github.com/corpus-agent/corpus-agent/agent"
	"github.com/corpus-agent/corpus-agent/agent/config"
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
