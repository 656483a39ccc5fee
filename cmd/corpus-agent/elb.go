package main

import (
	"context"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/corpus-agent/corpus-agent/agent/elb"
	"github.com/corpus-agent/corpus-agent/agent/exit"
	"github.com/corpus-agent/corpus-agent/cmd/cli"
	"github.com/corpus-agent/corpus-agent/grains"
	"github.com/corpus-agent/corpus-agent/grains/ec2"
)

func (p *program) elbCommand() *cobra.Command {
	c := &cobra.Command{Use: "elb", Short: "Take this host into its load balancers, or out of them"}
	c.AddCommand(
		p.balanceCommand("register", "Take this host into its load balancers", "in", (*elb.Client).Register),
		p.balanceCommand("deregister", "Take this host out of its load balancers", "out of", (*elb.Client).Deregister))
	return c
}

// balancing are the flags of a command.
type balancing struct {
	elb.Balancers
	wait             time.Duration
	region, instance string
}

func (p *program) balanceCommand(name, short, where string, do func(*elb.Client, context.Context, elb.Balancers,
	time.Duration) error) *cobra.Command {
	var b balancing
	c := &cobra.Command{
		Use:   name,
		Short: short,
		Long: short + `. They are those that elb.names and elb.target_groups in agent.yaml name, or
the flags; by default the classic load balancer that is named like this host's cluster, such as
myapp-testing-useast1. Region and instance are asked of EC2, and credentials are those of the AWS SDK.`,
		Example: "  corpus-agent deploy && corpus-agent elb " + name + "\n  corpus-agent elb " + name + " --wait 5m",
		Args:    cli.Args(cobra.NoArgs),
		RunE: func(c *cobra.Command, _ []string) error {
			if err := p.complete(c.Context(), &b); err != nil {
				return err
			}
			client, err := elb.Open(c.Context(), b.region, b.instance)
			if err != nil {
				return err
			}
			if err := do(client, c.Context(), b.Balancers, b.wait); err != nil {
				return err
			}
			all := append(append([]string{}, b.Names...), b.TargetGroups...)
			return p.answer(map[string]any{"instance": b.instance, "balancers": all},
				b.instance+" is "+where+" "+strings.Join(all, ", "))
		},
	}
	flags := c.Flags()
	cli.RepeatedVar(flags, &b.Names, "name", "", "classic load balancer; may be given again")
	cli.RepeatedVar(flags, &b.TargetGroups, "target-group", "", "ARN of a target group; may be given again")
	flags.DurationVar(&b.wait, "wait", 0, "wait this long for the load balancers to agree")
	flags.StringVar(&b.region, "region", "", "region, such as us-east-1")
	flags.StringVar(&b.instance, "instance-id", "", "instance, such as i-0123456789abcdef0")
	return c
}

// complete fills in what was not given.
func (p *program) complete(ctx context.Context, b *balancing) error {
	a, err := p.agent(map[string]string{})
	if err != nil {
		return err
	}
	if len(b.Names)+len(b.TargetGroups) == 0 {
		b.Names, b.TargetGroups = a.Config.ELB.Names, a.Config.ELB.TargetGroups
	}
	if len(b.Names)+len(b.TargetGroups) == 0 {
		s, err := a.Status()
		if err != nil {
			return err
		}
		id, err := a.Identify(ctx, grains.Identity{}, s.Host)
		if err != nil {
			return err
		}
		b.Names = []string{id.Cluster()}
	}
	if b.region != "" && b.instance != "" {
		return nil
	}
	region, instance, err := ec2.New(ec2.Options{AllowV1: a.Config.MetadataV1}).Instance(ctx)
	if err != nil {
		return exit.WithCode(exit.Usage, err)
	}
	if b.region == "" {
		b.region = region
	}
	if b.instance == "" {
		b.instance = instance
	}
	return nil
}
