package main

import "github.com/spf13/cobra"

func (p *program) rolloutCommand() *cobra.Command {
	c := &cobra.Command{
		Use:   "rollout",
		Short: "Look at the rollout of a channel, steer it, and simulate one",
		Long: `A channel with a plan (corpus project rollout) takes a release in waves of hosts. promote, point and publish --channel start a
rollout; the commands below show it, steer it and simulate one. docs/rollouts.md explains it.`,
		Example: `  corpus rollout status myapp production --store s3://bucket/prefix --trust-root keys/root.json
  corpus rollout abort myapp production --store s3://bucket/prefix --keys keys
  corpus rollout simulate --hosts 10000 --fails 2% --seed 7`,
	}
	c.AddCommand(p.rolloutStatusCommand())
	c.AddCommand(p.rolloutMoveCommands()...)
	c.AddCommand(p.rolloutBackCommand(), p.rolloutWatchCommand(), p.rolloutSimulateCommand())
	return c
}
