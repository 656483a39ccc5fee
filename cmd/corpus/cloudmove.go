package main

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/corpus-agent/corpus-agent/agent/exit"
	"github.com/corpus-agent/corpus-agent/artifact/cloud"
	"github.com/corpus-agent/corpus-agent/cmd/cli"
	"github.com/corpus-agent/corpus-agent/state/diag"
)

// moving is a move of a guest, as it was ordered.
type moving struct {
	guest, node          string
	empty, copied, again bool          // how the disk gets there
	stopped              bool          // a person says that the node before does not run the guest
	wait                 time.Duration // for the report of the node before
}

func (k *clouds) guestMove() *cobra.Command {
	m := moving{}
	c := &cobra.Command{
		Use:   "move NAME NODE",
		Short: "Move a guest to another node",
		Long: `move publishes twice. The first version stops the guest on its node, which keeps the disk. When that node reports
that it runs this version, the second one starts the guest on the new node, so that never two run. A command that was interrupted
is finished by running it again.

The guest keeps its hostname, machine ID, names, keys and SSH port, and gets addresses of the new node. A guest that was created with
--stateless gets a new disk from its image. Any other needs --copy (its node makes an archive of the disk, and move prints the
command that copies it), --empty, or --old-disk for the disk that the new node still has of it. Disks of nodes before stay until
"corpus guest drop".

The node has to upload reports (reports.upload). With --stopped its report is not awaited: say so only of a node that is off and
stays off, or on which you have stopped the guest.`,
		Example: `  corpus guest move web1 n2 --cloud prod
  corpus guest move db1 n2 --copy --cloud prod`,
		Args: cli.Args(cobra.ExactArgs(2)),
		RunE: func(c *cobra.Command, args []string) error {
			m.guest, m.node = args[0], args[1]
			return k.move(c.Context(), m)
		},
	}
	m.flags(c)
	return k.editFlags(c)
}

func (m *moving) flags(c *cobra.Command) {
	f := c.Flags()
	f.BoolVar(&m.empty, "empty", false, "make a new disk from the image, without the data of the guest")
	f.BoolVar(&m.copied, "copy", false, "make the disk from an archive of the present one, which a person copies")
	f.BoolVar(&m.again, "old-disk", false, "take the disk that the new node still has of the guest")
	f.BoolVar(&m.stopped, "stopped", false, "the node before does not run the guest: do not wait for its report")
	f.DurationVar(&m.wait, "wait", 10*time.Minute, "how long to wait for the report of the node before")
	c.MarkFlagsMutuallyExclusive("empty", "copy", "old-disk")
}

// way returns how a guest gets its disk.
func (m moving) way(g cloud.Guest) (cloud.Way, error) {
	switch {
	case m.copied:
		return cloud.Copied, nil
	case m.again:
		return cloud.Returned, nil
	case m.empty, g.Stateless == cloud.Yes:
		return cloud.Fresh, nil
	}
	return "", diag.Cloud.Hint(fmt.Errorf("guest %s has a disk with data on node %s", m.guest, g.Node),
		"give --copy to take the disk along, or --empty for a new one; the node keeps the old one")
}

// continues returns an error if the flags ask for another disk than that of the move under way.
func (m moving) continues(g cloud.Guest) error {
	copied := g.Copy == cloud.Yes
	if copied == m.copied || !m.copied && !m.empty && !m.again {
		return nil
	}
	says := "without a copy of its disk"
	if copied {
		says = "with a copy of its disk"
	}
	return diag.Cloud.Hint(fmt.Errorf("guest %s is moving from node %s to %s already, %s", m.guest, g.From, g.Node, says),
		"continue that move: corpus guest move %s %s", m.guest, m.node)
}

func (k *clouds) move(ctx context.Context, m moving) error {
	now, done, err := k.read(ctx)
	if err != nil {
		return err
	}
	done()
	if err := errors.Join(hasGuest(now.data, m.guest), hasNode(now.data, m.node)); err != nil {
		return err
	}
	if g := now.data.Guests[m.guest]; g.From != "" && g.Node == m.node {
		if err := m.continues(g); err != nil {
			return exit.WithCode(exit.Usage, err)
		}
		return k.arrive(ctx, m, g.From)
	}
	from := now.data.Guests[m.guest].Node
	k.unanswered = !m.stopped && !k.dry && k.json // the answer is that of the second change
	err = k.edit(ctx, m.leave)
	k.unanswered = false
	switch {
	case err != nil || k.dry || k.drafted != nil:
		return err
	case m.stopped:
		return k.howToCopy(ctx, m)
	}
	return k.arrive(ctx, m, from)
}

// leave is the first change of a move, or the whole one if a person says that the guest is stopped.
func (m moving) leave(data *cloud.Cloud) error {
	if err := hasGuest(data, m.guest); err != nil {
		return err
	}
	way, err := m.way(data.Guests[m.guest])
	if err != nil {
		return err
	}
	err = data.Move(m.guest, m.node, way, rand.Reader)
	if err == nil && m.stopped {
		data.Arrived(m.guest, time.Now())
	}
	return err
}

// pollEvery is the time between two looks at the reports of a node.
const pollEvery = 5 * time.Second

// arrive waits until the node before has reported that it runs the published cloud, and lets the new node start the
// guest.
func (k *clouds) arrive(ctx context.Context, m moving, from string) error {
	if !m.stopped {
		if err := k.awaitStop(ctx, m, from); err != nil {
			return err
		}
	}
	err := k.edit(ctx, func(data *cloud.Cloud) error {
		if g, there := data.Guests[m.guest]; !there || g.From != from || g.Node != m.node {
			return diag.Cloud.Hint(fmt.Errorf("another person has changed the move of guest %s", m.guest),
				"corpus guest info %s shows where it is", m.guest)
		}
		data.Arrived(m.guest, time.Now())
		return nil
	})
	if err != nil || k.dry || k.drafted != nil {
		return err
	}
	return k.howToCopy(ctx, m)
}

func (k *clouds) awaitStop(ctx context.Context, m moving, from string) error {
	fmt.Fprintf(k.Err, "waiting up to %s until node %s reports that it has stopped %s\n", m.wait, from, m.guest)
	for end := time.Now().Add(m.wait); ; {
		stopped, host, err := k.follows(ctx, from)
		if err != nil || stopped {
			return err
		}
		if !time.Now().Add(pollEvery).Before(end) {
			return exit.WithCode(exit.Failed, diag.Cloud.Hint(
				fmt.Errorf("%s has not reported yet that it runs the published cloud, in which guest %s is stopped there",
					host, m.guest),
				"see `corpus host show %s`, then continue: corpus guest move %s %s; if the node is off and stays off, add "+
					"--stopped", host, m.guest, m.node))
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(pollEvery):
		}
	}
}

// howToCopy prints the command that copies the disk of a guest to its new node.
func (k *clouds) howToCopy(ctx context.Context, m moving) error {
	now, done, err := k.read(ctx)
	if err != nil {
		return err
	}
	defer done()
	g := now.data.Guests[m.guest]
	if g.Copy == "" || len(g.Old) == 0 {
		return nil
	}
	before, _, _ := strings.Cut(g.Old[len(g.Old)-1], ".")
	from, to := addressOf(now.data, before), addressOf(now.data, g.Node)
	file := cloud.Archive(m.guest, g.Disk)
	_, err = fmt.Fprintf(k.Err, "node %s starts %s when it has the disk, which this command copies:\n"+
		"    scp -3 root@%s:%s root@%s:%s.part && ssh root@%s 'sync %s.part && mv %s.part %s'\n", g.Node, m.guest,
		inBrackets(from), file, inBrackets(to), file, to, file, file, file)
	return err
}

// inBrackets returns an address as scp takes it: an IPv6 address in brackets.
func inBrackets(address string) string {
	if strings.Contains(address, ":") {
		return "[" + address + "]"
	}
	return address
}

// addressOf returns the address of a node, or its name if the cloud does not have it.
func addressOf(c *cloud.Cloud, node string) string { return cmp.Or(c.Nodes[node].Address, node) }
