package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"github.com/corpus-agent/corpus-agent/agent/config"
	"github.com/corpus-agent/corpus-agent/agent/exit"
	"github.com/corpus-agent/corpus-agent/artifact/cloud"
	"github.com/corpus-agent/corpus-agent/artifact/durable"
	"github.com/corpus-agent/corpus-agent/artifact/publish/roots"
	"github.com/corpus-agent/corpus-agent/artifact/walk"
	"github.com/corpus-agent/corpus-agent/cmd/cli"
	"github.com/corpus-agent/corpus-agent/packaging/remote"
	"github.com/corpus-agent/corpus-agent/state/diag"
)

// wantedGuests is what a person wants of a developer environment.
type wantedGuests struct {
	names                []string // of guests; empty for those that are there
	project, driver      string
	size                 string
	image                devImage
	keyFiles, mountTexts []string
	unmount              bool // remove the mounts that the guests have
	agent                string
	wait                 time.Duration

	keys   []string
	mounts []cloud.Mount
}

func (d *developing) upCommand() *cobra.Command {
	w := wantedGuests{}
	c := &cobra.Command{
		Use:   "up [GUEST...]",
		Short: "Make guests on this machine, or start those that it has",
		Long: `up makes this machine a node of a cloud of its own, and guests on it. It makes the keys and the store in --dir if there are
none, publishes the image and the guests there, installs the agent beside this program with /etc/corpus/agent.yaml, and starts a
run of the agent, which makes and starts the guests. Without names it makes the guest dev1, or starts the guests that are there.
What is there already stays, so an interrupted up is continued by the next one, and a second one changes nothing.

Images come from --debootstrap SUITE, which takes the program debootstrap and an archive of Debian; from --rootfs FILE, a tar
archive of a root file system; or from --image NAME, one that is there.

--mount shows a directory of this machine in the guests that are named, or in all: read-only, or with :rw for writing. Root of the
guest acts there as the owner of the directory, and has no rights on files of other users. A directory of root's is read-only.

up refuses a machine that is a host of another store. It leaves the firewall, the hostname and other services of the machine as
they are.`,
		Example: `  sudo corpus dev up --debootstrap bookworm --mount ~/shop --ssh-key ~/.ssh/id_ed25519.pub
  sudo corpus dev up web1 db1 --project shop --rootfs rootfs.tar --mount /home/ann/shop:/srv/shop:rw --yes
  sudo corpus dev up`,
		RunE: func(c *cobra.Command, args []string) error {
			w.names = args
			return d.up(c.Context(), w)
		},
	}
	f := c.Flags()
	f.StringVar(&w.project, "project", "", "service of new guests; the name of each guest by default")
	f.StringVar(&w.driver, "driver", cloud.DefaultDriver, "what runs the guests: "+strings.Join(cloud.Drivers(), ", "))
	f.StringVar(&w.size, "size", cloud.DefaultSize, "size of the disks of new guests, if their file system has quotas")
	f.StringVar(&w.image.name, "image", "", "image of new guests; the only one that is there by default")
	f.StringVar(&w.image.rootfs, "rootfs", "", "tar archive of a root file system that becomes the image")
	f.StringVar(&w.image.suite, "debootstrap", "", "suite of Debian from which the image is made, such as bookworm")
	f.StringVar(&w.image.mirror, "mirror", "", "archive for --debootstrap; that of debootstrap by default")
	cli.RepeatedVar(f, &w.mountTexts, "mount", "", "directory to show in the guests, DIR[:PATH][:rw]; may be repeated")
	f.BoolVar(&w.unmount, "unmount", false, "remove the mounts that the guests have, before those of --mount are added")
	cli.RepeatedVar(f, &w.keyFiles, "ssh-key", "", "file of a public key that may log in as root; may be repeated")
	f.StringVar(&w.agent, "agent", "", "program or package (.deb) of the agent; the program beside this one by default")
	f.DurationVar(&w.wait, "wait", time.Minute, "how long to wait until SSH of the guests answers; 0 to not wait")
	c.MarkFlagsMutuallyExclusive("rootfs", "debootstrap")
	return d.confirming(c)
}

// up makes the environment, and shows before what it changes.
func (d *developing) up(ctx context.Context, w wantedGuests) error {
	if err := d.open(); err != nil {
		return err
	}
	defer d.k.close()
	if err := d.allowed(); err != nil {
		return err
	}
	if err := d.understand(&w); err != nil {
		return exit.WithCode(exit.Usage, err)
	}
	data, err := d.read(ctx)
	if err != nil {
		return err
	}
	changes, host, err := d.plan(ctx, data, &w)
	if err != nil {
		return err
	}
	if d.dry && d.json {
		return d.JSON(map[string]any{"changes": changes})
	}
	d.showChanges(changes)
	if d.dry {
		return nil
	}
	if len(changes) > 0 {
		if err := d.question(ctx, "Make these changes on this machine?"); err != nil {
			return err
		}
	}
	if err := d.make(ctx, w, host); err != nil {
		return err
	}
	if data, err = d.read(ctx); err != nil {
		return err
	}
	d.await(ctx, data, w.wait)
	return d.printGuests(ctx, data)
}

// understand reads the files that flags name.
func (d *developing) understand(w *wantedGuests) (err error) {
	for _, name := range w.names {
		if err := cloud.CheckName(name); err != nil {
			return fmt.Errorf("the guest's name: %w", err)
		}
	}
	if w.keys, err = readSSHKeys(w.keyFiles); err != nil {
		return err
	}
	for _, text := range w.mountTexts {
		m, err := d.parseMount(text)
		if err != nil {
			return err
		}
		w.mounts = append(w.mounts, m)
	}
	return nil
}

// plan returns what up changes, and what this machine is to have.
func (d *developing) plan(ctx context.Context, data *cloud.Cloud, w *wantedGuests) (changes []remote.Change,
	host remote.Wanted, err error) {
	changes = []remote.Change{}
	there, err := d.there()
	if err != nil {
		return nil, host, err
	}
	if !there {
		changes = append(changes, remote.Change{What: "store and keys", To: d.dir})
	}
	if err := w.settle(data); err != nil {
		return nil, host, exit.WithCode(exit.Usage, err)
	}
	made, err := w.image.plan(data, w.creates(data))
	if err != nil {
		return nil, host, exit.WithCode(exit.Usage, err)
	}
	changes = append(changes, made...)
	mine, err := data.Clone()
	if err != nil {
		return nil, host, err
	}
	w.image.enter(mine)
	if err := d.enter(mine, *w); err != nil {
		return nil, host, exit.WithCode(exit.Usage, err)
	}
	changes = append(changes, changedGuests(data, mine)...)
	host, more, err := d.planHost(ctx, w.agent)
	return append(changes, more...), host, err
}

// settle chooses the guests.
func (w *wantedGuests) settle(data *cloud.Cloud) error {
	if len(w.names) == 0 {
		w.names = sorted(data.Guests)
	}
	if len(w.names) == 0 {
		w.names = []string{"dev1"}
	}
	for _, name := range w.names {
		if g, there := data.Guests[name]; there && w.project != "" && w.project != g.Project {
			return diag.Cloud.Hint(fmt.Errorf("guest %s has the project %s", name, g.Project),
				"delete it (corpus guest delete %s --cloud dev), or give another name", name)
		}
	}
	return nil
}

// creates reports whether a guest that is wanted does not exist.
func (w *wantedGuests) creates(data *cloud.Cloud) bool {
	return slices.ContainsFunc(w.names, func(name string) bool { _, there := data.Guests[name]; return !there })
}

// union returns the texts of two lists, each once.
func union(list, more []string) []string {
	for _, one := range more {
		if !slices.Contains(list, one) {
			list = append(list, one)
		}
	}
	return list
}

// enter enters what a person wants into the cloud.
func (d *developing) enter(data *cloud.Cloud, w wantedGuests) error {
	if n, there := data.Nodes[devNode]; !there {
		data.Nodes[devNode] = cloud.Node{Mode: devCloud, Region: devRegion, Driver: w.driver, Slots: devSlots}
	} else if n.Driver != w.driver && w.driver != cloud.DefaultDriver {
		return diag.Cloud.Hint(fmt.Errorf("the guests of this environment were made for the driver %s", n.Driver),
			"remove it first: corpus dev down --remove")
	}
	for _, name := range w.names {
		g, there := data.Guests[name]
		if !there {
			g = cloud.Guest{Node: devNode, Project: cmp.Or(w.project, name), Env: devCloud, Image: w.image.name, Size: w.size}
		}
		g.SSHKeys = union(g.SSHKeys, w.keys)
		if w.unmount {
			g.Mounts = nil
		}
		g.Mounts = withMounts(g.Mounts, append([]cloud.Mount{d.storeMount()}, w.mounts...))
		data.Guests[name] = g
	}
	return nil
}

// devSlots is the maximum number of guests of an environment.
const devSlots = 100

// changedGuests describes the differences of the guests of two clouds.
func changedGuests(before, after *cloud.Cloud) (changes []remote.Change) {
	add := func(what, from, to string) {
		if from != to {
			changes = append(changes, remote.Change{What: what, From: from, To: to})
		}
	}
	for _, name := range sorted(after.Guests) {
		was, g := before.Guests[name], after.Guests[name]
		if _, there := before.Guests[name]; !there {
			add("guest "+name, "", "project "+g.Project+", image "+g.Image)
		}
		add("mounts of "+name, strings.Join(was.Mounts, " "), strings.Join(g.Mounts, " "))
		if n := len(g.SSHKeys) - len(was.SSHKeys); n > 0 {
			add("SSH keys of "+name, "", diag.Count(n, "more"))
		}
	}
	return changes
}

// planHost returns what this machine is to have, and what it lacks.
func (d *developing) planHost(ctx context.Context, agent string) (w remote.Wanted, changes []remote.Change, err error) {
	if w.Agent, err = agentOf(agent); err != nil {
		return w, nil, exit.WithCode(exit.Usage, err)
	}
	facts, err := d.here().Examine(ctx, w.Agent.Digest)
	if err != nil {
		return w, nil, exit.WithCode(exit.Failed, err)
	}
	w.Hostname, w.NewConfig, w.Settings = facts.Hostname(), config.Example(d.storeURL()), d.devSettings()
	plan, err := remote.NewPlan(w, facts)
	if err != nil {
		return w, nil, exit.WithCode(exit.Usage, err)
	}
	return w, plan.Changes, nil
}

// make makes the environment: each step does what is left of it.
func (d *developing) make(ctx context.Context, w wantedGuests, host remote.Wanted) error {
	syscall.Umask(0o022) // guests read the store
	steps := []func() error{d.record, func() error { return d.makeStore(ctx) }, d.guestFiles,
		func() error { return w.image.publish(ctx, d.k.program) },
		func() error {
			return d.edit(ctx, func(data *cloud.Cloud) error {
				w.image.enter(data)
				return d.enter(data, w)
			})
		},
		func() error { return d.makeHost(ctx, host) }}
	for _, step := range steps {
		if err := step(); err != nil {
			return err
		}
	}
	return nil
}

// makeStore makes the keys and the store. It begins with an empty store if an interrupted command began to set one up,
// in which nothing is published.
func (d *developing) makeStore(ctx context.Context) error {
	timestamp, err := walk.Exists(d.own("store", "metadata", "timestamp.json"))
	if err != nil {
		return err
	}
	if root, err := walk.Exists(d.own("keys", roots.RootName)); timestamp && root || err != nil {
		return err
	}
	for _, dir := range []string{d.own("store"), d.own("keys")} {
		if err := durable.RemoveAll(ctx, dir); err != nil {
			return err
		}
	}
	if err := errors.Join(durable.MkdirAll(d.own("keys"), 0o700), durable.MkdirAll(d.own("store"), 0o755)); err != nil {
		return err
	}
	if err := d.k.newKeys(ctx, nil, 1, sealing{}); err != nil {
		return err
	}
	publisher, err := d.k.publisher(ctx)
	if err != nil {
		return err
	}
	_, err = roots.Init(ctx, publisher, 0)
	return code(err)
}

// makeHost installs the agent and starts a run.
func (d *developing) makeHost(ctx context.Context, w remote.Wanted) (err error) {
	h := d.here()
	if w.Root, err = walk.ReadFile(d.own("keys", roots.RootName)); err != nil {
		return err
	}
	facts, err := h.Examine(ctx, w.Agent.Digest)
	if err != nil {
		return exit.WithCode(exit.Failed, err)
	}
	plan, err := remote.NewPlan(w, facts)
	if err != nil {
		return exit.WithCode(exit.Usage, err)
	}
	if err := d.install(ctx, h, plan); err != nil {
		return exit.WithCode(exit.Failed, err)
	}
	ended, err := h.Run(ctx)
	if err != nil {
		return exit.WithCode(exit.Failed, err)
	}
	if ended != exit.OK {
		return exit.WithCode(ended, diag.Run.Hint(fmt.Errorf("the run of the agent failed: exit code %d", ended),
			"see the reason with corpus-agent why; then run corpus dev up again: it continues"))
	}
	return nil
}
