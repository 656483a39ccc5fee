package main

import (
	"context"
	"encoding/pem"
	"fmt"
	"maps"
	"slices"
	"strings"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"github.com/corpus-agent/corpus-agent/agent/exit"
	"github.com/corpus-agent/corpus-agent/artifact/cloud"
	"github.com/corpus-agent/corpus-agent/artifact/walk"
	"github.com/corpus-agent/corpus-agent/cmd/cli"
	"github.com/corpus-agent/corpus-agent/state/diag"
)

// shownGuest is a guest in the output of a command.
type shownGuest struct {
	Name string `json:"name"`
	Host string `json:"host"` // its hostname
	SSH  string `json:"ssh"`  // the command that logs in; empty if its node has no address
	cloud.Guest
	AllNames []string `json:"all_names"` // that the proxy forwards to the guest
	Health   *health  `json:"health,omitempty"`
}

func sorted[V any](m map[string]V) []string { return slices.Sorted(maps.Keys(m)) }

func guestOf(c *cloud.Cloud, name string) shownGuest {
	return shownGuest{Name: name, Host: c.Hostname(name), SSH: c.SSH(name), Guest: c.Guests[name],
		AllNames: append([]string{}, c.AllNames(name)...)}
}

func (p *program) guestCommand() *cobra.Command {
	k := &clouds{program: p}
	c := &cobra.Command{
		Use:   "guest",
		Short: "List and change the guests of a cloud",
		Long: `A guest is a host that a node runs: it has a hostname, the agent, and deploys its project by itself. These commands
change the signed project cloud as those of corpus node do, and nodes follow.`,
		Example: `  corpus guest ls --store s3://bucket/prefix --trust-root keys/root.json
  corpus guest create web1 --project shop --env prod --image bookworm --store s3://bucket/prefix --keys keys`,
	}
	k.flags(c)
	c.AddCommand(k.guestCreate(), k.guestList(), k.guestInfo(), k.guestDelete(), k.guestEnlarge(), k.guestTrim(),
		k.guestName(),
		k.guestKey(), k.guestImage(), k.guestMove(), k.guestDrop(), k.guestBackup(), k.guestClass())
	return c
}

func (k *clouds) guestCreate() *cobra.Command {
	g, keyFiles, stateless := cloud.Guest{}, []string(nil), false
	c := &cobra.Command{
		Use:   "create NAME --project PROJECT --env ENV --image IMAGE",
		Short: "Create a guest on a node",
		Long: `create enters a guest into the cloud. Its machine ID, its addresses and the node's port for SSH are chosen, and no other
guest has them. Without --node it is placed on the node of its environment with the most free slots.

The first run of the node after that makes the guest. When its SSH answers, the node sends the notice "guest" to the receivers of
its notify settings, and a mail to --contact, with the guest's names and the command that logs in.`,
		Example: `  corpus guest create web1 --project shop --env prod --image bookworm --ssh-key id_ed25519.pub --cloud prod
  corpus guest create db1 --project shop --env prod --image bookworm --contact ann@example.com --cloud prod`,
		Args: cli.Args(cobra.ExactArgs(1)),
		RunE: func(c *cobra.Command, args []string) error {
			keys, err := readSSHKeys(keyFiles)
			if err != nil {
				return exit.WithCode(exit.Usage, err)
			}
			if g.SSHKeys = keys; stateless {
				g.Stateless = cloud.Yes
			}
			return k.edit(c.Context(), func(data *cloud.Cloud) error { return createGuest(data, args[0], g) })
		},
	}
	f := c.Flags()
	f.StringVar(&g.Project, "project", "", "its service: the project that it deploys")
	f.StringVar(&g.Env, "env", "", "its environment and instance: "+strings.Join(cloud.Modes(), ", "))
	f.StringVar(&g.Image, "image", "", "image that it is made from (corpus guest image)")
	f.StringVar(&g.Node, "node", "", "node that runs it; chosen by default")
	f.StringVar(&g.Size, "size", cloud.DefaultSize, "size of its disk")
	cli.RepeatedVar(f, &g.Names, "name", "", "name for which the node's proxy leads to it; may be repeated")
	cli.RepeatedVar(f, &keyFiles, "ssh-key", "", "file of a public key that may log in as root; may be repeated")
	f.StringVar(&g.Contact, "contact", "", "mail address that its node notifies when it is ready (docs/notify.md)")
	f.BoolVar(&stateless, "stateless", false,
		"its disk has no data: a new one from the image replaces it on another node")
	for _, name := range []string{"project", "env", "image"} {
		_ = c.MarkFlagRequired(name)
	}
	return k.editFlags(c)
}

func createGuest(data *cloud.Cloud, name string, g cloud.Guest) error {
	if _, there := data.Guests[name]; there {
		return diag.Cloud.Hint(fmt.Errorf("there is a guest %s already", name), "corpus guest info %s shows it", name)
	}
	if err := cloud.CheckName(name); err != nil {
		return fmt.Errorf("the guest's name: %w", err)
	}
	if !slices.Contains(cloud.Modes(), g.Env) {
		return diag.Cloud.Hint(fmt.Errorf("there is no environment %s", g.Env), "give --env one of %s",
			strings.Join(cloud.Modes(), ", "))
	}
	if g.Node == "" {
		if g.Node = data.Place(g.Env); g.Node == "" {
			return diag.Cloud.Hint(fmt.Errorf("no node of mode %s has a free slot", g.Env),
				"corpus node ls lists nodes and their modes")
		}
	}
	if data.Nodes[g.Node].Closed == cloud.Yes {
		return diag.Cloud.Hint(fmt.Errorf("node %s takes no more guests, since it was evacuated", g.Node),
			"corpus node open %s", g.Node)
	}
	data.Guests[name] = g
	return nil
}

func readSSHKeys(files []string) (keys []string, err error) {
	for _, file := range files {
		data, err := walk.ReadGiven(file)
		if err != nil {
			return nil, fmt.Errorf("reading a public key: %w", err)
		}
		if block, _ := pem.Decode(data); block != nil {
			return nil, diag.Cloud.Hint(fmt.Errorf("%s is a %s, and not a public key of SSH", file,
				strings.ToLower(block.Type)), "give the file beside it that ends in .pub")
		}
		for line := range strings.Lines(string(data)) {
			line = strings.TrimSpace(line)
			if line == "" || strings.HasPrefix(line, "#") {
				continue
			}
			if err := cloud.CheckSSHKey(line); err != nil {
				return nil, fmt.Errorf("%s: %w", file, err)
			}
			keys = append(keys, line)
		}
	}
	return keys, nil
}

func (k *clouds) guestList() *cobra.Command {
	node := ""
	c := &cobra.Command{
		Use: "ls", Short: "List guests with their addresses and ports",
		Example: `  corpus guest ls --node n1 --cloud prod`, Args: cli.Args(cobra.NoArgs),
		RunE: func(c *cobra.Command, _ []string) error { return k.listGuests(c.Context(), node) },
	}
	c.Flags().StringVar(&node, "node", "", "only guests of this node")
	return c
}

func (k *clouds) listGuests(ctx context.Context, node string) error {
	now, done, err := k.read(ctx)
	if err != nil {
		return err
	}
	defer done()
	names := sorted(now.data.Guests)
	if node != "" {
		if err := hasNode(now.data, node); err != nil {
			return err
		}
		names = now.data.On(node)
	}
	if !k.json {
		return k.printGuests(now.data, names)
	}
	all := []shownGuest{}
	for _, name := range names {
		all = append(all, guestOf(now.data, name))
	}
	return k.JSON(all)
}

func (k *clouds) printGuests(c *cloud.Cloud, names []string) error {
	w := tabwriter.NewWriter(k.Out, 0, 8, 2, ' ', 0)
	fmt.Fprintln(w, "GUEST\tNODE\tPROJECT\tENV\tADDRESSES\tSSH\tSIZE\tNAMES")
	for _, name := range names {
		g := c.Guests[name]
		fmt.Fprintf(w, "%s\t%s\t%s\t%s\t%s %s\t%d\t%s\t%s\n", name, g.Node, g.Project, g.Env, g.Address4, g.Address6,
			g.SSHPort, g.Size, strings.Join(c.AllNames(name), " "))
	}
	return w.Flush()
}

func (k *clouds) guestInfo() *cobra.Command {
	return &cobra.Command{
		Use: "info NAME", Short: "Show a guest",
		Example: `  corpus guest info web1 --cloud prod`, Args: cli.Args(cobra.ExactArgs(1)),
		RunE: func(c *cobra.Command, args []string) error {
			now, done, err := k.read(c.Context())
			if err != nil {
				return err
			}
			defer done()
			if err := hasGuest(now.data, args[0]); err != nil {
				return err
			}
			return k.showGuest(c.Context(), now.data, args[0])
		},
	}
}

func (k *clouds) showGuest(ctx context.Context, c *cloud.Cloud, name string) error {
	g := guestOf(c, name)
	reported, err := k.healthOf(ctx, c, name)
	if err != nil {
		return fmt.Errorf("reading what %s reports: %w", g.Host, err)
	}
	g.Health = &reported
	node := g.Node
	if g.From != "" {
		node += ", when node " + g.From + " has stopped it"
	}
	data := "data"
	if g.Stateless == cloud.Yes {
		data = "no data"
	}
	text := fmt.Sprintf("guest:     %s\nhostname:  %s\nid:        %s\nnode:      %s\nproject:   %s\nenv:       %s\n"+
		"image:     %s\naddresses: %s %s\nssh:       %s\nsize:      %s, %s\nnames:     %s\nkeys:      %d\nhealth:    %s",
		g.Name, g.Host, g.ID, node, g.Project, g.Env, g.Image, g.Address4, g.Address6, g.SSH, g.Size, data,
		strings.Join(g.AllNames, " "), len(g.SSHKeys), reported)
	if g.Contact != "" {
		text += "\ncontact:   " + g.Contact
	}
	if len(g.Old) > 0 {
		text += "\nold disks: " + strings.Join(g.Old, " ")
	}
	return k.answer(g, "%s", text)
}

func hasGuest(c *cloud.Cloud, name string) error {
	if _, there := c.Guests[name]; there {
		return nil
	}
	return noSuchIn("guest", name, sorted(c.Guests))
}
