package main

import (
	"time"

	"github.com/spf13/cobra"

	"github.com/corpus-agent/corpus-agent/artifact/publish"
	"github.com/corpus-agent/corpus-agent/cmd/cli"
	"github.com/corpus-agent/corpus-agent/state/diag"
)

const (
	// gcGrace is how long a publish may take from its first upload to its last signature.
	gcGrace = 24 * time.Hour
	// gcDrafts is how long a draft may be on its way from hand to hand.
	gcDrafts = 30 * 24 * time.Hour
)

func (p *program) gcCommand() *cobra.Command {
	grace, dry := publish.Grace{Packs: gcGrace, Drafts: gcDrafts}, false
	c := &cobra.Command{
		Use:   "gc",
		Short: "Remove what no version of a project needs",
		Long: `gc removes artifacts, what lies beside them, and packs of chunks that no signed metadata names: what a
publish that was cut short has left. It removes pages of the lists of versions that no head names which
is in force or was replaced within the grace period. It aborts uploads that were begun and never completed. It may run
beside publishers: what is younger than the grace period is left alone, since a publisher may be about
to sign it, and so is what a draft names which is still to be signed and imported. It signs nothing,
and needs the right to list and delete below deploy/ and metadata/pages/, see docs/buckets.md.`,
		Example: `  corpus gc --store s3://bucket/prefix --keys keys --dry-run`,
		Args:    cli.Args(cobra.NoArgs),
		RunE: func(c *cobra.Command, _ []string) error {
			publisher, err := p.pinned(c.Context())
			if err != nil {
				return err
			}
			all, err := publisher.Collect(c.Context(), grace, dry)
			if err != nil {
				return err
			}
			did := "removed"
			if dry {
				did = "would remove"
			}
			o, pages := all.Objects, all.Pages
			o = publish.Tally{Removed: o.Removed + pages.Removed, Young: o.Young + pages.Young, Pending: o.Pending, Kept: o.Kept + pages.Kept}
			return p.answer(all, "%s %d packs and %d other objects, %s, and %d unfinished uploads; %d are in use, %d wait for a draft to be signed, %d are too young to tell",
				did, all.Packs, o.Removed, diag.Size(all.Bytes), all.Uploads.Removed, all.Kept+o.Kept, all.Pending+o.Pending, all.Young+o.Young+all.Uploads.Young)
		},
	}
	c.Flags().DurationVar(&grace.Packs, "grace", gcGrace, "age below which everything is left alone")
	c.Flags().DurationVar(&grace.Drafts, "drafts", gcDrafts, "age up to which a draft keeps what it names")
	c.Flags().BoolVar(&dry, "dry-run", false, "say what would be removed, and remove nothing")
	return c
}
