package cloud_test

import (
	"crypto/rand"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/corpus-agent/corpus-agent/artifact/cloud"
)

// three returns a cloud of three nodes and a guest on n1, as it is published.
func three(t *testing.T) *cloud.Cloud {
	t.Helper()
	c := cloud.New()
	c.Images["bookworm"] = cloud.Image{Project: "image", Version: "1", Digest: "sha256:" + strings.Repeat("a", 64)}
	for _, name := range []string{"n1", "n2", "n3"} {
		c.Nodes[name] = cloud.Node{Mode: "prod", Region: "eu1", Driver: cloud.DefaultDriver, Slots: 2}
	}
	c.Guests["web1"] = cloud.Guest{Node: "n1", Project: "shop", Env: "prod", Image: "bookworm", Size: "5GiB"}
	return published(t, c)
}

// published returns a cloud as its readers get it.
func published(t *testing.T, c *cloud.Cloud) *cloud.Cloud {
	t.Helper()
	if err := c.Allocate(rand.Reader); err != nil {
		t.Fatal(err)
	}
	data, err := c.Bytes()
	if err != nil {
		t.Fatal(err)
	}
	read, err := cloud.Parse(cloud.Name, data)
	if err != nil {
		t.Fatalf("%v\n%s", err, data)
	}
	return read
}

// TestMovedGuestsKeepTheirIdentity moves a guest to another node and back, with each way to get a disk.
func TestMovedGuestsKeepTheirIdentity(t *testing.T) {
	c := three(t)
	first := c.Guests["web1"]
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		c = published(t, c)
	}
	refused := func(err error, says string) {
		t.Helper()
		if err == nil || !strings.Contains(err.Error(), says) {
			t.Errorf("the error is %v, want %q", err, says)
		}
	}
	refused(c.Move("web1", "n1", cloud.Copied, rand.Reader), "is on node n1")
	refused(c.Move("web1", "n2", cloud.Returned, rand.Reader), "has no disk of guest web1")
	must(c.Move("web1", "n2", cloud.Copied, rand.Reader))
	g := c.Guests["web1"]
	if g.ID != first.ID || g.SSHPort != first.SSHPort || g.Address4 == first.Address4 || g.Address6 == first.Address6 ||
		g.Disk == "" || g.From != "n1" || g.Copy != cloud.Yes || !slices.Equal(g.Old, []string{"n1." + first.ID}) {
		t.Errorf("the guest is %+v, and was %+v", g, first)
	}
	refused(c.Move("web1", "n3", cloud.Fresh, rand.Reader), "is moving from node n1")
	refused(c.Drop("web1", "n1"), "is moving from node n1")
	c.Arrived("web1", time.Unix(1, 0))
	c = published(t, c)
	refused(c.Move("web1", "n1", cloud.Copied, rand.Reader), "still has an earlier disk")
	refused(c.Drop("web1", "n3"), "has no earlier disk")
	must(c.Move("web1", "n1", cloud.Returned, rand.Reader))
	if g := c.Guests["web1"]; g.DiskOf() != first.ID || g.Disk != "" || g.Copy != "" || len(g.OldOn("n2")) != 1 {
		t.Errorf("back on its first disk, the guest is %+v", g)
	}
	c.Arrived("web1", time.Unix(1, 0))
	old := c.Guests["web1"].OldOn("n2")[0]
	must(c.Drop("web1", "n2"))
	if _, dropped := c.Deleted[old]; !dropped || len(c.Guests["web1"].Old) > 0 || len(c.KeptOn("n2")) > 0 {
		t.Errorf("after the drop the cloud has %+v and %+v", c.Deleted, c.Guests["web1"])
	}
	must(c.Move("web1", "n3", cloud.Fresh, rand.Reader))
	c.Delete("web1")
	if c = published(t, c); len(c.Deleted) != 3 || c.Deleted[first.ID].Node != "n1" {
		t.Errorf("the deleted disks are %+v", c.Deleted)
	}
}

func TestNodesOfOtherRegionsAndFullOnesGetNoGuests(t *testing.T) {
	c := three(t)
	n := c.Nodes["n3"]
	n.Region = "us1"
	c.Nodes["n3"] = n
	n = c.Nodes["n2"]
	n.Closed = cloud.Yes
	c.Nodes["n2"] = n
	for node, says := range map[string]string{"n2": "no free slot", "n3": "in the region us1"} {
		if err := c.Move("web1", node, cloud.Fresh, rand.Reader); err == nil || !strings.Contains(err.Error(), says) {
			t.Errorf("a move to %s: %v", node, err)
		}
	}
}

// TestEvacuatedNodesKeepGuestsWithData evacuates a node whose guests have data, none, or are moving.
func TestEvacuatedNodesKeepGuestsWithData(t *testing.T) {
	c := three(t)
	n := c.Nodes["n1"]
	n.Slots = 9
	c.Nodes["n1"] = n
	n = c.Nodes["n3"]
	n.Slots = 3 // for a guest that is moving there
	c.Nodes["n3"] = n
	for _, name := range []string{"a", "b", "c", "d", "e"} {
		g := cloud.Guest{Node: "n1", Project: "shop", Env: "prod", Image: "bookworm", Size: "5GiB", Stateless: cloud.Yes}
		if name == "a" {
			g.Node = "n2"
		}
		c.Guests[name] = g
	}
	c = published(t, c)
	if err := c.Move("a", "n1", cloud.Fresh, rand.Reader); err != nil {
		t.Fatal(err)
	}
	g := cloud.Guest{Node: "n1", Project: "shop", Env: "prod", Image: "bookworm", Size: "5GiB"}
	g.Node, g.From = "n3", "n1"
	c.Guests["leaves"] = g
	g.Node, g.From = "n1", "n3"
	c.Guests["comes"] = g
	c = published(t, c)
	e, err := c.Evacuate("n1", time.Unix(1, 0), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	c = published(t, c)
	if !slices.Equal(e.Data, []string{"web1"}) || !slices.Equal(e.Full, []string{"e"}) || len(e.Moved) != 4 {
		t.Errorf("the evacuation is %+v", e)
	}
	if a := c.Guests["a"]; a.Node != "n3" || a.From != "n2" {
		t.Errorf("a guest whose move from n2 had not ended is %+v: n2 may run it", a)
	}
	if b := c.Guests["b"]; b.From != "" || b.Moved == "" || len(b.OldOn("n1")) != 1 {
		t.Errorf("an evacuated guest is %+v", b)
	}
	if len(e.Departs) != 1 || e.Departs["leaves"] != "n3" || len(e.Arrives) != 1 || e.Arrives["comes"] != "n3" {
		t.Errorf("guests that are moving from the node are %v, and to it %v", e.Departs, e.Arrives)
	}
	if c.Free("n1") != 0 || c.Guests["web1"].Node != "n1" {
		t.Errorf("the node has %d free slots, and web1 is on %s", c.Free("n1"), c.Guests["web1"].Node)
	}
}

// TestAddressesOfMovedGuestsYield has another person create a guest with the address that a moved guest got.
func TestAddressesOfMovedGuestsYield(t *testing.T) {
	base := three(t)
	mine, err := base.Clone()
	if err != nil {
		t.Fatal(err)
	}
	theirs, err := base.Clone()
	if err != nil {
		t.Fatal(err)
	}
	if err := mine.Move("web1", "n2", cloud.Fresh, rand.Reader); err != nil {
		t.Fatal(err)
	}
	mine = published(t, mine)
	theirs.Guests["db1"] = cloud.Guest{Node: "n2", Project: "shop", Env: "prod", Image: "bookworm", Size: "5GiB"}
	theirs = published(t, theirs)
	both, err := cloud.Merge(base, mine, theirs)
	if err != nil {
		t.Fatal(err)
	}
	both = published(t, both)
	if web := both.Guests["web1"]; web.Address4 == both.Guests["db1"].Address4 ||
		web.SSHPort != base.Guests["web1"].SSHPort {
		t.Errorf("the guests are %+v", both.Guests)
	}
}

// TestDisksStayCopiesUntilTheirSourceIsDropped drops two earlier disks of a guest whose disk is a copy of the second.
func TestDisksStayCopiesUntilTheirSourceIsDropped(t *testing.T) {
	c := three(t)
	for _, move := range []struct {
		node string
		way  cloud.Way
	}{{"n2", cloud.Fresh}, {"n3", cloud.Copied}} {
		if err := c.Move("web1", move.node, move.way, rand.Reader); err != nil {
			t.Fatal(err)
		}
		c.Arrived("web1", time.Unix(1, 0))
		c = published(t, c)
	}
	if err := c.Drop("web1", "n1"); err != nil {
		t.Fatal(err)
	}
	if g := c.Guests["web1"]; g.Copy != cloud.Yes || g.Source() != "n2" {
		t.Errorf("without the disk that was not copied, the guest is %+v", g)
	}
	if err := c.Drop("web1", "n2"); err != nil {
		t.Fatal(err)
	}
	if g := c.Guests["web1"]; g.Copy != "" || g.Source() != "" {
		t.Errorf("without the disk that was copied, the guest is %+v", g)
	}
}

// TestEvacuatedGuestTakesTheOnlyNode evacuates a guest without data whose only other node keeps an earlier disk of it.
func TestEvacuatedGuestTakesTheOnlyNode(t *testing.T) {
	c := three(t)
	g := c.Guests["web1"]
	g.Stateless = cloud.Yes
	c.Guests["web1"] = g
	if err := c.Move("web1", "n2", cloud.Fresh, rand.Reader); err != nil {
		t.Fatal(err)
	}
	c.Arrived("web1", time.Unix(1, 0))
	c = published(t, c)
	for _, other := range []string{"n3"} {
		n := c.Nodes[other]
		n.Closed = cloud.Yes
		c.Nodes[other] = n
	}
	e, err := c.Evacuate("n2", time.Unix(2, 0), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	if e.Moved["web1"] != "n1" || c.Guests["web1"].Node != "n1" {
		t.Fatalf("the evacuation is %+v", e)
	}
	if _, dropped := c.Deleted[g.DiskOf()]; !dropped {
		t.Errorf("the earlier disk on n1 is not removed: %+v", c.Deleted)
	}
	published(t, c)
}
