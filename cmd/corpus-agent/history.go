package main

import (
	"fmt"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"github.com/corpus-agent/corpus-agent/cmd/cli"
	"github.com/corpus-agent/corpus-agent/state/diag"
)

func (p *program) historyCommand() *cobra.Command {
	return &cobra.Command{
		Use:     "history",
		Short:   "List the recorded runs, newest first",
		Example: `  corpus-agent history`,
		Args:    cli.Args(cobra.NoArgs),
		RunE: func(*cobra.Command, []string) error {
			a, err := p.agent(map[string]string{})
			if err != nil {
				return err
			}
			list, err := a.History()
			if err != nil {
				return err
			}
			if p.json {
				return p.JSON(list)
			}
			w := tabwriter.NewWriter(p.Out, 0, 8, 2, ' ', 0)
			for _, r := range list {
				what := ""
				if about := r.About(); about != nil {
					what = about.String()
				}
				fmt.Fprintf(w, "%s\t%s\t%s\t%s\t%s\t%s\t%s\n", r.ID, r.Command, r.Outcome, what, r.States,
					diag.Elapsed(r.Duration()), r.Fault)
			}
			return w.Flush()
		},
	}
}
