package main

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/corpus-agent/corpus-agent/artifact"
	"github.com/corpus-agent/corpus-agent/artifact/publish"
	"github.com/corpus-agent/corpus-agent/artifact/publish/releases"
	"github.com/corpus-agent/corpus-agent/cmd/cli"
)

func (p *program) yankCommand() *cobra.Command {
	reason, undo := "", false
	c := &cobra.Command{
		Use:   "yank PROJECT VERSION",
		Short: "Withdraw a version",
		Long: `yank signs that a version is withdrawn. A host that runs it reports that at its next run, and keeps running it
until its channel names another version; other hosts do not deploy it. If a channel points at it, the channel's
hosts keep what they run.

yank needs the project's key and those of snapshot and timestamp. The artifact stays in the store.`,
		Example: `  corpus yank myapp 1.2 --reason "loses sessions" --store s3://bucket/prefix --keys keys
  corpus yank myapp 1.2 --undo --store s3://bucket/prefix --keys keys`,
		Args: cli.Args(cobra.ExactArgs(2)),
		RunE: func(c *cobra.Command, args []string) error {
			return p.yank(c.Context(), args[0], args[1], reason, undo)
		},
	}
	c.Flags().StringVar(&reason, "reason", "", "reason that hosts running it report")
	c.Flags().BoolVar(&undo, "undo", false, "undo the withdrawal")
	p.draftFlag(c)
	return c
}

func (p *program) yank(ctx context.Context, project, version, reason string, undo bool) error {
	publisher, err := p.pinned(ctx)
	if err != nil {
		return err
	}
	if undo {
		release, err := releases.Unyank(ctx, publisher, project, version)
		if err != nil {
			return code(err)
		}
		if p.drafted != nil {
			return p.answerDraft()
		}
		return p.answer(release, "%s is no longer withdrawn", release)
	}
	result, err := releases.Yank(ctx, publisher, project, version, reason)
	if err != nil {
		return code(err)
	}
	if p.drafted != nil {
		return p.answerDraft()
	}
	text := fmt.Sprintf("withdrew %s", result.Release)
	for _, channel := range result.Channels {
		text += fmt.Sprintf("\n%s/%s still points at it: its hosts keep what they run until it points at another version%s",
			project, channel, wayBack(ctx, publisher, artifact.Ref{Project: project, Channel: channel}))
	}
	return p.answer(result, "%s", text)
}

// wayBack returns the command that leads back from a withdrawn release that a rollout brings; "" without a rollout.
func wayBack(ctx context.Context, publisher *publish.Publisher, ref artifact.Ref) string {
	u, err := publisherRollout(ctx, publisher, ref)
	if err != nil || u.rollout.Start.Aborted || u.rollout.Start.Before == nil {
		return "" // what the results of hosts do not show does not make the withdrawal fail
	}
	return ": " + u.wayBack()
}
