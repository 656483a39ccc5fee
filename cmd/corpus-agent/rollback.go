package main

import (
	"github.com/spf13/cobra"

	"github.com/corpus-agent/corpus-agent/agent"
	"github.com/corpus-agent/corpus-agent/agent/report"
	"github.com/corpus-agent/corpus-agent/cmd/cli"
)

func (p *program) rollbackCommand() *cobra.Command {
	to, converge, test := "", false, false
	c := &cobra.Command{
		Use:   "rollback",
		Short: "Roll back to the previous releases",
		Long: `rollback deploys the releases that ran before, without reading the store, and quarantines each release that it
replaces, so that the timer does not deploy it again, with any base or service.

With --to it rolls back to any version of the service that was good and is still on this host, together with
the base that it ran with.

With --converge it first undoes the changes that the states of the newer releases made, except where something
else has changed the same thing since, and lists what it left. Then --to may also be a run: later changes are
undone. --test shows as a diff what would be undone.

Without --converge, --test shows which releases would run, be quarantined, and have their units restarted, and what their
states would change.

Exit codes: 0 rolled back, 2 usage, 4 the release to go back to was withdrawn, 6 another run is under way,
7 it failed, and the host runs the same releases as before, 8 not everything could be undone.`,
		Example: `  corpus-agent rollback --test
  corpus-agent rollback
  corpus-agent rollback --to 1.4
  corpus-agent rollback --converge --test
  corpus-agent rollback --converge
  corpus-agent rollback --converge --to 20260101T120000.000000`,
		Args: cli.Args(cobra.NoArgs),
		RunE: func(c *cobra.Command, _ []string) error {
			return p.run(test, func(a *agent.Agent) (*report.Report, error) {
				switch {
				case !converge && test:
					return a.ShowRollback(c.Context(), to)
				case !converge:
					return a.RollbackTo(c.Context(), to)
				}
				r, err := a.RollbackConverge(c.Context(), to, test)
				if test && r != nil && !p.json {
					_, _ = p.Out.Write([]byte(r.Output))
				}
				return r, err
			})
		},
	}
	c.Flags().StringVar(&to, "to", "",
		"version or directory of the service's release to roll back to; with --converge also a run")
	c.Flags().BoolVar(&converge, "converge", false, "also undo the changes that converging made")
	c.Flags().BoolVar(&test, "test", false, "show what would change, and change nothing")
	p.addProgress(c.Flags())
	return c
}
