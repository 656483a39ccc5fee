package main

import (
	"context"
	"time"

	"github.com/spf13/cobra"

	"github.com/corpus-agent/corpus-agent/agent/config"
	"github.com/corpus-agent/corpus-agent/agent/elb"
	"github.com/corpus-agent/corpus-agent/agent/exit"
	"github.com/corpus-agent/corpus-agent/cmd/cli"
	"github.com/corpus-agent/corpus-agent/grains"
	"github.com/corpus-agent/corpus-agent/grains/ec2"
)

func (p *program) elbCommand() *cobra.Command {
	c := &cobra.Command{Use: "elb", Short: "Register this host with its load balancers, or deregister it"}
	c.AddCommand(
		p.balanceCommand("register", "Register this host with its load balancers", "registered with", (*elb.Client).Register),
		p.balanceCommand("deregister", "Deregister this host from its load balancers", "deregistered from",
			(*elb.Client).Deregister))
	return c
}

// balancing has the flags of a command.
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
		Long: short + `. The load balancers are those of elb.names and elb.target_groups in agent.yaml, or of
the flags; by default the classic load balancer with the name of this host's cluster, such as myapp-testing-useast1.
Region and instance come from EC2, and credentials are those of the AWS SDK.`,
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
			return p.answer(map[string]any{"instance": b.instance, "balancers": b.All()},
				b.instance+" is "+where+" "+b.String())
		},
	}
	flags := c.Flags()
	cli.RepeatedVar(flags, &b.Names, "name", "", "classic load balancer; may be repeated")
	cli.RepeatedVar(flags, &b.TargetGroups, "target-group", "", "ARN of a target group; may be repeated")
	flags.DurationVar(&b.wait, "wait", 0, "wait up to this long until the load balancers report the new state")
	flags.StringVar(&b.region, "region", "", "region, such as us-east-1")
	flags.StringVar(&b.instance, "instance-id", "", "instance, such as i-0123456789abcdef0")
	return c
}

// complete sets the load balancers, the region and the instance that were not given.
func (p *program) complete(ctx context.Context, b *balancing) error {
	a, err := p.agent(map[string]string{})
	if err != nil {
		return err
	}
	if b.Empty() {
		b.Names, b.TargetGroups = a.Config.ELB.Names, a.Config.ELB.TargetGroups
	}
	if b.Empty() {
		s, err := a.Status()
		if err != nil {
			return err
		}
		id, err := a.Identify(ctx, grains.Identity{}, s.Host)
		if err != nil {
			return err
		}
		b.Balancers = b.OrNamed(id.Cluster())
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

// balancersOf opens the load balancers of the instance that a deploy runs on.
func balancersOf(settings config.Config) func(context.Context) (*elb.Client, error) {
	return func(ctx context.Context) (*elb.Client, error) {
		region, instance, err := ec2.New(ec2.Options{AllowV1: settings.MetadataV1}).Instance(ctx)
		if err != nil {
			return nil, err
		}
		return elb.Open(ctx, region, instance)
	}
}
