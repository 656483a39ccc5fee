package main

import (
	"fmt"
	"os/user"
	"strings"

	"github.com/spf13/cobra"

	"github.com/corpus-agent/corpus-agent/agent/inspect"
	"github.com/corpus-agent/corpus-agent/artifact/manifest"
	"github.com/corpus-agent/corpus-agent/artifact/trust"
	"github.com/corpus-agent/corpus-agent/cmd/cli"
	"github.com/corpus-agent/corpus-agent/state/diag"
)

func (p *program) verifyCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "verify",
		Short: "Compare every file of the current releases with what was signed",
		Long: `verify reads every file of the current releases and lists those that were changed, added or removed, with their
present owner, the time of the change, and the run of this agent that made it, if one did. It compares with a list
whose digest was signed by the project's key. The store is not read. Files that a release declares writable may
change; templates and SLS files among them are listed, since runs refuse to render them.

Exit codes: 0 no file was changed, 2 nothing is deployed, 4 some files were changed.`,
		Example: `  corpus-agent verify
  corpus-agent verify --json`,
		Args: cli.Args(cobra.NoArgs),
		RunE: func(c *cobra.Command, _ []string) error {
			a, err := p.agent(map[string]string{})
			if err != nil {
				return err
			}
			audits, err := a.Verify(c.Context())
			if p.json {
				if len(audits) == 0 {
					return err
				}
				if written := p.JSON(audits); written != nil {
					return written
				}
				return cli.AlreadyReported(err)
			}
			for _, audit := range audits {
				p.printAudit(audit)
			}
			return err
		},
	}
}

func (p *program) printAudit(a inspect.Audit) {
	verdict := "all as signed"
	switch {
	case a.Error != "":
		verdict = "could not be compared"
	case len(a.Changes) > 0:
		verdict = fmt.Sprintf("%d changed", len(a.Changes))
	case !a.Signed:
		verdict = "all as unpacked"
	}
	fmt.Fprintf(p.Out, "%s: %s, %s\n", a.Release, diag.Count(a.Files, "name"), verdict)
	if a.Note != "" {
		fmt.Fprintf(p.Out, "  %s\n", a.Note)
	}
	for _, name := range a.Changeable {
		fmt.Fprintf(p.Out, "  %s: the project's user may change it, so that runs refuse to render it\n",
			trust.Printable(name))
	}
	for _, c := range a.Changes {
		fmt.Fprintf(p.Out, "  %s %s%s\n", trust.Printable(c.Name), c.What, whoAndWhen(c))
	}
}

// whoAndWhen returns a text with the known details of a change: its author, the owner of the file, and the time.
func whoAndWhen(c manifest.Change) string {
	var known []string
	if c.By != "" {
		known = append(known, "by "+c.By)
	}
	subject := "its directory "
	if c.Owner != "" {
		owner := "user " + c.Owner
		if u, err := user.LookupId(c.Owner); err == nil {
			owner = u.Username
		}
		known, subject = append(known, "owned by "+owner), ""
	}
	if !c.Changed.IsZero() {
		known = append(known, subject+"changed "+diag.Stamp(c.Changed))
	}
	if len(known) == 0 {
		return ""
	}
	return " (" + strings.Join(known, ", ") + ")"
}
