package main

import (
	"github.com/spf13/cobra"

	"github.com/corpus-agent/corpus-agent/artifact"
	"github.com/corpus-agent/corpus-agent/cmd/cli"
)

func (p *program) pointCommand() *cobra.Command {
	c := &cobra.Command{
		Use:   "point PROJECT CHANNEL VERSION",
		Short: "Point a channel at a version that is published",
		Long: `point signs that a channel names a version, older or newer than the one it names now. The artifact is in the
store and does not have to be at hand. A version that is withdrawn is refused.

It takes the project's key and those of snapshot and timestamp. A channel that requires proof that a release was healthy
elsewhere first (corpus project require) takes it from the store, as with corpus promote; without one the exit code is 4.`,
		Example: `  corpus point myapp testing 1.0 --store s3://bucket/prefix --keys keys`,
		Args:    cli.Args(cobra.ExactArgs(3)),
		RunE: func(c *cobra.Command, args []string) error {
			publisher, err := p.pinned(c.Context())
			if err != nil {
				return err
			}
			release, err := publisher.Point(c.Context(), artifact.Ref{Project: args[0], Channel: args[1]}, args[2])
			if err != nil {
				return code(err)
			}
			if p.drafted != nil {
				return p.answerDraft()
			}
			return p.answer(release, "%s/%s is %s", args[0], args[1], release.Version)
		},
	}
	p.draftFlag(c)
	return c
}
