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
		Short: "Remove chunks that no version of their project needs",
		Long: `gc removes packs of chunks that no signed index names. It may run beside publishers: packs younger than
the grace period are left alone, since a publisher may be about to sign them, and so are packs that a
draft names which is still to be signed and imported. It signs nothing, and needs the right to delete
below deploy/.`,
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
			return p.answer(all, "%s %d packs, %s; %d are in use, %d wait for a draft to be signed, %d are too young to tell", did, all.Packs, diag.Size(all.Bytes), all.Kept, all.Pending, all.Young)
		},
	}
	c.Flags().DurationVar(&grace.Packs, "grace", gcGrace, "age below which packs are left alone")
	c.Flags().DurationVar(&grace.Drafts, "drafts", gcDrafts, "age up to which a draft keeps the packs that it names")
	c.Flags().BoolVar(&dry, "dry-run", false, "tell what would be removed")
	return c
}
