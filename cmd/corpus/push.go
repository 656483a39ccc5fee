package main

import (
	"cmp"
	"context"
	"fmt"
	"net"
	"net/netip"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/corpus-agent/corpus-agent/agent/exit"
	"github.com/corpus-agent/corpus-agent/agent/procedure/git"
	"github.com/corpus-agent/corpus-agent/artifact"
	"github.com/corpus-agent/corpus-agent/artifact/cloud"
	"github.com/corpus-agent/corpus-agent/cmd/cli"
	"github.com/corpus-agent/corpus-agent/state/diag"
)

// pushing has the arguments and flags of a push.
type pushing struct {
	name, project, branch, env string
	tree, pillar               string // working trees; pillar is empty for none
	force, initialise, guest   bool
}

func (p *program) pushCommand() *cobra.Command {
	k, push := &clouds{program: p}, pushing{}
	c := &cobra.Command{
		Use:   "push HOST PROJECT",
		Short: "Deploy the checked-out commit on a host or a guest, over ssh",
		Long: `push pushes the checked-out commit to the project's repository on a host with the agent. The host deploys it
and prints the progress. If the deploy fails, the push is refused. A pushed release is unsigned.

HOST is a destination of ssh; its account must be allowed to run the agent, such as root. With --init the host
is prepared for the project first. With --pillar the commit that is checked out there becomes the project's
pillar first.

With --cloud or --guest HOST is the name of a guest, and push goes to its port on its node, as root. Guests of prod
are refused: publish a release for them.`,
		Example: `  corpus push root@dev1 shop --init --env dev
  corpus push root@dev1 shop --force
  corpus push web1 shop --init --pillar ../shop-pillar --cloud dev`,
		Args: cli.Args(cobra.ExactArgs(2)),
		RunE: func(c *cobra.Command, args []string) error {
			push.name, push.project = args[0], args[1]
			push.guest = push.guest || c.Flags().Changed("cloud")
			return k.push(c.Context(), push)
		},
	}
	flags := c.Flags()
	flags.StringVar(&push.branch, "branch", "main", "branch that the host deploys")
	flags.StringVar(&push.tree, "tree", ".", "working tree to push from")
	flags.StringVar(&push.pillar, "pillar", "", "working tree of the pillar to push first")
	flags.StringVar(&push.env, "env", "", "with --init: dev, staging or prod; that of the guest by default")
	flags.BoolVar(&push.force, "force", false, "replace a different history on the host")
	flags.BoolVar(&push.initialise, "init", false, "prepare the host for the project first")
	flags.BoolVar(&push.guest, "guest", false, "HOST is the name of a guest of the cloud")
	k.flags(c)
	c.PersistentPreRunE = nil // only a guest is of a cloud
	return c
}

func (k *clouds) push(ctx context.Context, push pushing) error {
	for _, word := range []string{push.branch, push.env} {
		if err := artifact.CheckChannel(word); err != nil && word != "" {
			return exit.WithCode(exit.Usage, fmt.Errorf("the branch or environment: %w", err))
		}
	}
	host := git.Host{Name: push.name}
	if push.guest {
		var err error
		if host, push.env, err = k.guestHost(ctx, push); err != nil {
			return err
		}
	}
	if err := k.pushTo(ctx, host, push); err != nil {
		return err
	}
	return k.answer(map[string]string{"host": push.name, "project": push.project}, "pushed %s to %s", push.project,
		push.name)
}

// pushTo prepares a host if that was ordered, and pushes the pillar and the project.
func (k *clouds) pushTo(ctx context.Context, host git.Host, push pushing) error {
	if push.initialise {
		command := []string{"corpus-agent", "project", "init", push.project, "--git", "--branch", push.branch}
		if push.env != "" {
			command = append(command, "--env", push.env)
		}
		if err := host.Remote(ctx, command, k.Err); err != nil {
			return err
		}
	}
	repositories := "/srv/projects/" + push.project + "/git/"
	if push.pillar != "" {
		err := git.Push(ctx, push.pillar, host.URL(repositories+"pillar.git"), push.branch, push.force, k.Err)
		if err != nil {
			return err
		}
	}
	return git.Push(ctx, push.tree, host.URL(repositories+"project.git"), push.branch, push.force, k.Err)
}

// guestHost returns where ssh reaches a guest, and its environment unless another one was given.
func (k *clouds) guestHost(ctx context.Context, push pushing) (git.Host, string, error) {
	if err := k.choose(); err != nil {
		return git.Host{}, "", exit.WithCode(exit.Usage, err)
	}
	now, done, err := k.read(ctx)
	if err != nil {
		return git.Host{}, "", err
	}
	defer done()
	if err := hasGuest(now.data, push.name); err != nil {
		return git.Host{}, "", err
	}
	g := now.data.Guests[push.name]
	address := now.data.Nodes[g.Node].Address
	host := git.Host{Name: "root@" + address, Port: g.SSHPort}
	if address == "" && isHere(now.data.Nodes[g.Node]) {
		address = g.Address4
		host = git.Host{Name: "root@" + address}
	}
	return host, cmp.Or(push.env, g.Env), exit.WithCode(exit.Usage, push.refused(g, address))
}

// isHere reports whether this machine is a node: it has the node's address in the network of its guests.
func isHere(n cloud.Node) bool {
	network, err := netip.ParsePrefix(n.Range4)
	if err != nil {
		return false
	}
	own, err := net.InterfaceAddrs()
	return err == nil && slices.ContainsFunc(own, func(a net.Addr) bool {
		return strings.HasPrefix(a.String(), cloud.Bridge(network).String()+"/")
	})
}

// refused returns an error if nothing is pushed to a guest whose node has an address.
func (push pushing) refused(g cloud.Guest, address string) error {
	switch {
	case g.Env == "prod" || push.env == "prod":
		return diag.Cloud.Hint(fmt.Errorf("guest %s is of prod, where nothing unsigned is deployed", push.name),
			"publish a release: corpus publish %s VERSION FILE --channel prod", g.Project)
	case g.From != "":
		return diag.Cloud.Hint(fmt.Errorf("guest %s is moving from node %s to %s", push.name, g.From, g.Node),
			"finish the move: corpus guest move %s %s", push.name, g.Node)
	case address == "":
		return diag.Cloud.Hint(fmt.Errorf("node %s of guest %s has no address", g.Node, push.name),
			"push to a destination of ssh that leads to the guest: corpus push root@HOST %s", push.project)
	}
	return nil
}
