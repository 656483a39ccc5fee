package cloud

import (
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/corpus-agent/corpus-agent/state/diag"
)

// Way is how a guest that moves gets its disk on the new node.
type Way string

// The ways.
const (
	Fresh    Way = "fresh"    // made from the image, as for a new guest
	Copied   Way = "copied"   // made from an archive of the disk on the node before
	Returned Way = "returned" // the disk that the new node still has of the guest
)

// DiskOf returns the ID of the guest's present disk, by which nodes tell it from those that it had on other nodes.
func (g Guest) DiskOf() string {
	if g.Disk != "" {
		return g.Disk
	}
	return g.ID
}

// OldOn returns the IDs of the disks that a node keeps of a guest, the newest last.
func (g Guest) OldOn(node string) (disks []string) {
	for _, one := range g.Old {
		if on, disk, _ := strings.Cut(one, "."); on == node {
			disks = append(disks, disk)
		}
	}
	return disks
}

// KeptOn returns the names of the guests of which a node keeps an earlier disk.
func (c *Cloud) KeptOn(node string) (names []string) {
	for _, name := range sortedKeys(c.Guests) {
		if len(c.Guests[name].OldOn(node)) > 0 {
			names = append(names, name)
		}
	}
	return names
}

// Archive returns the file of a node that has the disk which a guest takes to its new node.
func Archive(guest, disk string) string { return Disks + "/" + guest + "-" + disk + ".tar" }

// Disks is the directory of nodes with the root file systems of guests, and with archives of those that move.
const Disks = "/var/lib/machines"

// Records is the directory of nodes with a record of each guest, and a directory with the files that it may read.
const Records = "/var/lib/corpus-guests"

// Keeps reports whether a path of a node belongs to guests as a whole: Disks and Records themselves, all that is below
// Disks, the records, and the marks of guests that are being made, which are in the directories of Records. A rollback
// does not change these: a guest that was made stays, with its record, until it is among the deleted ones. disks is
// Disks, or what that is a link to.
func Keeps(name, disks string) bool {
	if name == disks || name == Records || strings.HasPrefix(name, disks+"/") {
		return true
	}
	rest, is := strings.CutPrefix(name, Records+"/")
	_, inner, deeper := strings.Cut(rest, "/")
	return is && (!deeper || inner == "being-made")
}

// Move moves a guest to another node. The node before keeps the disk, and the new node starts the guest only after
// Arrived. The guest keeps its name, ID, names, keys and SSH port, and Allocate chooses addresses of the new node. The
// ID of a new disk is read from random.
func (c *Cloud) Move(name, node string, way Way, random io.Reader) error {
	g := c.Guests[name]
	if err := c.mayMove(name, node, way); err != nil {
		return err
	}
	disk, err := g.diskOn(node, way, random)
	if err != nil {
		return err
	}
	g.Old = slices.DeleteFunc(append(slices.Clone(g.Old), g.Node+"."+g.DiskOf()),
		func(one string) bool { return one == node+"."+disk })
	g.From, g.Node, g.Disk, g.Copy, g.Moved = g.Node, node, disk, "", ""
	if disk == g.ID {
		g.Disk = ""
	}
	if way == Copied {
		g.Copy = Yes
	}
	g.Address4, g.Address6 = "", ""
	c.Guests[name] = g
	return nil
}

// diskOn returns the ID of the disk that a guest gets on a node.
func (g Guest) diskOn(node string, way Way, random io.Reader) (string, error) {
	if kept := g.OldOn(node); way == Returned {
		return kept[len(kept)-1], nil
	}
	return newDisk(random)
}

// newDisk returns the ID of a new disk.
func newDisk(random io.Reader) (string, error) {
	return newID(random, "choosing the ID of a disk")
}

func (c *Cloud) mayMove(name, node string, way Way) error {
	g := c.Guests[name]
	from, to := c.Nodes[g.Node], c.Nodes[node]
	switch {
	case g.Node == node:
		return diag.Cloud.Hint(fmt.Errorf("guest %s is on node %s", name, node), "corpus guest info %s shows it", name)
	case g.From != "":
		return g.moving(name)
	case from.Region != to.Region:
		return diag.Cloud.Hint(
			fmt.Errorf("node %s is in the region %s, and guest %s in %s", node, to.Region, name, from.Region),
			"the hostname of a guest contains its region: choose a node of %s, or create another guest", from.Region)
	case c.Free(node) == 0:
		return diag.Cloud.Hint(fmt.Errorf("node %s has no free slot", node), "corpus node ls lists the free slots")
	}
	return g.mayTake(name, node, way)
}

// moving returns the error for a guest whose move has not ended.
func (g Guest) moving(name string) error {
	return diag.Cloud.Hint(fmt.Errorf("guest %s is moving from node %s to %s", name, g.From, g.Node),
		"finish that first: corpus guest move %s %s", name, g.Node)
}

// mayTake returns an error if a guest cannot get its disk on a node in this way.
func (g Guest) mayTake(name, node string, way Way) error {
	switch kept := g.OldOn(node); {
	case way == Returned && len(kept) == 0:
		return diag.Cloud.Hint(fmt.Errorf("node %s has no disk of guest %s", node, name),
			"corpus guest info %s lists them", name)
	case way != Returned && len(kept) > 0:
		return diag.Cloud.Hint(fmt.Errorf("node %s still has an earlier disk of guest %s", node, name),
			"remove it with `corpus guest drop %s %s`, or give --old-disk to go back to it", name, node)
	}
	return nil
}

// Arrived ends the move of a guest whose node before runs it no more: the new node starts it. Its reports count from
// the second after this one.
func (c *Cloud) Arrived(name string, at time.Time) {
	g := c.Guests[name]
	g.From, g.Moved = "", at.Truncate(time.Second).Add(time.Second).UTC().Format(time.RFC3339)
	c.Guests[name] = g
}

// Source returns the node with the disk from which the guest's present one is made; "" if that is not a copy.
func (g Guest) Source() string {
	if g.Copy == "" || len(g.Old) == 0 {
		return ""
	}
	node, _, _ := strings.Cut(g.Old[len(g.Old)-1], ".")
	return node
}

// Drop removes the disks that a node keeps of a guest which has moved away from it. A disk that is made from a disk of
// another node remains a copy of that one: its node may still wait for the archive.
func (c *Cloud) Drop(name, node string) error {
	g := c.Guests[name]
	disks := g.OldOn(node)
	switch {
	case len(disks) == 0:
		return diag.Cloud.Hint(fmt.Errorf("node %s has no earlier disk of guest %s", node, name),
			"corpus guest info %s lists the earlier disks", name)
	case g.From != "":
		return g.moving(name)
	}
	for _, disk := range disks {
		c.Deleted[disk] = Deleted{Guest: name, Node: node}
	}
	if node == g.Source() {
		g.Copy = ""
	}
	g.Old = slices.DeleteFunc(slices.Clone(g.Old), func(one string) bool { return strings.HasPrefix(one, node+".") })
	c.Guests[name] = g
	return nil
}

// Delete removes a guest with all of its disks.
func (c *Cloud) Delete(name string) {
	g := c.Guests[name]
	if g.ID != "" {
		c.Deleted[g.DiskOf()] = Deleted{Guest: name, Node: g.Node, SSHPort: g.SSHPort, Address4: g.Address4,
			Address6: g.Address6}
	}
	for _, one := range g.Old {
		node, disk, _ := strings.Cut(one, ".")
		c.Deleted[disk] = Deleted{Guest: name, Node: node}
	}
	delete(c.Guests, name)
}

// Evacuation is what became of the guests of a node that is gone.
type Evacuation struct {
	Moved   map[string]string `json:"moved"`   // the new node of each guest that was moved
	Data    []string          `json:"data"`    // guests that stay, since their disks are on the node
	Full    []string          `json:"full"`    // guests that stay, since no other node has room
	Departs map[string]string `json:"departs"` // the new node of each guest whose move from the node has not ended
	Arrives map[string]string `json:"arrives"` // the present node of each guest with data that was to move to the node
}

// Evacuate closes a node, which must be off, and moves its guests without data to other nodes. All others stay.
func (c *Cloud) Evacuate(node string, at time.Time, random io.Reader) (Evacuation, error) {
	e := Evacuation{Moved: map[string]string{}, Data: []string{}, Full: []string{}, Departs: map[string]string{},
		Arrives: map[string]string{}}
	for name, g := range c.Guests {
		if g.From == node {
			e.Departs[name] = g.Node
		}
	}
	n := c.Nodes[node]
	n.Closed = Yes
	c.Nodes[node] = n
	for _, name := range c.On(node) {
		g := c.Guests[name]
		switch {
		case g.Stateless == Yes:
		case g.From != "":
			e.Arrives[name] = g.From
			continue
		default:
			e.Data = append(e.Data, name)
			continue
		}
		near := func(other string) bool { return c.Nodes[other].Region == n.Region }
		to := c.place(g.Env, func(other string) bool { return near(other) && len(g.OldOn(other)) == 0 })
		if to == "" {
			to = c.place(g.Env, near)
		}
		if to == "" {
			e.Full = append(e.Full, name)
			continue
		}
		if err := c.rescue(name, to, at, random); err != nil {
			return e, err
		}
		e.Moved[name] = to
	}
	return e, nil
}

// rescue moves a guest without data from a node that is off. An earlier disk of it on the new node is removed.
func (c *Cloud) rescue(name, to string, at time.Time, random io.Reader) error {
	g := c.Guests[name]
	before := g.From // a node that still may run it
	g.From, g.Copy = "", ""
	c.Guests[name] = g
	if len(g.OldOn(to)) > 0 {
		if err := c.Drop(name, to); err != nil {
			return err
		}
	}
	if err := c.Move(name, to, Fresh, random); err != nil {
		return err
	}
	if c.Arrived(name, at); before != "" {
		g = c.Guests[name]
		g.From, g.Moved = before, ""
		c.Guests[name] = g
	}
	return nil
}
