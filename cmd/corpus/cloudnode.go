package main

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"github.com/corpus-agent/corpus-agent/agent/exit"
	"github.com/corpus-agent/corpus-agent/artifact/cloud"
	"github.com/corpus-agent/corpus-agent/cmd/cli"
	"github.com/corpus-agent/corpus-agent/state/diag"
)

// shownNode is a node in the output of a command.
type shownNode struct {
	Name string `json:"name"`
	Host string `json:"host"` // its hostname without a domain
	cloud.Node
	Guests []string `json:"guests"`
	Free   int      `json:"free"` // slots
}

func (p *program) nodeCommand() *cobra.Command {
	k := &clouds{program: p}
	c := &cobra.Command{
		Use:   "node",
		Short: "List and change the nodes of a cloud, which run guests",
		Long: `A cloud is the signed project cloud: its nodes, guests and images are one file of its releases. The commands that
change it show the change, ask for a confirmation, and publish it as the next version; corpus ls, diff and point show
its versions and go back to an earlier one, as for any project. docs/cloud.md describes clouds.`,
		Example: `  corpus node ls --store s3://bucket/prefix --trust-root keys/root.json
  corpus node add n1 --mode prod --region eu1 --address 192.0.2.1 --store s3://bucket/prefix --keys keys`,
	}
	k.flags(c)
	c.AddCommand(k.nodeList(), k.nodeAdd(), k.nodeInfo(), k.nodeMode(), k.nodeSet(), k.nodeRemove(), k.nodeDomain(),
		k.nodeEvacuate(), k.nodeOpen(), k.nodeInit())
	return c
}

func (k *clouds) nodeList() *cobra.Command {
	return &cobra.Command{
		Use: "ls", Short: "List the nodes with their free slots",
		Example: `  corpus node ls --cloud prod`, Args: cli.Args(cobra.NoArgs),
		RunE: func(c *cobra.Command, _ []string) error { return k.listNodes(c.Context()) },
	}
}

func (k *clouds) listNodes(ctx context.Context) error {
	now, done, err := k.read(ctx)
	if err != nil {
		return err
	}
	defer done()
	all := []shownNode{}
	for _, name := range sorted(now.data.Nodes) {
		all = append(all, k.shown(now.data, name))
	}
	if k.json {
		return k.JSON(all)
	}
	w := tabwriter.NewWriter(k.Out, 0, 8, 2, ' ', 0)
	fmt.Fprintln(w, "NODE\tMODE\tADDRESS\tDRIVER\tGUESTS\tFREE\tNETWORKS")
	for _, n := range all {
		fmt.Fprintf(w, "%s\t%s\t%s\t%s\t%d\t%d\t%s %s\n", n.Name, n.Mode, n.Address, n.Driver, len(n.Guests), n.Free,
			n.Range4, n.Range6+closed(n.Node))
	}
	return w.Flush()
}

// closed says that a node gets no guests; "" if it does.
func closed(n cloud.Node) string {
	if n.Closed == cloud.Yes {
		return " (evacuated; corpus node open lets it get guests again)"
	}
	return ""
}

func (k *clouds) shown(c *cloud.Cloud, name string) shownNode {
	return shownNode{Name: name, Host: c.NodeHostname(name, k.channel), Node: c.Nodes[name],
		Guests: append([]string{}, c.On(name)...), Free: c.Free(name)}
}

func (k *clouds) nodeAdd() *cobra.Command {
	n := cloud.Node{}
	c := &cobra.Command{
		Use:   "add NAME --mode MODE --region REGION",
		Short: "Add a host as a node",
		Long: `add enters a node into the cloud. The host needs the hostname cloud-CHANNEL-REGION-NAME and the agent, and converges by
itself. Networks of guests that are not given are chosen, and no other node has them.`,
		Example: `  corpus node add n1 --mode prod --region eu1 --address 192.0.2.1 --cloud prod`,
		Args:    cli.Args(cobra.ExactArgs(1)),
		RunE: func(c *cobra.Command, args []string) error {
			return k.edit(c.Context(), func(data *cloud.Cloud) error {
				if _, there := data.Nodes[args[0]]; there {
					return diag.Cloud.Hint(fmt.Errorf("there is a node %s already", args[0]), "corpus node info %s shows it", args[0])
				}
				data.Nodes[args[0]] = n
				return cloud.CheckName(args[0])
			})
		},
	}
	f := c.Flags()
	f.StringVar(&n.Mode, "mode", "", "environment of its guests: "+strings.Join(cloud.Modes(), ", "))
	f.StringVar(&n.Region, "region", "", "region of its hostname, such as eu1")
	f.StringVar(&n.Address, "address", "", "address at which other hosts reach it")
	f.StringVar(&n.Range4, "range4", "", "IPv4 network of its guests; chosen by default")
	f.StringVar(&n.Range6, "range6", "", "IPv6 network of its guests; chosen by default")
	f.StringVar(&n.Driver, "driver", cloud.DefaultDriver, "what runs its guests: "+strings.Join(cloud.Drivers(), ", "))
	f.IntVar(&n.Slots, "slots", cloud.DefaultSlots, "the most guests that it runs")
	_ = c.MarkFlagRequired("mode")
	_ = c.MarkFlagRequired("region")
	return k.editFlags(c)
}

func (k *clouds) nodeInfo() *cobra.Command {
	return &cobra.Command{
		Use: "info NAME", Short: "Show a node and its guests",
		Example: `  corpus node info n1 --cloud prod`, Args: cli.Args(cobra.ExactArgs(1)),
		RunE: func(c *cobra.Command, args []string) error { return k.showNode(c.Context(), args[0]) },
	}
}

func (k *clouds) showNode(ctx context.Context, name string) error {
	now, done, err := k.read(ctx)
	if err != nil {
		return err
	}
	defer done()
	if err := hasNode(now.data, name); err != nil {
		return err
	}
	n := k.shown(now.data, name)
	if k.json {
		return k.JSON(withGuests(now.data, n))
	}
	fmt.Fprintf(k.Out, "node:     %s\nhostname: %s\nmode:     %s\naddress:  %s\ndriver:   %s\nnetworks: %s %s\n"+
		"slots:    %d, %d free%s\n",
		n.Name, n.Host, n.Mode, n.Address, n.Driver, n.Range4, n.Range6, n.Slots, n.Free, closed(n.Node))
	return k.printGuests(now.data, n.Guests)
}

// nodeWithGuests is a node with what is known of its guests.
type nodeWithGuests struct {
	shownNode
	Guests []shownGuest `json:"guests"`
}

func withGuests(c *cloud.Cloud, n shownNode) nodeWithGuests {
	all := nodeWithGuests{n, []shownGuest{}}
	for _, guest := range n.Guests {
		all.Guests = append(all.Guests, guestOf(c, guest))
	}
	return all
}

func hasNode(c *cloud.Cloud, name string) error {
	if _, there := c.Nodes[name]; there {
		return nil
	}
	return noSuchIn("node", name, sorted(c.Nodes))
}

func noSuchIn(what, name string, known []string) error {
	hint := cmp.Or(diag.DidYouMean(name, known), "corpus "+what+" ls lists them")
	return exit.WithCode(exit.Usage, diag.Cloud.Hint(fmt.Errorf("there is no %s %s", what, name), "%s", hint))
}

func (k *clouds) nodeMode() *cobra.Command {
	return k.editFlags(&cobra.Command{
		Use: "mode NAME MODE", Short: "Change the environment of a node's guests",
		Long: `mode changes which new guests are placed on a node: those of the environment dev, staging or prod. Guests that it has
stay unchanged.`,
		Example: `  corpus node mode n1 staging --cloud prod`, Args: cli.Args(cobra.ExactArgs(2)),
		RunE: func(c *cobra.Command, args []string) error {
			return k.edit(c.Context(), func(data *cloud.Cloud) error {
				if !slices.Contains(cloud.Modes(), args[1]) {
					return diag.Cloud.Hint(fmt.Errorf("there is no mode %s", args[1]), "modes are %s", strings.Join(cloud.Modes(),
						", "))
				}
				if err := hasNode(data, args[0]); err != nil {
					return err
				}
				n := data.Nodes[args[0]]
				n.Mode = args[1]
				data.Nodes[args[0]] = n
				return nil
			})
		},
	})
}

func (k *clouds) nodeSet() *cobra.Command {
	slots, address := 0, ""
	c := &cobra.Command{
		Use: "set NAME [--slots N] [--address ADDRESS]", Short: "Change the slots or the address of a node",
		Example: `  corpus node set n1 --slots 40 --cloud prod`, Args: cli.Args(cobra.ExactArgs(1)),
	}
	f := c.Flags()
	f.IntVar(&slots, "slots", 0, "the most guests that it runs")
	f.StringVar(&address, "address", "", "address at which other hosts reach it")
	c.MarkFlagsOneRequired("slots", "address")
	c.RunE = func(c *cobra.Command, args []string) error {
		return k.edit(c.Context(), func(data *cloud.Cloud) error {
			if err := hasNode(data, args[0]); err != nil {
				return err
			}
			n := data.Nodes[args[0]]
			if f.Changed("slots") {
				n.Slots = slots
			}
			if f.Changed("address") {
				n.Address = address
			}
			data.Nodes[args[0]] = n
			return nil
		})
	}
	return k.editFlags(c)
}

func (k *clouds) nodeRemove() *cobra.Command {
	return k.editFlags(&cobra.Command{
		Use: "rm NAME", Short: "Remove a node without guests",
		Example: `  corpus node rm n1 --cloud prod`, Args: cli.Args(cobra.ExactArgs(1)),
		RunE: func(c *cobra.Command, args []string) error {
			return k.edit(c.Context(), func(data *cloud.Cloud) error {
				if err := hasNode(data, args[0]); err != nil {
					return err
				}
				if on := data.On(args[0]); len(on) > 0 {
					return diag.Cloud.Hint(fmt.Errorf("node %s has guests: %s", args[0], strings.Join(on, ", ")),
						"delete them first: corpus guest delete NAME; or move them: corpus guest move NAME NODE")
				}
				if kept := data.KeptOn(args[0]); len(kept) > 0 {
					return diag.Cloud.Hint(fmt.Errorf("node %s has disks of guests that moved away: %s", args[0],
						strings.Join(kept, ", ")), "remove them first: corpus guest drop NAME %s", args[0])
				}
				delete(data.Nodes, args[0])
				return nil
			})
		},
	})
}

func (k *clouds) nodeDomain() *cobra.Command {
	return k.editFlags(&cobra.Command{
		Use: "domain DOMAIN", Short: "Set the domain in which each guest has a name",
		Example: `  corpus node domain cloud.example.com --cloud prod`, Args: cli.Args(cobra.ExactArgs(1)),
		RunE: func(c *cobra.Command, args []string) error {
			return k.edit(c.Context(), func(data *cloud.Cloud) error {
				data.Domain = args[0]
				return cloud.CheckDomain(args[0])
			})
		},
	})
}
