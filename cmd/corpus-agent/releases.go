package main

import (
	"fmt"
	"strings"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"github.com/corpus-agent/corpus-agent/cmd/cli"
)

func (p *program) releasesCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "releases",
		Short: "List the releases on this host, and those that it does not deploy",
		Long: `releases lists the releases of base and of the service on this host, newest first, with their state: deployed,
previous (rollback deploys it), in quarantine, withdrawn by its project. Releases that are not deployed because they
are in quarantine or withdrawn, or because the host is held, are listed too. The store is not read.`,
		Example: `  corpus-agent releases
  corpus-agent releases --json`,
		Args: cli.Args(cobra.NoArgs),
		RunE: func(*cobra.Command, []string) error {
			a, err := p.agent(map[string]string{})
			if err != nil {
				return err
			}
			list, err := a.Releases()
			if err != nil {
				return err
			}
			if p.json {
				return p.JSON(list)
			}
			w := tabwriter.NewWriter(p.Out, 0, 8, 2, ' ', 0)
			for _, k := range list {
				fmt.Fprintf(w, "%s\t%s\t%s\n", k.Release, k.Digest.Short(), strings.Join(k.Marks(), "; "))
			}
			return w.Flush()
		},
	}
}
