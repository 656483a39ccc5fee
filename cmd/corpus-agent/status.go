package main

import (
	"fmt"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"github.com/corpus-agent/corpus-agent/agent/inspect"
	"github.com/corpus-agent/corpus-agent/agent/ledger"
	"github.com/corpus-agent/corpus-agent/agent/records"
	"github.com/corpus-agent/corpus-agent/cmd/cli"
	"github.com/corpus-agent/corpus-agent/state/diag"
)

func (p *program) statusCommand() *cobra.Command {
	all := false
	c := &cobra.Command{
		Use:   "status",
		Short: "Show what runs on this host, since when, and what is wrong",
		Example: `  corpus-agent status
  corpus-agent status --all
  corpus-agent status --json`,
		Args: cli.Args(cobra.NoArgs),
		RunE: func(c *cobra.Command, _ []string) error {
			a, err := p.reader()
			if err != nil {
				return err
			}
			s, err := a.Status()
			if err != nil {
				return err
			}
			if s.NextRun = a.NextRun(c.Context()); s.NextRun == nil {
				s.TimerOff = a.TimerOff(c.Context())
			}
			a.AskUnit(c.Context(), &s)
			if err := a.RunningUnits(c.Context(), &s); err != nil {
				s.Drift = append(s.Drift, fmt.Sprintf("what the units run is not known: %v", err))
			}
			if p.json {
				return p.JSON(s)
			}
			named, err := a.LastNamed()
			if err != nil {
				named = nil // the command why reports that the report cannot be read
			}
			return p.printStatus(s, named, all)
		},
	}
	c.Flags().BoolVar(&all, "all", false,
		"show all quarantined releases, not only the newest and those that the channels name")
	return c
}

// refusedLine returns a text that says for how long the lock has refused runs, and which process held it.
func refusedLine(r records.Refusals) string {
	line := fmt.Sprintf("%s by the lock, since %s, last %s", diag.Count(r.Count, "run"), when(r.Since), when(r.Last))
	if r.Holder.PID == 0 {
		return line + "; it is not known which process holds it"
	}
	return line + fmt.Sprintf("; %s, process %d, held it", r.Holder.Command, r.Holder.PID)
}

// printStatus prints the state of the host, one line for each thing, starting with the deployed releases. named is the
// pair of releases that the channels named last, nil if unknown; all shows the whole quarantine.
func (p *program) printStatus(s inspect.Status, named *ledger.Pair, all bool) error {
	w := tabwriter.NewWriter(p.Out, 0, 8, 2, ' ', 0)
	l := statusLines{w}
	l.deployed(s)
	l.units(s)
	l.underWay(s)
	l.runs(s)
	l.channels(s)
	l.store(s)
	l.keptAway(s)
	l.quarantined(s, named, all)
	l.found(s)
	return w.Flush()
}
