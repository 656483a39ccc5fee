package main

import (
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"

	"github.com/corpus-agent/corpus-agent/agent/inspect"
	"github.com/corpus-agent/corpus-agent/cmd/cli"
)

func (p *program) whyCommand() *cobra.Command {
	var trees inspect.Trees
	c := &cobra.Command{
		Use:   "why [STEP]",
		Short: "Explain why this host runs its releases, or why a step runs at its place",
		Long: `why explains the state of the host from its records, without reading the store: why it runs this release, who
signed it, what failed first since it was deployed, and what to do next.

why STEP explains a step of the highstate: where it is declared, how its SLS file is included, its order, the steps
that it waits for and those that wait for it. STEP is an ID, a name, "state: ID" or an SLS.`,
		Example: `  corpus-agent why
  corpus-agent why --json
  corpus-agent why nginx.conf
  corpus-agent why "service: nginx"
  corpus-agent why web --states ./states`,
		Args: cli.Args(cobra.MaximumNArgs(1)),
		RunE: func(c *cobra.Command, args []string) error {
			a, err := p.reader()
			if err != nil {
				return err
			}
			if len(args) > 0 {
				return p.whyStep(c.Context(), a, trees, args[0])
			}
			w, err := a.Why()
			if err != nil {
				return err
			}
			a.AskUnit(c.Context(), &w.Status)
			if p.json {
				return p.JSON(w)
			}
			return printWhy(p.Out, w)
		},
	}
	treeFlags(c, &trees)
	return c
}

func cutTitle(c inspect.Cut) string {
	if c.Ended {
		return "not finished"
	}
	return "interrupted"
}

func printWhy(out io.Writer, w inspect.Why) error {
	var b strings.Builder
	if w.Deployed != nil {
		fmt.Fprintf(&b, "%s runs", w.Deployed)
		if w.Since != nil {
			fmt.Fprintf(&b, " since %s", when(*w.Since))
		}
		b.WriteString(":\n")
	}
	fmt.Fprintf(&b, "  %s\n", indented("  ", w.Reason))
	for _, s := range w.Signed {
		var keys []string
		for _, k := range s.Keys {
			keys = append(keys, k[:min(len(k), 12)])
		}
		fmt.Fprintf(&b, "  %s is signed by key %s, good until %s\n", s.Project, strings.Join(keys, ", "),
			s.Expires.Local().Format("2006-01-02 15:04 MST"))
	}
	for _, d := range w.Drift {
		fmt.Fprintf(&b, "  %s\n", indented("  ", d))
	}
	if len(w.Uncontrolled) > 0 {
		b.WriteString("  every run is refused, with exit code 4: another user can change what root reads or runs\n")
	}
	if w.Cut != nil {
		fmt.Fprintf(&b, "%s:\n  %s\n", cutTitle(*w.Cut), indented("  ", w.Cut.String()))
	}
	if w.Unreported != nil {
		fmt.Fprintf(&b, "unreported:\n  %s\n", w.Unreported)
	}
	if w.Running != nil {
		fmt.Fprintf(&b, "under way:\n  %s\n", runningLine(w.Status))
		if len(w.Waiting) > 0 {
			fmt.Fprintf(&b, "  waiting in the queue of systemd: %s; systemctl list-jobs --after\n",
				strings.Join(w.Waiting, ", "))
		}
	}
	if w.Failed != "" {
		settled := ""
		if w.Settled {
			settled = " (runs since then succeeded)"
		}
		fmt.Fprintf(&b, "failed first, in run %s%s:\n  %s\n", w.FailedIn, settled, indented("  ", w.Failed))
	}
	if len(w.Next) > 0 {
		b.WriteString("next:\n")
		for _, n := range w.Next {
			fmt.Fprintf(&b, "  %s\n", indented("  ", n))
		}
	}
	_, err := io.WriteString(out, b.String())
	return err
}
