package main

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/corpus-agent/corpus-agent/artifact"
	"github.com/corpus-agent/corpus-agent/artifact/publish/projects"
	"github.com/corpus-agent/corpus-agent/artifact/trust"
	"github.com/corpus-agent/corpus-agent/cmd/cli"
)

func (p *program) projectRequireCommand() *cobra.Command {
	q := trust.Requirement{}
	none, isNew := false, false
	c := &cobra.Command{
		Use:   "require PROJECT CHANNEL --from CHANNEL",
		Short: "Restrict a channel to releases that were healthy on another one",
		Long: `require signs that a channel accepts a release only with proof that the same bytes were healthy on hosts of
another channel (corpus attest). corpus promote refuses a release without proof, and so does every host of the
channel.

The requirement is part of targets and needs the targets key: the owner of the project's key alone cannot remove
it. Agents that are older than this program may ignore it.

With --signed a report counts only if its host signed it with the key that it registered in the store.`,
		Example: `  corpus project require myapp production --from testing --store s3://bucket/prefix --keys keys
  corpus project require myapp production --from testing --hosts 3 --fresh 2 --holds 30 --store s3://bucket/prefix --keys keys
  corpus project require myapp production --from testing --signed --store s3://bucket/prefix --keys keys
  corpus project require myapp production --none --store s3://bucket/prefix --keys keys`,
		Args: cli.Args(cobra.ExactArgs(2)),
		RunE: func(c *cobra.Command, args []string) error {
			ref := artifact.Ref{Project: args[0], Channel: args[1]}
			if none {
				return p.require(c.Context(), ref, nil, isNew)
			}
			return p.require(c.Context(), ref, &q, isNew)
		},
	}
	c.Flags().StringVar(&q.From, "from", "", "channel where a release must be healthy first")
	c.Flags().IntVar(&q.Hosts, "hosts", trust.DefaultHosts, "minimum number of hosts on which it was healthy")
	c.Flags().IntVar(&q.Fresh, "fresh", trust.DefaultFresh, "maximum age of reports, in days, when they are attested")
	c.Flags().IntVar(&q.Holds, "holds", trust.DefaultHolds, "number of days for which a proof is valid")
	c.Flags().BoolVar(&q.Signed, "signed", false, "count only reports that hosts signed with their registered keys "+
		"(corpus host ls)")
	c.Flags().BoolVar(&none, "none", false, "remove the requirement")
	newChannelFlag(c, &isNew)
	c.MarkFlagsOneRequired("from", "none")
	c.MarkFlagsMutuallyExclusive("from", "none")
	p.draftFlag(c)
	return c
}

func (p *program) require(ctx context.Context, ref artifact.Ref, q *trust.Requirement, isNew bool) error {
	publisher, err := p.pinned(ctx)
	if err != nil {
		return err
	}
	publisher.New = isNew
	result, err := projects.Require(ctx, publisher, ref, q)
	if err != nil {
		return code(err)
	}
	if p.drafted != nil {
		return p.answerDraft()
	}
	if q == nil {
		return p.answer(result, "%s requires nothing", ref)
	}
	text := fmt.Sprintf("%s requires %s", ref, q)
	if result.Refused != "" {
		text += fmt.Sprintf("\nits hosts keep what they have until it is proven: %s", result.Hint)
	}
	return p.answer(result, "%s", text)
}
