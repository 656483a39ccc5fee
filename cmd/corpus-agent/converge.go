package main

import (
	"github.com/spf13/cobra"

	"github.com/corpus-agent/corpus-agent/agent"
	"github.com/corpus-agent/corpus-agent/agent/report"
	"github.com/corpus-agent/corpus-agent/cmd/cli"
)

func (p *program) convergeCommand() *cobra.Command {
	test := false
	c := &cobra.Command{
		Use:   "converge",
		Short: "Converge the deployed releases without reading the store",
		Example: `  corpus-agent converge
  corpus-agent converge --test`,
		Args: cli.Args(cobra.NoArgs),
		RunE: func(c *cobra.Command, _ []string) error {
			return p.run(test, func(a *agent.Agent) (*report.Report, error) {
				return a.Converge(c.Context(), test)
			})
		},
	}
	c.Flags().BoolVar(&test, "test", false, "show what would change, and change nothing")
	p.addProgress(c.Flags())
	return c
}
