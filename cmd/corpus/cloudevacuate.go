package main

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/corpus-agent/corpus-agent/agent/exit"
	"github.com/corpus-agent/corpus-agent/artifact/cloud"
	"github.com/corpus-agent/corpus-agent/cmd/cli"
	"github.com/corpus-agent/corpus-agent/state/diag"
)

func (k *clouds) guestDrop() *cobra.Command {
	unproven := false
	c := &cobra.Command{
		Use:   "drop NAME NODE",
		Short: "Remove the disk that a node keeps of a guest that moved away",
		Long: `drop lets a node remove the disk of a guest that has moved away from it. It is refused until the guest has reported from its
new node that it is healthy, unless --unproven is given. The disk cannot be brought back.`,
		Example: `  corpus guest drop web1 n1 --cloud prod`, Args: cli.Args(cobra.ExactArgs(2)),
		RunE: func(c *cobra.Command, args []string) error {
			return k.drop(c.Context(), args[0], args[1], unproven)
		},
	}
	c.Flags().BoolVar(&unproven, "unproven", false, "also if the guest has not reported since it moved")
	return k.editFlags(c)
}

func (k *clouds) drop(ctx context.Context, guest, node string, unproven bool) error {
	if !unproven {
		if err := k.proven(ctx, guest); err != nil {
			return err
		}
	}
	return k.edit(ctx, func(data *cloud.Cloud) error {
		if err := hasGuest(data, guest); err != nil {
			return err
		}
		return data.Drop(guest, node)
	})
}

// proven returns an error if no report shows that a guest is healthy on its node.
func (k *clouds) proven(ctx context.Context, name string) error {
	now, done, err := k.read(ctx)
	if err != nil {
		return err
	}
	defer done()
	if err := hasGuest(now.data, name); err != nil {
		return err
	}
	h, err := k.healthOf(ctx, now.data, name)
	if err != nil || h.Healthy {
		return err
	}
	return exit.WithCode(exit.Usage, diag.Cloud.Hint(
		fmt.Errorf("no report shows that guest %s is healthy on node %s: %s", name, now.data.Guests[name].Node, h),
		"wait for its report (corpus guest info %s); if it makes none, look at it yourself and give --unproven", name))
}

func (k *clouds) nodeEvacuate() *cobra.Command {
	off := false
	c := &cobra.Command{
		Use:   "evacuate NODE --off",
		Short: "Place the guests of a node that is gone on other nodes",
		Long: `evacuate closes a node, and places its stateless guests on other nodes of their environment and region, with new disks from their
images. Guests with data stay: their disks are on the node. It names them: restore each from its backup on another node (corpus guest
move NAME NODE --empty --stopped), or wait for the node.

A node that is evacuated must be off: other nodes start its guests at once. When it is on again its first run stops the guests that
have moved, and keeps their disks. "corpus node open" lets it get guests again.`,
		Example: `  corpus node evacuate n1 --off --cloud prod`, Args: cli.Args(cobra.ExactArgs(1)),
		RunE: func(c *cobra.Command, args []string) error {
			if !off {
				return exit.WithCode(exit.Usage, diag.Cloud.Hint(
					fmt.Errorf("the guests of node %s start elsewhere at once, and must not run twice", args[0]),
					"give --off if the node is off; to empty a node that runs, move each guest: corpus guest move NAME NODE"))
			}
			return k.evacuate(c.Context(), args[0])
		},
	}
	c.Flags().BoolVar(&off, "off", false, "the node is off")
	return k.editFlags(c)
}

func (k *clouds) evacuate(ctx context.Context, node string) error {
	var done cloud.Evacuation
	err := k.edit(ctx, func(data *cloud.Cloud) (err error) {
		if err := hasNode(data, node); err != nil {
			return err
		}
		done, err = data.Evacuate(node, time.Now(), rand.Reader)
		return err
	})
	if err != nil {
		return err
	}
	if len(done.Data) > 0 {
		fmt.Fprintf(k.Err, "guests with data stay on node %s: %s\n", node, strings.Join(done.Data, ", "))
	}
	for _, name := range slices.Sorted(maps.Keys(done.Departs)) {
		fmt.Fprintf(k.Err, "guest %s was moving from node %s: start it with corpus guest move %s %s --stopped\n", name,
			node, name, done.Departs[name])
	}
	for _, name := range slices.Sorted(maps.Keys(done.Arrives)) {
		fmt.Fprintf(k.Err, "guest %s was moving to node %s, and has its disk on node %s: end the move with corpus guest "+
			"move %s %s --stopped, then move it back with --old-disk --stopped\n", name, node, done.Arrives[name], name, node)
	}
	if len(done.Full) == 0 {
		return nil
	}
	return exit.WithCode(exit.Failed, diag.Cloud.Hint(
		errors.New("no other node has room for "+strings.Join(done.Full, ", ")),
		"add a node, or slots, of the same environment and region, and run the command again"))
}

func (k *clouds) nodeOpen() *cobra.Command {
	return k.editFlags(&cobra.Command{
		Use: "open NAME", Short: "Let a node get guests again that was evacuated",
		Example: `  corpus node open n1 --cloud prod`, Args: cli.Args(cobra.ExactArgs(1)),
		RunE: func(c *cobra.Command, args []string) error {
			return k.edit(c.Context(), func(data *cloud.Cloud) error {
				if err := hasNode(data, args[0]); err != nil {
					return err
				}
				n := data.Nodes[args[0]]
				n.Closed = ""
				data.Nodes[args[0]] = n
				return nil
			})
		},
	})
}
