package main

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/corpus-agent/corpus-agent/artifact"
	"github.com/corpus-agent/corpus-agent/artifact/publish"
	"github.com/corpus-agent/corpus-agent/artifact/publish/releases"
	"github.com/corpus-agent/corpus-agent/artifact/trust"
	"github.com/corpus-agent/corpus-agent/cmd/cli"
)

func (p *program) pointCommand() *cobra.Command {
	remove, isNew, flags := false, false, startFlags{}
	c := &cobra.Command{
		Use:   "point PROJECT CHANNEL VERSION",
		Short: "Point a channel at a published version, or remove the channel",
		Long: `point signs that a channel names a version, older or newer than the one it names now. The artifact is in the
store, so its file is not needed. A withdrawn version is refused.

A new channel is refused without --new if its name differs in only one or two letters from that of another
channel of the project, or from testing, staging or production.

With --remove and without a version it removes the channel from the project. Hosts that follow it keep what they
run, and each of their runs reports that the channel does not exist. Versions that no other channel names can
then be removed (corpus gc --keep).

It needs the project's key and those of snapshot and timestamp. If the channel requires proof that a release was
healthy on another channel (corpus project require), the proof is taken from the store, as with corpus promote;
without one the exit code is 4.

If the channel has a plan (corpus project rollout), point starts a rollout; see corpus promote.`,
		Example: `  corpus point myapp testing 1.0 --store s3://bucket/prefix --keys keys
  corpus point myapp testing --remove --store s3://bucket/prefix --keys keys`,
		Args: cli.Args(func(c *cobra.Command, args []string) error {
			if remove {
				return cobra.ExactArgs(2)(c, args)
			}
			return cobra.ExactArgs(3)(c, args)
		}),
		RunE: func(c *cobra.Command, args []string) error {
			publisher, err := p.pinned(c.Context())
			if err != nil {
				return err
			}
			publisher.New = isNew
			if remove {
				return p.unpoint(c.Context(), publisher, artifact.Ref{Project: args[0], Channel: args[1]})
			}
			ref, starter := artifact.Ref{Project: args[0], Channel: args[1]}, p.starts(publisher, flags)
			release, err := releases.Point(c.Context(), publisher, ref, args[2])
			if err != nil {
				return code(err)
			}
			return starter.answer(c.Context(), ref, release, fmt.Sprintf("%s is %s", ref, release.Version))
		},
	}
	c.Flags().BoolVar(&remove, "remove", false, "remove the channel")
	newChannelFlag(c, &isNew)
	flags.add(c)
	p.byFlag(c)
	p.draftFlag(c)
	return c
}

// newChannelFlag adds --new, which allows a new channel although its name looks like a typing error.
func newChannelFlag(c *cobra.Command, isNew *bool) {
	c.Flags().BoolVar(isNew, "new", false, "allow a new channel with nearly the same name as another one")
}

func (p *program) unpoint(ctx context.Context, publisher *publish.Publisher, ref artifact.Ref) error {
	pointer, err := releases.Unpoint(ctx, publisher, ref)
	if err != nil {
		return code(err)
	}
	if p.drafted != nil {
		return p.answerDraft()
	}
	text := fmt.Sprintf("removed the channel %s; it pointed at %s, which stays published", ref, pointer.Version)
	if n, err := publisher.View(ctx); err == nil && planned(n.Client, ref) {
		text += fmt.Sprintf("\nits rollout plan stays, and counts if the channel is made again, which has no earlier "+
			"release to go back to; to remove the plan: corpus project rollout %s %s --none", ref.Project, ref.Channel)
	}
	return p.answer(pointer, "%s", text)
}

// planned reports whether a channel has a rollout plan.
func planned(client *trust.Client, ref artifact.Ref) bool {
	plan, err := client.Rollout(ref)
	return err == nil && plan != nil
}
