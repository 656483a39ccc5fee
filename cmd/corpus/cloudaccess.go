package main

import (
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

func (p *program) accessCommand() *cobra.Command {
	k := &clouds{program: p}
	c := &cobra.Command{
		Use:   "access",
		Short: "List and change who may log in to hosts of projects",
		Long: `Users, their SSH keys, the projects to whose hosts they log in, and what they may run there as root are data of the
signed project cloud. These commands change it as those of corpus node do. The node that runs the LDAP server of the base tree
makes accounts, groups and sudo rules of it, which hosts use (docs/base.md). No password is in this data.`,
		Example: `  corpus access ls --store s3://bucket/prefix --trust-root keys/root.json
  corpus access grant alice shop --ssh-key alice.pub --store s3://bucket/prefix --keys keys`,
	}
	k.flags(c)
	c.AddCommand(k.accessGrant(), k.accessRevoke(), k.accessList())
	return c
}

// granting is an access as it was ordered.
type granting struct {
	user, project, name      string
	keyFiles, keys, commands []string
	withoutSudo              bool
}

func (k *clouds) accessGrant() *cobra.Command {
	g := granting{}
	c := &cobra.Command{
		Use:   "grant USER PROJECT",
		Short: "Let a user log in to the hosts of a project",
		Long: `grant makes a user a member of a project. A user or project that the cloud does not have is added, with a number that no
other one has or had; a new user needs --ssh-key. Keys that are given replace those that the user has, and commands of --sudo those
that the user has in this project. Rules of sudo ask for no password, since such a user has none.`,
		Example: `  corpus access grant alice shop --ssh-key alice.pub --name "Alice Ash" --cloud prod
  corpus access grant alice shop --sudo "/usr/bin/systemctl restart nginx" --cloud prod
  corpus access grant alice blog --sudo ALL --cloud prod`,
		Args: cli.Args(cobra.ExactArgs(2)),
		RunE: func(c *cobra.Command, args []string) (err error) {
			g.user, g.project = args[0], args[1]
			if g.keys, err = readSSHKeys(g.keyFiles); err != nil {
				return exit.WithCode(exit.Usage, err)
			}
			return k.edit(c.Context(), g.apply)
		},
	}
	g.flags(c)
	return k.editFlags(c)
}

func (g *granting) flags(c *cobra.Command) {
	f := c.Flags()
	f.StringVar(&g.name, "name", "", "name of the person")
	cli.RepeatedVar(f, &g.keyFiles, "ssh-key", "", "file of a public key with which the user logs in; may be repeated")
	cli.RepeatedVar(f, &g.commands, "sudo", "",
		"command that the user may run as root on hosts of the project, ALL for any; may be repeated")
	f.BoolVar(&g.withoutSudo, "no-sudo", false, "remove the commands that the user may run as root")
	c.MarkFlagsMutuallyExclusive("sudo", "no-sudo")
}

// valid returns an error for names and commands that are not allowed.
func (g granting) valid() error {
	if err := cloud.CheckUser(g.user); err != nil {
		return fmt.Errorf("the user's name: %w", err)
	}
	if err := cloud.CheckAccess(g.project); err != nil {
		return fmt.Errorf("the project's name: %w", err)
	}
	for _, command := range g.commands {
		if err := cloud.CheckCommand(command); err != nil {
			return fmt.Errorf("--sudo: %w", err)
		}
	}
	return nil
}

// apply enters an access into a cloud.
func (g granting) apply(data *cloud.Cloud) error {
	if err := g.valid(); err != nil {
		return err
	}
	u, known := data.Users[g.user]
	if (!known || u.Closed == cloud.Yes) && len(g.keys) == 0 {
		return diag.Cloud.Hint(fmt.Errorf("%s is a new user", g.user),
			"give --ssh-key with a public key of the user; corpus access ls lists the users")
	}
	u.Closed = ""
	if len(g.keys) > 0 {
		u.SSHKeys = g.keys
	}
	if g.name != "" {
		u.Name = g.name
	}
	a := data.Projects[g.project]
	if !slices.Contains(a.Members, g.user) {
		a.Members = append(slices.Clone(a.Members), g.user)
	}
	if len(g.commands) > 0 || g.withoutSudo {
		a.SetCommands(g.user, g.commands)
	}
	data.Users[g.user], data.Projects[g.project] = u, a
	return nil
}

func (k *clouds) accessRevoke() *cobra.Command {
	return k.editFlags(&cobra.Command{
		Use:   "revoke USER [PROJECT]",
		Short: "End the access of a user to the hosts of a project, or of all",
		Long: `revoke removes a user from a project, with the rules of sudo there. Without a project it removes the user from all of
them, and removes the keys and the account; the number of the user stays reserved, so that files of the user get no other owner.
Sessions that are open continue.`,
		Example: `  corpus access revoke alice shop --cloud prod
  corpus access revoke alice --cloud prod`,
		Args: cli.Args(cobra.RangeArgs(1, 2)),
		RunE: func(c *cobra.Command, args []string) error {
			return k.edit(c.Context(), func(data *cloud.Cloud) error { return revoke(data, args[0], args[1:]) })
		},
	})
}

// revoke removes a user from the projects that are given, or from all.
func revoke(data *cloud.Cloud, user string, projects []string) error {
	u, known := data.Users[user]
	if !known {
		return noSuchUser(data, user)
	}
	for _, project := range projects {
		if !slices.Contains(data.Projects[project].Members, user) {
			return diag.Cloud.Hint(fmt.Errorf("%s has no access to %s", user, project),
				"corpus access ls lists the projects of each user")
		}
		data.Revoke(user, project)
	}
	if len(projects) > 0 {
		return nil
	}
	for project := range data.Projects {
		data.Revoke(user, project)
	}
	u.SSHKeys, u.Closed = nil, cloud.Yes
	data.Users[user] = u
	return nil
}

func noSuchUser(data *cloud.Cloud, user string) error {
	hint := diag.DidYouMean(user, sorted(data.Users))
	if hint == "" {
		hint = "corpus access ls lists the users"
	}
	return diag.Cloud.Hint(fmt.Errorf("there is no user %s", user), "%s", hint)
}

// shownUser is a user in the output of a command.
type shownUser struct {
	Login string `json:"user"`
	cloud.User
	Projects map[string][]string `json:"projects"` // what the user may run as root on hosts of each project
}

func (k *clouds) accessList() *cobra.Command {
	project := ""
	c := &cobra.Command{
		Use: "ls", Short: "List users with their projects",
		Example: `  corpus access ls --project shop --cloud prod`, Args: cli.Args(cobra.NoArgs),
		RunE: func(c *cobra.Command, _ []string) error { return k.listAccess(c.Context(), project) },
	}
	c.Flags().StringVar(&project, "project", "", "only users of this project")
	return c
}

// usersOf returns the users of a project, or all if it is empty.
func usersOf(c *cloud.Cloud, project string) []shownUser {
	all := []shownUser{}
	for _, name := range sorted(c.Users) {
		u := shownUser{Login: name, User: c.Users[name], Projects: map[string][]string{}}
		for of, a := range c.Projects {
			if slices.Contains(a.Members, name) {
				u.Projects[of] = append([]string{}, a.Commands(name)...)
			}
		}
		if _, member := u.Projects[project]; project == "" || member {
			all = append(all, u)
		}
	}
	return all
}

func (k *clouds) listAccess(ctx context.Context, project string) error {
	now, done, err := k.read(ctx)
	if err != nil {
		return err
	}
	defer done()
	if _, known := now.data.Projects[project]; project != "" && !known {
		return exit.WithCode(exit.Usage, diag.Cloud.Hint(fmt.Errorf("no user has access to a project %s", project),
			"corpus access ls lists the projects of each user"))
	}
	all := usersOf(now.data, project)
	if k.json {
		return k.JSON(all)
	}
	w := tabwriter.NewWriter(k.Out, 0, 8, 2, ' ', 0)
	fmt.Fprintln(w, "USER\tNUMBER\tKEYS\tNAME\tPROJECTS")
	for _, u := range all {
		fmt.Fprintf(w, "%s\t%d\t%d\t%s\t%s\n", u.Login, u.UID, len(u.SSHKeys), u.Name, u.projects())
	}
	return w.Flush()
}

// projects returns the projects of a user, each with what the user may run there as root.
func (u shownUser) projects() string {
	if u.Closed == cloud.Yes {
		return "(removed)"
	}
	var all []string
	for _, name := range sorted(u.Projects) {
		text := name
		if commands := u.Projects[name]; len(commands) > 0 {
			text += " (sudo " + strings.Join(commands, "; ") + ")"
		}
		all = append(all, text)
	}
	return strings.Join(all, ", ")
}
