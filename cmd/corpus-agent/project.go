package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"strings"

	"github.com/spf13/cobra"

	"github.com/corpus-agent/corpus-agent/agent"
	"github.com/corpus-agent/corpus-agent/agent/exit"
	"github.com/corpus-agent/corpus-agent/agent/procedure"
	"github.com/corpus-agent/corpus-agent/agent/project"
	"github.com/corpus-agent/corpus-agent/agent/report"
	"github.com/corpus-agent/corpus-agent/cmd/cli"
	"github.com/corpus-agent/corpus-agent/state/diag"
	"github.com/corpus-agent/corpus-agent/state/value"
)

func (p *program) projectCommand() *cobra.Command {
	c := &cobra.Command{
		Use:   "project",
		Short: "Initialise and configure projects of this host, and run steps of their deploys",
		Long: `A project is deployed below /srv/projects/NAME: the host's service, or another one that is pushed to this host
or edited on it.`,
	}
	c.AddCommand(p.projectInitCommand(), p.projectDeployCommand(), p.getConfigurationCommand(),
		p.setConfigurationCommand(),
		p.switchModeCommand(), p.projectRollbackCommand(), p.receiveCommand())
	for _, step := range []struct{ name, short string }{
		{procedure.Archive, "Archive a project's present tree"},
		{procedure.ReleaseSync, "Fetch a project's release without making it current"},
		{procedure.Install, "Apply the SLS files of a project's deployed release"},
		{procedure.Fixperms, "Set the permissions of a project's files"},
		{procedure.Notify, "Run a project's notify procedure"},
	} {
		c.AddCommand(p.stepCommand(step.name, step.short))
	}
	return c
}

func (p *program) projectInitCommand() *cobra.Command {
	var init agent.Init
	c := &cobra.Command{
		Use:   "init NAME",
		Short: "Prepare the host for a project",
		Long: `init makes a project's entry in the registry, its directories, its user with an SSH key, and the links
/srv/salt/makina-projects/NAME and /srv/pillar/makina-projects/NAME. Existing ones are kept.

With --git it makes two bare repositories and prints their addresses. A push to the deployed branch runs a deploy
and prints its progress in the output of git push. If the deploy fails, the push is refused and no ref changes.`,
		Example: `  corpus-agent project init shop
  corpus-agent project init shop --git --env dev
  git push root@host:/srv/projects/shop/git/project.git HEAD:main`,
		Args: cli.Args(cobra.ExactArgs(1)),
		RunE: func(c *cobra.Command, args []string) error {
			a, err := p.agent(map[string]string{})
			if err != nil {
				return err
			}
			if init.Hook, err = p.hookCommand(); err != nil {
				return err
			}
			remotes, err := a.InitProject(c.Context(), args[0], init)
			if err != nil {
				return err
			}
			text := "initialised " + args[0]
			for _, r := range remotes {
				text += "\n  git push " + r + " HEAD:" + branchOr(init.Branch)
			}
			return p.answer(map[string]any{"project": args[0], "remotes": remotes}, text)
		},
	}
	flags := c.Flags()
	flags.BoolVar(&init.Git, "git", false, "make repositories to push to")
	flags.StringVar(&init.Branch, "branch", "", "branch that is deployed (default main)")
	flags.StringVar(&init.Env, "env", "", "dev, staging or prod (default: derived from the instance)")
	flags.StringVar(&init.User, "user", "", "user of the project (default NAME-user)")
	return c
}

func branchOr(branch string) string {
	if branch == "" {
		return "main"
	}
	return branch
}

// hookCommand returns the command line with which a hook calls this program for the same host.
func (p *program) hookCommand() (string, error) {
	program, err := os.Executable()
	if err != nil {
		return "", fmt.Errorf("finding this program: %w", err)
	}
	var args []string
	if p.root != "" {
		args = append(args, "--root", p.layout().Root)
	}
	if p.chroot {
		args = append(args, "--chroot")
	}
	if p.config != "" {
		args = append(args, "--config", p.config)
	}
	return project.HookCommand(program, args...), nil
}

func (p *program) projectDeployCommand() *cobra.Command {
	var steps stepFlags
	editable := ""
	c := &cobra.Command{
		Use:   "deploy NAME",
		Short: "Deploy a project: from its channel, its repository, or a working tree",
		Example: `  corpus-agent project deploy shop
  corpus-agent project deploy shop --editable /home/me/shop`,
		Args: cli.Args(cobra.ExactArgs(1)),
		RunE: func(c *cobra.Command, args []string) error {
			var given agent.Given
			if err := steps.parse(&given, p.In); err != nil {
				return err
			}
			return p.run(false, func(a *agent.Agent) (*report.Report, error) {
				if editable != "" {
					return a.DeployEditable(c.Context(), args[0], editable, given)
				}
				return a.RunProject(c.Context(), args[0], given)
			})
		},
	}
	steps.add(c.Flags())
	p.addProgress(c.Flags())
	c.Flags().StringVar(&editable, "editable", "",
		"working tree to link as the release, in a dev environment; it is unsigned")
	return c
}

// stepCommand returns a command that runs one step of a project's deploy.
func (p *program) stepCommand(step, short string) *cobra.Command {
	c := &cobra.Command{
		Use:     step + " NAME",
		Short:   short,
		Example: "  corpus-agent project " + step + " shop",
		Args:    cli.Args(cobra.ExactArgs(1)),
		RunE: func(c *cobra.Command, args []string) error {
			only, err := procedure.ParseOnly(step)
			if err != nil {
				return err
			}
			return p.run(false, func(a *agent.Agent) (*report.Report, error) {
				return a.RunProject(c.Context(), args[0], agent.Given{Only: only})
			})
		},
	}
	p.addProgress(c.Flags())
	return c
}

func (p *program) projectRollbackCommand() *cobra.Command {
	to, test := "", false
	c := &cobra.Command{
		Use:     "rollback NAME",
		Short:   "Roll back to a project's previous release",
		Example: "  corpus-agent project rollback shop --test\n  corpus-agent project rollback shop",
		Args:    cli.Args(cobra.ExactArgs(1)),
		RunE: func(c *cobra.Command, args []string) error {
			return p.run(test, func(a *agent.Agent) (*report.Report, error) {
				return a.RollbackProject(c.Context(), args[0], to, test)
			})
		},
	}
	c.Flags().StringVar(&to, "to", "", "version or directory of the release to roll back to")
	c.Flags().BoolVar(&test, "test", false, "show what would change, and change nothing")
	p.addProgress(c.Flags())
	return c
}

func (p *program) getConfigurationCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "get-configuration NAME [KEY]",
		Short: "Show a project's configuration as its procedures see it",
		Long:  "get-configuration shows all layers merged. With KEY only its value is shown; a:b selects a nested value.",
		Example: `  corpus-agent project get-configuration shop
  corpus-agent project get-configuration shop data:domain`,
		Args: cli.Args(cobra.RangeArgs(1, 2)),
		RunE: func(c *cobra.Command, args []string) error {
			a, err := p.agent(map[string]string{})
			if err != nil {
				return err
			}
			cfg, err := a.Configuration(c.Context(), args[0])
			if err != nil {
				return err
			}
			if len(args) == 1 {
				return p.printValue(cfg)
			}
			v, ok := value.Lookup(cfg, args[1], ":")
			if !ok {
				hint := cmp.Or(diag.DidYouMean(args[1], cfg.Names()), "its keys are "+strings.Join(cfg.Names(), ", "))
				return exit.WithCode(exit.Usage, diag.Usage.Hint(fmt.Errorf("the configuration of %s has no %s", args[0], args[1]),
					"%s", hint))
			}
			return p.printValue(v)
		},
	}
}

func (p *program) setConfigurationCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "set-configuration NAME KEY=VALUE...",
		Short: "Change a project's configuration for future deploys",
		Long: `set-configuration stores values that override those of the project's files. A KEY that is not a key of the
configuration is set below data; a:b sets b inside a. VALUE is YAML.

Every user of a host can read the arguments of a command. KEY=- reads a secret from standard input, and KEY=@FILE
from a file: the text as it is, without a line feed at its end. Values are not printed.`,
		Example: `  corpus-agent project set-configuration shop domain=www.example.com workers=4
  corpus-agent project set-configuration shop database:password=- <password.txt`,
		Args: cli.Args(cobra.MinimumNArgs(2)),
		RunE: func(c *cobra.Command, args []string) error {
			settings, err := procedure.ParseSettings(args[1:], procedure.InputOf(p.In))
			if err != nil {
				return exit.WithCode(exit.Usage, err)
			}
			var keys []string // values may be secrets
			for _, arg := range args[1:] {
				key, _, _ := strings.Cut(arg, "=")
				keys = append(keys, key)
			}
			return p.edit("set "+strings.Join(keys, ", ")+" for "+args[0], func(a *agent.Agent) error {
				return a.SetConfiguration(c.Context(), args[0], settings)
			})
		},
	}
}

func (p *program) switchModeCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "switchmode NAME dev|staging|prod|default",
		Short: "Change a project's environment",
		Long: `A dev environment can be edited, and does not archive or roll back by itself; staging and prod do, and prod
refuses unsigned releases. default derives the environment from the host's instance.`,
		Example: `  corpus-agent project switchmode shop dev`,
		Args:    cli.Args(cobra.ExactArgs(2)),
		RunE: func(c *cobra.Command, args []string) error {
			env := args[1]
			if env == "default" {
				env = ""
			}
			return p.edit(args[0]+" is "+args[1], func(a *agent.Agent) error { return a.SwitchMode(c.Context(), args[0], env) })
		},
	}
}

// receiveCommand returns the command that the hooks of repositories call.
func (p *program) receiveCommand() *cobra.Command {
	return &cobra.Command{
		Use:    "receive NAME project|pillar",
		Short:  "Deploy a pushed commit; called by the hooks of a project's repositories",
		Hidden: true,
		Args:   cli.Args(cobra.ExactArgs(2)),
		RunE: func(c *cobra.Command, args []string) error {
			if args[1] != "project" && args[1] != "pillar" {
				return exit.WithCode(exit.Usage, errors.New("a repository is project or pillar"))
			}
			return p.run(false, func(a *agent.Agent) (*report.Report, error) {
				return p.receive(c.Context(), a, args)
			})
		},
	}
}

func (p *program) receive(ctx context.Context, a *agent.Agent, args []string) (*report.Report, error) {
	r, err := a.Receive(ctx, args[0], args[1], p.In)
	if r == nil && err == nil {
		_, err = fmt.Fprintln(p.Out, "accepted without a deploy: this is not the deployed branch")
	}
	return r, err
}
