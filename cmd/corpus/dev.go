package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"github.com/corpus-agent/corpus-agent/agent/exit"
	"github.com/corpus-agent/corpus-agent/artifact/cloud"
	"github.com/corpus-agent/corpus-agent/artifact/publish/roots"
	"github.com/corpus-agent/corpus-agent/artifact/walk"
	"github.com/corpus-agent/corpus-agent/cmd/cli"
	"github.com/corpus-agent/corpus-agent/packaging/remote"
	"github.com/corpus-agent/corpus-agent/state/diag"
)

// What a developer environment is in its own cloud: a cloud of one node, which is this machine.
const (
	devDir    = "/var/lib/corpus-dev"
	devCloud  = "dev" // the name of the cloud for --cloud, and its channel and mode
	devNode   = "n1"
	devRegion = "local1"
)

// developing has the flags and the state of the commands of a developer environment.
type developing struct {
	*program
	dir  string // of the store and its keys, on this machine
	yes  bool
	dry  bool
	root string  // the directory that is / in tests; "" for that of the machine
	k    *clouds // of the local store; prints nothing on standard output
}

func (p *program) devCommand() *cobra.Command {
	d := &developing{program: p}
	c := &cobra.Command{
		Use:   "dev",
		Short: "Run guests on this machine, with your working trees in them",
		Long: `A developer environment is a cloud of one node, which is this machine: a store in a directory with keys of its own, the
states of nodes that come with this program, and guests, which systemd-nspawn runs. Working trees of this machine can be mounted
in guests, and corpus push GUEST PROJECT --cloud dev deploys to them. docs/cloud.md describes it.`,
		Example: `  sudo corpus dev up --debootstrap bookworm --mount ~/shop --ssh-key ~/.ssh/id_ed25519.pub
  corpus dev ls
  sudo corpus dev down`,
	}
	c.PersistentFlags().StringVar(&d.dir, "dir", devDir, "directory of the store and its keys")
	c.AddCommand(d.upCommand(), d.downCommand(), d.listCommand())
	return c
}

// confirming adds the flags of commands that change this machine.
func (d *developing) confirming(c *cobra.Command) *cobra.Command {
	c.Flags().BoolVarP(&d.yes, "yes", "y", false, "change this machine without a question")
	c.Flags().BoolVar(&d.dry, "dry-run", false, "show what would be changed, and change nothing")
	return c
}

// path returns the path of a file of this machine.
func (d *developing) path(parts ...string) string {
	return filepath.Join(append([]string{"/", d.root}, parts...)...)
}

// own returns the path of a file of the environment.
func (d *developing) own(parts ...string) string { return d.path(d.dir, filepath.Join(parts...)) }

// store returns the URL of the store for the agents of this machine and of guests.
func (d *developing) storeURL() string { return "file://" + path.Join(d.dir, "store") }

// open prepares reading and changing the local store. Flags and variables that name other stores and keys are ignored.
func (d *developing) open() error {
	d.root = d.Getenv("CORPUS_ROOT")
	if !filepath.IsAbs(d.dir) || cloud.CheckPath(filepath.Clean(d.dir)) != nil {
		return exit.WithCode(exit.Usage, diag.Usage.Hint(fmt.Errorf("--dir is %s", d.dir),
			"give a path from / on, of letters, digits and @._+-"))
	}
	d.dir = filepath.Clean(d.dir)
	quiet := *d.program
	quiet.Out, quiet.json, quiet.trustRoot = io.Discard, false, ""
	quiet.Getenv = func(name string) string {
		if strings.HasPrefix(name, "CORPUS_") {
			return ""
		}
		return d.Getenv(name)
	}
	quiet.store, quiet.keys = "file://"+d.own("store"), d.own("keys")
	if os.Geteuid() != 0 && d.root == "" {
		quiet.keys, quiet.trustRoot = "", d.own(roots.RootName)
	}
	d.k = &clouds{program: &quiet, channel: devCloud, yes: true}
	return nil
}

// edit changes the cloud, which the person has been asked about already.
func (d *developing) edit(ctx context.Context, change func(*cloud.Cloud) error) error {
	silent := *d.k.program
	silent.Err = io.Discard
	defer silent.close()
	k := *d.k
	k.program, k.more = &silent, d.devPillar()
	return k.edit(ctx, change)
}

// there reports whether the environment has a store: the copy of the root of trust is written when the store is set up.
func (d *developing) there() (bool, error) { return walk.Exists(d.own(roots.RootName)) }

// read returns the cloud of the environment; an empty one if there is none.
func (d *developing) read(ctx context.Context) (*cloud.Cloud, error) {
	there, err := d.there()
	if err != nil || !there {
		return cloud.New(), err
	}
	now, done, err := d.k.read(ctx)
	if err != nil {
		return nil, err
	}
	defer done()
	return now.data, nil
}

// here is this machine for the scripts that set hosts up.
func (d *developing) here() remote.Host {
	return remote.Host{Destination: "this machine", Err: d.Err, Here: true, Root: d.root}
}

// allowed returns an error unless this machine can be, or is, a developer environment of this directory.
func (d *developing) allowed() error {
	if os.Geteuid() != 0 && d.root == "" {
		return exit.WithCode(exit.Usage, diag.Rights.Hint(errors.New("a developer environment is run by root"),
			"start the command with sudo"))
	}
	if err := d.safeDir(); err != nil {
		return err
	}
	return d.notAnotherHost()
}

// safeDir returns an error if other users than root can change the directory of the environment, or one above it.
func (d *developing) safeDir() error {
	if d.root != "" {
		return nil
	}
	root, err := walk.Open(walk.Options{})
	if err != nil {
		return err
	}
	defer root.Close()
	for dir := d.dir; ; dir = filepath.Dir(dir) {
		there, err := walk.Named(dir)
		if err != nil {
			return err
		}
		if there && !root.Fixed(dir) {
			return exit.WithCode(exit.Usage, diag.Exposed.Hint(
				fmt.Errorf("%s: another user than root can change %s, or what is above it", d.dir, dir),
				"give a --dir of root's, such as %s", devDir))
		}
		if there {
			return nil
		}
	}
}

// question asks a person whether to continue.
func (d *developing) question(ctx context.Context, text string) error {
	if d.yes {
		return nil
	}
	if !d.Asks() {
		return exit.WithCode(exit.Usage,
			diag.Usage.Hint(errors.New("a person has to confirm this, and there is no terminal to ask on"),
				"give --yes to do it, or --dry-run to only see it"))
	}
	if !d.Confirm(ctx, text) {
		return exit.WithCode(exit.Usage, diag.Usage.Hint(errors.New("nothing was changed"), "answer y to continue"))
	}
	return nil
}

// showChanges prints changes for a person.
func (d *developing) showChanges(changes []remote.Change) {
	out := d.Err
	if d.dry {
		out = d.Out
	}
	for _, c := range changes {
		from := ""
		if c.From != "" {
			from = c.From + " -> "
		}
		fmt.Fprintf(out, "~ %s: %s%s\n", c.What, from, c.To)
	}
}

func (d *developing) listCommand() *cobra.Command {
	return &cobra.Command{
		Use: "ls", Aliases: []string{"status"}, Short: "List the guests on this machine",
		Example: `  corpus dev ls`, Args: cli.Args(cobra.NoArgs),
		RunE: func(c *cobra.Command, _ []string) error {
			if err := d.open(); err != nil {
				return err
			}
			defer d.k.close()
			there, err := d.there()
			if err != nil {
				return err
			}
			if !there {
				return exit.WithCode(exit.Usage, d.noEnvironment())
			}
			data, err := d.read(c.Context())
			if err != nil {
				return err
			}
			return d.printGuests(c.Context(), data)
		},
	}
}

// devEntry returns the cloud of the developer environment on this machine, which has the name dev for all its users.
func devEntry() (one knownCloud, there bool, err error) {
	root := filepath.Join(devDir, roots.RootName)
	if there, err = walk.Named(root); err != nil || !there {
		return one, false, err
	}
	one = knownCloud{store: "file://" + devDir + "/store", trustRoot: root, channel: devCloud}
	if os.Geteuid() == 0 {
		one.keys = filepath.Join(devDir, "keys")
	}
	return one, true, nil
}

func (d *developing) noEnvironment() error {
	return diag.Cloud.Hint(fmt.Errorf("there is no developer environment in %s", d.dir), "make one: sudo corpus dev up")
}
