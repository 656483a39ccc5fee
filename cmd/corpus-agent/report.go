package main

import (
	"github.com/spf13/cobra"

	"github.com/corpus-agent/corpus-agent/agent/report"
	"github.com/corpus-agent/corpus-agent/cmd/cli"
	"github.com/corpus-agent/corpus-agent/state/diag"
)

func (p *program) reportCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "report [RUN]",
		Short: "Show the report of a run",
		Long: `report shows a finished run in the same form as during the run: the last one, or the one that is named. States
without changes, warnings or errors are only counted. "corpus-agent history" lists the runs.`,
		Example: `  corpus-agent report
  corpus-agent report 20260101T120000.000000 --json`,
		Args: cli.Args(cobra.MaximumNArgs(1)),
		RunE: func(_ *cobra.Command, args []string) error {
			a, err := p.agent(map[string]string{})
			if err != nil {
				return err
			}
			r, err := a.Report(runOf(args))
			if err != nil {
				return err
			}
			if p.json {
				return p.JSON(r)
			}
			report.Replay(r, &report.Lines{Out: p.Out, Color: p.Color(p.Out), Verbose: p.verbose, Always: true})
			return p.explainFailure(r)
		},
	}
}

// runOf returns the ID of the run that is named; "" for the last one.
func runOf(args []string) string {
	if len(args) == 0 {
		return ""
	}
	return args[0]
}

// explainFailure prints the error and the hint with which a run failed.
func (p *program) explainFailure(r *report.Report) error {
	if r.Error == "" {
		return nil
	}
	text := "error: " + r.Error + "\n"
	if r.Hint != "" {
		text += diag.HintLines(r.Hint) + "\n"
	}
	_, err := p.Out.Write([]byte(text))
	return err
}
