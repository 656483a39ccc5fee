package main

import (
	"context"
	"fmt"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/corpus-agent/corpus-agent/agent/exit"
	"github.com/corpus-agent/corpus-agent/artifact/cloud"
	"github.com/corpus-agent/corpus-agent/artifact/walk"
	"github.com/corpus-agent/corpus-agent/cmd/cli"
	"github.com/corpus-agent/corpus-agent/state/diag"
)

// stoppedGuests is the output of down.
type stoppedGuests struct {
	Stopped []string `json:"stopped"` // guests
	Removed []string `json:"removed"` // paths
}

func (d *developing) downCommand() *cobra.Command {
	remove := false
	c := &cobra.Command{
		Use:   "down",
		Short: "Stop the guests on this machine",
		Long: `down stops the guests, and the timer of the agent, which would start them again. corpus dev up starts them.

With --remove it also removes the guests with their disks, the store with its keys, and everything else that up has made; it lists
that and asks first. What was on the machine before up stays, and so do packages that were installed. Directories that are mounted
in guests stay as they are.`,
		Example: `  sudo corpus dev down
  sudo corpus dev down --remove --dry-run`,
		Args: cli.Args(cobra.NoArgs),
		RunE: func(c *cobra.Command, _ []string) error { return d.down(c.Context(), remove) },
	}
	c.Flags().BoolVar(&remove, "remove", false, "remove the guests, their disks, the store and its keys")
	return d.confirming(c)
}

func (d *developing) down(ctx context.Context, remove bool) error {
	if err := d.open(); err != nil {
		return err
	}
	defer d.k.close()
	if err := d.allowed(); err != nil {
		return err
	}
	paths, err := d.recorded()
	if err != nil {
		return err
	}
	if len(paths) == 0 {
		return exit.WithCode(exit.Usage, d.noEnvironment())
	}
	data, err := d.read(ctx)
	if err != nil {
		return err
	}
	answer := stoppedGuests{Stopped: append([]string{}, data.On(devNode)...), Removed: []string{}}
	if remove {
		answer.Removed = paths
	}
	if d.dry && d.json {
		return d.JSON(answer)
	}
	d.showDown(answer)
	if d.dry {
		return nil
	}
	if remove {
		if err := d.question(ctx, "Remove all of this? Disks of guests cannot be brought back."); err != nil {
			return err
		}
		if err := d.removeGuests(ctx, data); err != nil {
			return err
		}
	}
	if err := d.stop(ctx, data); err != nil {
		return err
	}
	if remove {
		// The list of what is removed goes last, so that the next command continues after an interruption.
		last := []string{path.Join(d.dir, "store"), path.Join(d.dir, "keys"), d.dir}
		paths = append(slices.DeleteFunc(slices.Clone(paths), func(one string) bool { return one == d.dir }), last...)
		if err := d.here().Remove(ctx, addressesOf(data), paths); err != nil {
			return exit.WithCode(exit.Failed, err)
		}
	}
	return d.answer(answer, "stopped %s, removed %s", diag.Count(len(answer.Stopped), "guest"),
		diag.Count(len(answer.Removed), "path"))
}

// showDown prints what is stopped and removed.
func (d *developing) showDown(answer stoppedGuests) {
	out := d.Err
	if d.dry {
		out = d.Out
	}
	for _, name := range answer.Stopped {
		what := "stop"
		if len(answer.Removed) > 0 {
			what = "remove with its disk:"
		}
		fmt.Fprintf(out, "- %s guest %s\n", what, name)
	}
	for _, one := range answer.Removed {
		fmt.Fprintf(out, "- remove %s\n", one)
	}
}

// stop stops the guests, and what would start them again.
func (d *developing) stop(ctx context.Context, data *cloud.Cloud) error {
	var units []string
	for _, name := range data.On(devNode) {
		units = append(units, unitOf(data, name))
	}
	return exit.WithCode(exit.Failed, d.here().Down(ctx, units))
}

// removeGuests deletes the guests from the cloud, and has a run of the agent remove their disks.
func (d *developing) removeGuests(ctx context.Context, data *cloud.Cloud) error {
	records := func() ([]string, error) { return walk.Glob(d.path("/var/lib/corpus-guests", "*.json")) }
	left, err := records()
	if err != nil || len(left) == 0 {
		return err
	}
	if err := d.edit(ctx, func(now *cloud.Cloud) error {
		for _, name := range now.On(devNode) {
			now.Delete(name)
		}
		return nil
	}); err != nil {
		return err
	}
	ended, err := d.here().Run(ctx)
	if err != nil {
		return exit.WithCode(exit.Failed, err)
	}
	if left, err = records(); err != nil {
		return err
	}
	if ended == exit.OK && len(left) == 0 {
		return nil
	}
	for i, file := range left {
		left[i] = strings.TrimSuffix(filepath.Base(file), ".json")
	}
	return exit.WithCode(exit.Failed, diag.Run.Hint(fmt.Errorf("the run that removes the guests ended with exit code %d: "+
		"%s left (%s)", ended, diag.Count(len(left), "guest"), strings.Join(left, ", ")),
		"see the reason with corpus-agent why, and run the command again; nothing else was removed"))
}

// addressesOf returns the start of the addresses of guests, by which their lines in /etc/hosts are found; "" if there
// is none.
func addressesOf(data *cloud.Cloud) string {
	start, whole := strings.CutSuffix(data.Nodes[devNode].Range4, ".0/24")
	if !whole {
		return ""
	}
	return start + "."
}
