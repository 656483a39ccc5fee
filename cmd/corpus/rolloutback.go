package main

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/corpus-agent/corpus-agent/agent/exit"
	"github.com/corpus-agent/corpus-agent/artifact"
	"github.com/corpus-agent/corpus-agent/artifact/publish/releases"
	"github.com/corpus-agent/corpus-agent/artifact/rollout"
	"github.com/corpus-agent/corpus-agent/artifact/trust"
	"github.com/corpus-agent/corpus-agent/cmd/cli"
	"github.com/corpus-agent/corpus-agent/state/diag"
)

func (p *program) rolloutBackCommand() *cobra.Command {
	var flags startFlags
	c := &cobra.Command{
		Use:   "back PROJECT CHANNEL",
		Short: "Roll a channel out to the version before its last rollout",
		Long: `back points the channel at the version that it named before its last rollout. Unlike abort, it is for a release that has arrived:
it starts a rollout of its own, with the waves and limits of the plan, since the version before may fail where the release has
changed something. With --urgent it waits for no waves.

back never leads to a release whose rollout was aborted or has not arrived, that is withdrawn, or that back itself has left: given
again, once that rollout has arrived or its release fails as well, it continues to the version before that.

It is a move of the channel, and takes the project's key and those of snapshot and timestamp.`,
		Example: `  corpus rollout back myapp production --store s3://bucket/prefix --keys keys
  corpus rollout back myapp production --urgent --store s3://bucket/prefix --keys keys`,
		Args: cli.Args(cobra.ExactArgs(2)),
		RunE: func(c *cobra.Command, args []string) error {
			return p.rolloutBack(c.Context(), artifact.Ref{Project: args[0], Channel: args[1]}, flags)
		},
	}
	flags.add(c)
	p.byFlag(c)
	p.draftFlag(c)
	return c
}

func (p *program) rolloutBack(ctx context.Context, ref artifact.Ref, flags startFlags) error {
	publisher, err := p.pinned(ctx)
	if err != nil {
		return err
	}
	u, err := publisherRollout(ctx, publisher, ref)
	if err != nil && !errors.Is(err, errNoPlan) {
		return code(err)
	}
	if err := u.mayGoBack(err == nil); err != nil {
		return err
	}
	start := u.rollout.Start
	if u.seen.Objects > 0 && !u.arrived() && !start.Back { // 0 objects if the channel has no plan any more
		fmt.Fprintf(p.Err, "warning: %s has not arrived: `corpus rollout abort %s %s` goes back from it at once, and back "+
			"goes in waves\n", trust.Printable(u.version), ref.Project, ref.Channel)
	}
	starter := p.starts(publisher, flags)
	release, withdrawn, err := releases.Back(ctx, publisher, ref, start)
	if err != nil {
		return code(err)
	}
	if len(withdrawn) > 0 {
		fmt.Fprintf(p.Err, "warning: back leaves out what %s named before and cannot name now, since it is withdrawn or no "+
			"longer signed: %s\n", ref, trust.Printable(strings.Join(withdrawn, ", ")))
	}
	return starter.answer(ctx, ref, release, fmt.Sprintf("%s is %s, %s", ref, release.Version, backTo(start, release)))
}

// backTo describes the release to which a channel went back from a rollout.
func backTo(start rollout.Start, r artifact.Release) string {
	if start.Before != nil && start.Before.Digest == r.Digest {
		return "as before its last rollout"
	}
	return "which it named earlier"
}

// mayGoBack returns an error if back has nothing to go back to, or is under way. read reports whether the results of
// the hosts were read.
func (u *activeRollout) mayGoBack(read bool) error {
	start, ref := u.rollout.Start, u.ref
	hint := "point it at a version: `corpus point %s %s VERSION`"
	var err error
	switch {
	case start.Aborted:
		err = fmt.Errorf("the rollout of %s was aborted, so it is %s already", ref, trust.Printable(u.version))
	case len(start.Trail()) == 0 && start.Back:
		err = fmt.Errorf("%s went back to %s, and it is not known what it named before that", ref,
			trust.Printable(u.version))
	case len(start.Trail()) == 0:
		err = fmt.Errorf("no release is known to have arrived on %s before its rollout", ref)
	case start.Back && read && !u.arrived() && u.stopsAt().IsZero():
		err = fmt.Errorf("%s goes back to %s in a rollout that has not arrived", ref, trust.Printable(u.version))
		hint = "`corpus point %[1]s %[2]s " + trust.Printable(u.version) + " --urgent` takes it to all hosts at once; to " +
			"go further back: `corpus point %[1]s %[2]s VERSION`"
	default:
		return nil
	}
	return exit.WithCode(exit.Usage, diag.Rollout.Hint(err, hint, ref.Project, ref.Channel))
}
