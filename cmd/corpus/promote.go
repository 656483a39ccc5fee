package main

import (
	"fmt"

	"github.com/spf13/cobra"

	"github.com/corpus-agent/corpus-agent/artifact"
	"github.com/corpus-agent/corpus-agent/artifact/publish/releases"
	"github.com/corpus-agent/corpus-agent/cmd/cli"
)

func (p *program) promoteCommand() *cobra.Command {
	isNew, flags := false, startFlags{}
	c := &cobra.Command{
		Use:   "promote PROJECT FROM TO",
		Short: "Point a channel at the release of another channel",
		Long: `promote signs a new pointer. The bytes that were tested are the bytes that are promoted.

If the channel requires proof that a release was healthy on another channel (corpus project require), the proof
that corpus attest stored is included; without one the exit code is 4. From a channel to itself, promote includes
a newer proof of the channel's release.

TO may be a new channel. It is refused without --new if its name differs in only one or two letters from that of
another channel of the project, or from testing, staging or production. corpus point --remove removes a channel.

If TO has a plan (corpus project rollout), promote starts a rollout: it divides the hosts that follow the channel
into waves, which deploy the release one after the other. That needs permission to list the store and to read below
reports/ and hosts/. If the agents of some hosts are older than the plan requires, nothing is promoted, and the exit
code is 4, unless --exempt names these hosts: they may take the release at once. With --urgent a rollout, including one that is under way, does not wait between waves, but still stops if
the release fails.`,
		Example: `  corpus promote myapp testing production --store s3://bucket/prefix --keys keys
  corpus promote myapp testing production --urgent --store s3://bucket/prefix --keys keys`,
		Args: cli.Args(cobra.ExactArgs(3)),
		RunE: func(c *cobra.Command, args []string) error {
			publisher, err := p.pinned(c.Context())
			if err != nil {
				return err
			}
			publisher.New = isNew
			starter := p.starts(publisher, flags)
			release, err := releases.Promote(c.Context(), publisher, args[0], args[1], args[2])
			if err != nil {
				return code(err)
			}
			return starter.answer(c.Context(), artifact.Ref{Project: args[0], Channel: args[2]}, release,
				fmt.Sprintf("%s/%s is %s, as %s/%s", args[0], args[2], release.Version, args[0], args[1]))
		},
	}
	newChannelFlag(c, &isNew)
	flags.add(c)
	p.byFlag(c)
	p.draftFlag(c)
	return c
}
