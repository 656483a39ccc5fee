package main

import (
	"context"
	"fmt"
	"slices"

	"github.com/spf13/cobra"

	"github.com/corpus-agent/corpus-agent/artifact"
	"github.com/corpus-agent/corpus-agent/artifact/cloud"
	"github.com/corpus-agent/corpus-agent/cmd/cli"
	"github.com/corpus-agent/corpus-agent/state/diag"
)

// editGuest changes a guest.
func (k *clouds) editGuest(ctx context.Context, name string, change func(*cloud.Guest) error) error {
	return k.edit(ctx, func(data *cloud.Cloud) error {
		if err := hasGuest(data, name); err != nil {
			return err
		}
		g := data.Guests[name]
		if k.on != "" && g.Node != k.on {
			return diag.Cloud.Hint(fmt.Errorf("guest %s is on node %s, and not on %s", name, g.Node, k.on),
				"corpus guest info %s shows it", name)
		}
		err := change(&g)
		data.Guests[name] = g
		return err
	})
}

func (k *clouds) guestDelete() *cobra.Command {
	return k.editFlags(&cobra.Command{
		Use: "delete NAME", Short: "Delete a guest and its disk",
		Long: `delete removes a guest from the cloud. Its node stops it and removes its disk, which cannot be ` +
			`brought back; so do nodes that it has moved away from.`,
		Example: `  corpus guest delete web1 --cloud prod`, Args: cli.Args(cobra.ExactArgs(1)),
		RunE: func(c *cobra.Command, args []string) error {
			return k.edit(c.Context(), func(data *cloud.Cloud) error {
				if err := hasGuest(data, args[0]); err != nil {
					return err
				}
				data.Delete(args[0])
				return nil
			})
		},
	})
}

func (k *clouds) guestEnlarge() *cobra.Command {
	return k.guestResize("enlarge", "Give a guest a larger disk",
		"enlarge sets the size of a guest's disk. It is refused if the disk has that size or more.", "web1 8GiB",
		func(now, to int64) string {
			if to <= now {
				return "larger"
			}
			return ""
		})
}

func (k *clouds) guestTrim() *cobra.Command {
	return k.guestResize("trim", "Give a guest a smaller disk",
		"trim sets the size of a guest's disk. The node keeps the size that it has until the guest uses no more than that.",
		"web1 6GiB", func(now, to int64) string {
			if to >= now {
				return "smaller"
			}
			return ""
		})
}

// guestResize returns a command that changes the size of a guest. refused returns what a new size has to be and is not.
func (k *clouds) guestResize(verb, short, long, example string, refused func(now, to int64) string) *cobra.Command {
	return k.editFlags(&cobra.Command{
		Use: verb + " NAME SIZE", Short: short, Long: long,
		Example: "  corpus guest " + verb + " " + example + " --cloud prod",
		Args:    cli.Args(cobra.ExactArgs(2)),
		RunE: func(c *cobra.Command, args []string) error {
			return k.editGuest(c.Context(), args[0], func(g *cloud.Guest) error {
				if err := cloud.CheckSize(args[1]); err != nil {
					return err
				}
				now, _ := cloud.ParseSize(g.Size)
				to, _ := cloud.ParseSize(args[1])
				if not := refused(now, to); not != "" {
					return diag.Cloud.Hint(fmt.Errorf("the disk of %s has %s, and %s is not %s", args[0], g.Size, args[1], not),
						"give the whole size that it is to have")
				}
				g.Size = args[1]
				return nil
			})
		},
	})
}

// guestName returns the commands that add and remove DNS names of a guest.
func (k *clouds) guestName() *cobra.Command {
	return k.items("name", "DOMAIN", "names for which the node's proxy leads to a guest", "web1 www.example.com",
		func(text string) ([]string, error) { return []string{text}, cloud.CheckDomain(text) },
		func(g *cloud.Guest) *[]string { return &g.Names })
}

// guestKey returns the commands that add and remove SSH keys of a guest.
func (k *clouds) guestKey() *cobra.Command {
	return k.items("ssh-key", "FILE", "public keys that may log in to a guest as root", "web1 id_ed25519.pub",
		func(text string) ([]string, error) { return readSSHKeys([]string{text}) },
		func(g *cloud.Guest) *[]string { return &g.SSHKeys })
}

// items returns the commands that add items to a list of a guest and remove them. read returns the items that an
// argument names.
func (k *clouds) items(what, argument, about, example string, read func(string) ([]string, error),
	list func(*cloud.Guest) *[]string) *cobra.Command {
	c := &cobra.Command{Use: what, Short: "Add and remove " + about}
	c.AddCommand(k.editFlags(&cobra.Command{
		Use: "add NAME " + argument, Short: "Add to the " + about, Example: "  corpus guest " + what + " add " + example,
		Args: cli.Args(cobra.ExactArgs(2)),
		RunE: func(c *cobra.Command, args []string) error {
			return k.editGuest(c.Context(), args[0], func(g *cloud.Guest) error {
				items, err := read(args[1])
				*list(g) = union(*list(g), items)
				return err
			})
		},
	}), k.editFlags(&cobra.Command{
		Use: "rm NAME " + argument, Short: "Remove from the " + about, Example: "  corpus guest " + what + " rm " + example,
		Args: cli.Args(cobra.ExactArgs(2)),
		RunE: func(c *cobra.Command, args []string) error {
			return k.editGuest(c.Context(), args[0], func(g *cloud.Guest) error {
				items, err := read(args[1])
				for _, item := range items {
					if !slices.Contains(*list(g), item) {
						return diag.Cloud.Hint(fmt.Errorf("%s has no %s %s", args[0], what, args[1]),
							"corpus guest info %s shows what it has", args[0])
					}
				}
				*list(g) = slices.DeleteFunc(*list(g), func(item string) bool { return slices.Contains(items, item) })
				return err
			})
		},
	}))
	return c
}

func (k *clouds) guestImage() *cobra.Command {
	return k.editFlags(&cobra.Command{
		Use: "image NAME PROJECT VERSION", Short: "Set the release that an image of guests is",
		Long: `image lets guests be created from a release of the store, whose tree has the root file system as rootfs.tar. The digest
of the release is signed with the cloud. Guests that exist keep the system that they were created with.`,
		Example: `  corpus guest image bookworm image-bookworm 1.0 --cloud prod`, Args: cli.Args(cobra.ExactArgs(3)),
		RunE: func(c *cobra.Command, args []string) error {
			release, err := k.releaseOf(c.Context(), args[1], args[2])
			if err != nil {
				return err
			}
			return k.edit(c.Context(), func(data *cloud.Cloud) error {
				data.Images[args[0]] = cloud.Image{Project: release.Project, Version: release.Version,
					Digest: string(release.Digest)}
				return cloud.CheckName(args[0])
			})
		},
	})
}

// releaseOf returns a release that is signed in the store.
func (k *clouds) releaseOf(ctx context.Context, project, version string) (artifact.Release, error) {
	client, done, err := k.reader(ctx)
	if err != nil {
		return artifact.Release{}, err
	}
	defer done()
	if all := client.Projects(); !slices.Contains(all, project) {
		return artifact.Release{}, noSuch("project", project, all)
	}
	list, err := client.ListOne(ctx, project)
	if err != nil {
		return artifact.Release{}, err
	}
	return releaseNamed(list, version)
}
