package main

import (
	"fmt"

	"github.com/spf13/cobra"

	"github.com/corpus-agent/corpus-agent/agent/exit"
	"github.com/corpus-agent/corpus-agent/agent/procedure/git"
	"github.com/corpus-agent/corpus-agent/artifact"
	"github.com/corpus-agent/corpus-agent/cmd/cli"
)

func (p *program) pushCommand() *cobra.Command {
	branch, tree, env := "", ".", ""
	force, initialise := false, false
	c := &cobra.Command{
		Use:   "push HOST PROJECT",
		Short: "Deploy the checked-out commit on a host, over ssh",
		Long: `push pushes the checked-out commit to the project's repository on a host with the agent. The host deploys it
and prints the progress. If the deploy fails, the push is refused. A pushed release is unsigned.

HOST is a destination of ssh; its account must be allowed to run the agent, such as root. With --init the host
is prepared for the project first.`,
		Example: `  corpus push root@dev1 shop --init --env dev
  corpus push root@dev1 shop --force`,
		Args: cli.Args(cobra.ExactArgs(2)),
		RunE: func(c *cobra.Command, args []string) error {
			host, project := args[0], args[1]
			for _, word := range []string{branch, env} {
				if err := artifact.CheckChannel(word); err != nil && word != "" {
					return exit.WithCode(exit.Usage, fmt.Errorf("the branch or environment: %w", err))
				}
			}
			if initialise {
				command := []string{"corpus-agent", "project", "init", project, "--git", "--branch", branch}
				if env != "" {
					command = append(command, "--env", env)
				}
				if err := git.Remote(c.Context(), host, command, p.Err); err != nil {
					return err
				}
			}
			if err := git.Push(c.Context(), tree, host+":/srv/projects/"+project+"/git/project.git", branch, force,
				p.Err); err != nil {
				return err
			}
			return p.answer(map[string]string{"host": host, "project": project}, "pushed %s to %s", project, host)
		},
	}
	flags := c.Flags()
	flags.StringVar(&branch, "branch", "main", "branch that the host deploys")
	flags.StringVar(&tree, "tree", ".", "working tree to push from")
	flags.StringVar(&env, "env", "", "with --init: dev, staging or prod")
	flags.BoolVar(&force, "force", false, "replace a different history on the host")
	flags.BoolVar(&initialise, "init", false, "prepare the host for the project first")
	return c
}
