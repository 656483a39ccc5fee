package main

import (
	"errors"
	"strings"

	"github.com/spf13/cobra"

	"github.com/corpus-agent/corpus-agent/agent/exit"
	"github.com/corpus-agent/corpus-agent/agent/ledger"
	"github.com/corpus-agent/corpus-agent/cmd/cli"
	"github.com/corpus-agent/corpus-agent/state/diag"
)

func (p *program) unquarantineCommand() *cobra.Command {
	all := false
	c := &cobra.Command{
		Use:   "unquarantine [VERSION]",
		Short: "Allow releases that failed to be deployed again",
		Long: `unquarantine removes releases from the quarantine, those of VERSION or all, so that the next deploy tries them
again if a channel still names them. A deploy that waits for a retry because the host caused its failure is
retried with the next run.`,
		Example: `  corpus-agent unquarantine 1.4
  corpus-agent unquarantine --all`,
		Args: cli.Args(cobra.MaximumNArgs(1)),
		RunE: func(_ *cobra.Command, args []string) error {
			if all == (len(args) == 1) {
				return exit.WithCode(exit.Usage, diag.Usage.Hint(errors.New("no release was named"),
					"name a VERSION, or give --all"))
			}
			a, err := p.agent(map[string]string{})
			if err != nil {
				return err
			}
			released, err := a.Unquarantine(strings.Join(args, ""))
			if err != nil {
				return err
			}
			var names []string
			var pairs []ledger.Pair
			for _, b := range released {
				names, pairs = append(names, b.What()), append(pairs, b.Pair)
			}
			return p.answer(map[string]any{"released": pairs, "entries": released},
				"may be tried again: "+strings.Join(names, "; "))
		},
	}
	c.Flags().BoolVar(&all, "all", false, "remove all releases from the quarantine")
	return c
}
