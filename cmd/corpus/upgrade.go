package main

import (
	"github.com/spf13/cobra"

	"github.com/corpus-agent/corpus-agent/cmd/cli"
)

func (p *program) upgradeCommand() *cobra.Command {
	c := &cobra.Command{
		Use:   "upgrade",
		Short: "End the form of metadata that earlier versions of corpus read in full",
		Long: `upgrade ends the list of all versions of a project in one file, which publish writes for earlier versions
of corpus and corpus-agent beside the form that this one reads. It takes the targets key, and cannot be
taken back. Run it when every host has this agent, and everybody who publishes has this corpus.

From the next publish of a project on, agents of before go on following its channels, and see no version
that no channel names: corpus-agent verify compares such a release with what was noted when it was
unpacked. An earlier corpus sees these versions alone too, and must not publish any more.`,
		Example: `  corpus store upgrade --store s3://bucket/prefix --keys keys
  corpus store upgrade --store s3://bucket/prefix --keys keys --draft targets.draft`,
		Args: cli.Args(cobra.NoArgs),
		RunE: func(c *cobra.Command, _ []string) error {
			publisher, err := p.pinned(c.Context())
			if err != nil {
				return err
			}
			if _, err := publisher.Upgrade(c.Context()); err != nil {
				return code(err)
			}
			if p.drafted != nil {
				return p.answerDraft()
			}
			return p.answer(map[string]any{"upgraded": true}, "the lists of all versions in one file end with the next publish of each project")
		},
	}
	p.draftFlag(c)
	return c
}
