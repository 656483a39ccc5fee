package main

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/corpus-agent/corpus-agent/agent/exit"
	"github.com/corpus-agent/corpus-agent/agent/hostkey"
	"github.com/corpus-agent/corpus-agent/agent/members"
	"github.com/corpus-agent/corpus-agent/artifact/cloud"
	"github.com/corpus-agent/corpus-agent/artifact/trust"
	"github.com/corpus-agent/corpus-agent/cmd/cli"
	"github.com/corpus-agent/corpus-agent/state/diag"
)

// shownClass is a class in the output of a command.
type shownClass struct {
	Name string `json:"name"`
	cloud.Class
	AllNames []string `json:"all_names"` // that proxies forward to its members
	// The number of members that run by the last decision, and those of which a node holds the lease. Only info has them.
	Wanted  int              `json:"wanted,omitempty"`
	Members []members.Member `json:"members,omitempty"`
}

func (k *clouds) guestClass() *cobra.Command {
	c := &cobra.Command{
		Use:   "class",
		Short: "List and change classes of guests, of which as many run as are needed",
		Long: `A class is a set of equal guests without data, its members. Nodes run as many of them as a rule says, between a minimum and
a maximum, and take those of a node that is away.`,
	}
	c.AddCommand(k.classSet(), k.classList(), k.classInfo(), k.classRemove())
	return c
}

// classFlags adds the flags that set the fields of a class. Those with a default apply to a new class.
func classFlags(f *pflag.FlagSet, of *cloud.Class, keyFiles *[]string) {
	f.StringVar(&of.Project, "project", "", "service of its members: the project that they deploy")
	f.StringVar(&of.Env, "env", "", "their environment and instance: "+strings.Join(cloud.Modes(), ", "))
	f.StringVar(&of.Region, "region", "",
		"region of the nodes that may run them; by default the only one of the environment")
	f.StringVar(&of.Image, "image", "", "image that they are made from (corpus guest image)")
	f.IntVar(&of.Min, "min", 1, "least number of members that run")
	f.IntVar(&of.Max, "max", 1, "largest number of members that run")
	f.StringVar(&of.Metric, "metric", "", "metric that decides how many run; without one, --min and --max are equal")
	f.StringVar(&of.Answers, "answers", "", "port and path at which each member gives it, such as :8080/metrics")
	f.StringVar(&of.Above, "above", "", "more members run if the mean is above this number")
	f.StringVar(&of.Below, "below", "", "one less runs if the mean is below this number")
	f.StringVar(&of.For, "for", "", "how long the mean has to be there; "+cloud.DefaultFor+" by default")
	f.StringVar(&of.Drain, "drain", cloud.DefaultDrain, "how long a member runs after the decision to stop it")
	f.StringVar(&of.Away, "away", cloud.DefaultAway, "how long a node may be away before others run its members")
	f.StringVar(&of.Size, "size", cloud.DefaultSize, "size of the disk of a member")
	cli.RepeatedVar(f, &of.Names, "name", "", "name for which proxies lead to all members; may be repeated")
	cli.RepeatedVar(f, keyFiles, "ssh-key", "", "file of a public key that may log in as root; may be repeated")
}

// classFields returns the fields of a class by the names of their flags.
func classFields(of *cloud.Class) map[string]any {
	return map[string]any{"project": &of.Project, "env": &of.Env, "region": &of.Region, "image": &of.Image,
		"min": &of.Min, "max": &of.Max, "metric": &of.Metric, "answers": &of.Answers, "above": &of.Above,
		"below": &of.Below, "for": &of.For, "drain": &of.Drain, "away": &of.Away, "size": &of.Size, "name": &of.Names,
		"ssh-key": &of.SSHKeys}
}

func (k *clouds) classSet() *cobra.Command {
	given, keyFiles := cloud.Class{}, []string(nil)
	c := &cobra.Command{
		Use:   "set NAME",
		Short: "Make a class of guests, or change one",
		Long: `set enters a class into the cloud; of one that is there it changes what is given. The members are named NAME1, NAME2 and so on.
Their ports and addresses are chosen, for all of --max, so that no two guests ever have the same.

Nodes decide among themselves which members run where: each member is on one node, and a node that is away for --away loses
its members to others. If the mean of the metric is above --above for --for, more members run, and if it is below --below, one
less. A member that is to stop drains first: DNS and the proxy no longer lead to it.`,
		Example: `  corpus guest class set web --project shop --env prod --image bookworm --min 2 --max 6 \
    --metric http_requests_in_flight --answers :8080/metrics --above 50 --below 10 --name www.example.com
  corpus guest class set web --max 9 --cloud prod`,
		Args: cli.Args(cobra.ExactArgs(1)),
	}
	classFlags(c.Flags(), &given, &keyFiles)
	c.RunE = func(c *cobra.Command, args []string) error {
		keys, err := readSSHKeys(keyFiles)
		if err != nil {
			return exit.WithCode(exit.Usage, err)
		}
		given.SSHKeys = keys
		return k.edit(c.Context(), func(data *cloud.Cloud) error {
			return setClass(data, args[0], given, func(flag string) bool { return c.Flags().Changed(flag) })
		})
	}
	return k.editFlags(c)
}

// setClass makes a class, or changes the fields that are given of one that exists.
func setClass(data *cloud.Cloud, name string, given cloud.Class, changed func(flag string) bool) error {
	if err := cloud.CheckName(name); err != nil {
		return fmt.Errorf("the class's name: %w", err)
	}
	of, there := data.Classes[name]
	if !there {
		of = given
	}
	from, to := classFields(&given), classFields(&of)
	for flag := range from {
		if !changed(flag) {
			continue
		}
		if fixed := []string{"project", "env", "region"}; there && slices.Contains(fixed, flag) {
			return diag.Cloud.Hint(fmt.Errorf("--%s of a class that exists cannot be changed", flag), "make another class")
		}
		switch v := to[flag].(type) {
		case *string:
			*v = *from[flag].(*string)
		case *int:
			*v = *from[flag].(*int)
		case *[]string:
			*v = *from[flag].(*[]string)
		}
	}
	if of.Metric != "" {
		of.For = cmp.Or(of.For, cloud.DefaultFor)
	}
	if of.Region == "" {
		regions := map[string]bool{}
		for _, n := range data.Nodes {
			if n.Mode == of.Env {
				regions[n.Region] = true
			}
		}
		if len(regions) != 1 {
			return diag.Cloud.Hint(fmt.Errorf("nodes of mode %s are in %s", of.Env, diag.Count(len(regions), "region")),
				"give --region; corpus node ls lists nodes")
		}
		of.Region = sorted(regions)[0]
	}
	for flag, value := range map[string]string{"project": of.Project, "env": of.Env, "image": of.Image} {
		if value == "" {
			return diag.Cloud.Hint(fmt.Errorf("a new class has no --%s", flag), "give --project, --env and --image")
		}
	}
	data.Classes[name] = of
	return nil
}

func hasClass(c *cloud.Cloud, name string) error {
	if _, there := c.Classes[name]; there {
		return nil
	}
	return noSuchIn("guest class", name, sorted(c.Classes))
}

func (k *clouds) classRemove() *cobra.Command {
	return k.editFlags(&cobra.Command{
		Use: "rm NAME", Short: "Remove a class of guests",
		Long:    `rm removes a class from the cloud. Nodes stop its members at their next run, and remove their disks.`,
		Example: `  corpus guest class rm web --cloud prod`, Args: cli.Args(cobra.ExactArgs(1)),
		RunE: func(c *cobra.Command, args []string) error {
			return k.edit(c.Context(), func(data *cloud.Cloud) error {
				err := hasClass(data, args[0])
				delete(data.Classes, args[0])
				return err
			})
		},
	})
}

func classOf(c *cloud.Cloud, name string) shownClass {
	return shownClass{Name: name, Class: c.Classes[name], AllNames: append([]string{}, c.ClassNames(name)...)}
}

func (of shownClass) rule() string {
	if of.Metric == "" {
		return "none: always " + diag.Count(of.Min, "member")
	}
	return fmt.Sprintf("%s at %s above %s or below %s for %s", of.Metric, of.Answers, of.Above, of.Below, of.For)
}

func (k *clouds) classList() *cobra.Command {
	return &cobra.Command{
		Use: "ls", Short: "List classes of guests", Example: `  corpus guest class ls --cloud prod`,
		Args: cli.Args(cobra.NoArgs),
		RunE: func(c *cobra.Command, _ []string) error {
			now, done, err := k.read(c.Context())
			if err != nil {
				return err
			}
			defer done()
			all := []shownClass{}
			for _, name := range sorted(now.data.Classes) {
				all = append(all, classOf(now.data, name))
			}
			if k.json {
				return k.JSON(all)
			}
			w := tabwriter.NewWriter(k.Out, 0, 8, 2, ' ', 0)
			fmt.Fprintln(w, "CLASS\tPROJECT\tENV\tREGION\tMEMBERS\tRULE\tNAMES")
			for _, of := range all {
				fmt.Fprintf(w, "%s\t%s\t%s\t%s\t%d to %d\t%s\t%s\n", of.Name, of.Project, of.Env, of.Region, of.Min, of.Max,
					of.rule(), strings.Join(of.AllNames, " "))
			}
			return w.Flush()
		},
	}
}

func (k *clouds) classInfo() *cobra.Command {
	return &cobra.Command{
		Use: "info NAME", Short: "Show a class of guests, and which nodes run its members",
		Example: `  corpus guest class info web --cloud prod`, Args: cli.Args(cobra.ExactArgs(1)),
		RunE: func(c *cobra.Command, args []string) error {
			now, done, err := k.read(c.Context())
			if err != nil {
				return err
			}
			defer done()
			if err := hasClass(now.data, args[0]); err != nil {
				return exit.WithCode(exit.Usage, err)
			}
			return k.showClass(c.Context(), now.data, args[0])
		},
	}
}

func (k *clouds) showClass(ctx context.Context, data *cloud.Cloud, name string) error {
	s, err := k.openStore()
	if err != nil {
		return err
	}
	look := members.Node{Store: s, Channel: k.channel, Cloud: data, Memory: members.NewMemory(), Now: time.Now()}
	look.First = func(ctx context.Context, host string) (hostkey.Public, error) {
		return look.Memory.FirstOf(host, look.Now, func() (hostkey.Public, error) { return hostkey.FirstOf(ctx, s, host) })
	}
	of := classOf(data, name)
	if of.Wanted, of.Members, err = look.Class(ctx, name); err != nil {
		return fmt.Errorf("reading the leases of the class: %w", err)
	}
	text := fmt.Sprintf("class:   %s\nproject: %s\nenv:     %s\nregion:  %s\nimage:   %s\nmembers: %d of %d to %d\n"+
		"rule:    %s\ndrain:   %s\naway:    %s\nsize:    %s\nnames:   %s\nkeys:    %d",
		name, of.Project, of.Env, of.Region, of.Image, of.Wanted, of.Min, of.Max, of.rule(), of.Drain, of.Away, of.Size,
		strings.Join(of.AllNames, " "), len(of.SSHKeys))
	for _, one := range of.Members {
		text += fmt.Sprintf("\n  %s on %s, %s", one.Name, trust.Printable(one.Node), one.Address4)
		if one.Value != nil {
			text += fmt.Sprintf(", %s %.4g", of.Metric, *one.Value)
		}
		if one.Drain != nil {
			text += ", drains since " + diag.Stamp(*one.Drain)
		}
	}
	return k.answer(of, "%s", text)
}
