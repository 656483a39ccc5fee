package main

import (
	"fmt"

	"github.com/spf13/cobra"

	"github.com/corpus-agent/corpus-agent/agent/undo"
	"github.com/corpus-agent/corpus-agent/cmd/cli"
)

func (p *program) changesCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "changes [RUN]",
		Short: "Show what a run changed on this host, as a diff",
		Long: `changes shows what a run changed: the last run that changed something, or the one that is named. It reads the
journal with which changes are undone. The content of files that are not readable by every user is not shown.
"corpus-agent history" lists the runs.`,
		Example: `  corpus-agent changes
  corpus-agent changes 20260101T120000.000000 --json`,
		Args: cli.Args(cobra.MaximumNArgs(1)),
		RunE: func(_ *cobra.Command, args []string) error {
			a, err := p.agent(map[string]string{})
			if err != nil {
				return err
			}
			run, all, err := a.Changes(runOf(args))
			if err != nil {
				return err
			}
			if p.json {
				return p.JSON(map[string]any{"run": run, "changes": all})
			}
			return p.printChanges(run, all)
		},
	}
}

func (p *program) printChanges(run string, all []undo.Difference) error {
	if len(all) == 0 {
		_, err := fmt.Fprintln(p.Out, "the journal has no changes")
		return err
	}
	if _, err := fmt.Fprintf(p.Out, "# run %s\n", run); err != nil {
		return err
	}
	for _, d := range all {
		if _, err := fmt.Fprint(p.Out, d.String()); err != nil {
			return err
		}
	}
	return nil
}
