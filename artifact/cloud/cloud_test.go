package cloud_test

import (
	"bytes"
	"crypto/rand"
	"encoding/base64"
	"errors"
	"fmt"
	"net/netip"
	"reflect"
	"strings"
	"testing"

	"github.com/corpus-agent/corpus-agent/artifact/cloud"
	"github.com/corpus-agent/corpus-agent/grains"
	"github.com/corpus-agent/corpus-agent/state/diag"
)

func sshKey(comment string) string {
	raw := append([]byte("\x00\x00\x00\x0bssh-ed25519\x00\x00\x00\x20"), bytes.Repeat([]byte{7}, 32)...)
	return "ssh-ed25519 " + base64.StdEncoding.EncodeToString(raw) + " " + comment
}

// sample returns a cloud with two nodes and a guest on the first of them.
func sample(t testing.TB) *cloud.Cloud {
	t.Helper()
	c := cloud.New()
	c.Domain = "cloud.example.com"
	c.Images["bookworm"] = cloud.Image{Project: "image-bookworm", Version: "1.0",
		Digest: "sha256:" + strings.Repeat("ab", 32)}
	c.Nodes["n1"] = cloud.Node{Mode: "prod", Region: "eu1", Address: "192.0.2.1", Driver: "nspawn", Slots: 3}
	c.Nodes["n2"] = cloud.Node{Mode: "prod", Region: "eu1", Address: "192.0.2.2", Driver: "nspawn", Slots: 20}
	c.Guests["web1"] = guest("n1")
	allocate(t, c)
	return c
}

func guest(node string) cloud.Guest {
	return cloud.Guest{Node: node, Project: "shop", Env: "prod", Image: "bookworm", Size: "5GiB",
		SSHKeys: []string{sshKey("ann@example.com")}}
}

func allocate(t testing.TB, c *cloud.Cloud) {
	t.Helper()
	if err := c.Allocate(rand.Reader); err != nil {
		t.Fatal(err)
	}
	if err := c.Check(); err != nil {
		t.Fatal(err)
	}
}

func clone(t testing.TB, c *cloud.Cloud) *cloud.Cloud {
	t.Helper()
	copied, err := c.Clone()
	if err != nil {
		t.Fatal(err)
	}
	return copied
}

func TestACloudIsReadAsItIsWritten(t *testing.T) {
	c := sample(t)
	text, err := c.Bytes()
	if err != nil {
		t.Fatal(err)
	}
	again, err := cloud.Parse("cloud.yaml", text)
	if err != nil {
		t.Fatalf("%v\n%s", err, text)
	}
	if !reflect.DeepEqual(c, again) {
		t.Errorf("%+v was written, and read as %+v", c, again)
	}
	if twice, err := again.Bytes(); err != nil || !bytes.Equal(text, twice) {
		t.Errorf("the cloud is written in two ways:\n%s\n%s (%v)", text, twice, err)
	}
}

func TestHostnamesGiveIdentities(t *testing.T) {
	c := sample(t)
	for name, service := range map[string]string{c.Hostname("web1"): "shop", c.NodeHostname("n1", "prod"): "cloud"} {
		identity, err := grains.Parse(name, grains.Convention{})
		if err != nil || identity.Service != service || identity.Instance != "prod" || identity.Region != "eu1" {
			t.Errorf("%s is %+v (%v)", name, identity, err)
		}
	}
}

// TestAllocationIsUnique fills nodes with guests, deletes some, and adds others.
func TestAllocationIsUnique(t *testing.T) {
	c := sample(t)
	freed := c.Guests["web1"]
	for i := range 15 {
		c.Guests[fmt.Sprintf("g%d", i)] = guest("n2")
		allocate(t, c)
	}
	delete(c.Guests, "web1")
	c.Guests["web1"] = guest("n1")
	c.Guests["web2"] = guest("n1")
	allocate(t, c)
	addresses := map[string]bool{}
	for name, g := range c.Guests {
		for _, one := range []string{g.Address4, g.Address6, fmt.Sprint(g.SSHPort), g.ID} {
			if addresses[one] {
				t.Errorf("%s has %s, which another guest has as well", name, one)
			}
			addresses[one] = true
		}
		n := c.Nodes[g.Node]
		if !netip.MustParsePrefix(n.Range4).Contains(netip.MustParseAddr(g.Address4)) ||
			!netip.MustParsePrefix(n.Range6).Contains(netip.MustParseAddr(g.Address6)) {
			t.Errorf("%s has addresses outside of %s's networks: %+v", name, g.Node, g)
		}
	}
	if now := c.Guests["web1"]; now.ID == freed.ID || now.SSHPort == freed.SSHPort {
		t.Errorf("a new guest has the addresses of the deleted one: %+v", now)
	}
}

// TestWhatTheNewestGuestHadIsUsedLast deletes the guest with the highest addresses and port.
func TestWhatTheNewestGuestHadIsUsedLast(t *testing.T) {
	c := sample(t)
	c.Guests["r1"] = guest("n2")
	allocate(t, c)
	before := c.Guests["r1"]
	c.Delete("r1")
	c.Guests["r2"] = guest("n2")
	allocate(t, c)
	if now := c.Guests["r2"]; now.SSHPort == before.SSHPort || now.Address4 == before.Address4 ||
		now.Address6 == before.Address6 {
		t.Errorf("the guest after %+v is %+v", before, now)
	}
}

func TestAllocationEnds(t *testing.T) {
	c := sample(t)
	n := c.Nodes["n2"]
	n.Range4 = "10.99.0.0/29" // six addresses, one of which the bridge has
	c.Nodes["n2"] = n
	for i := range 5 {
		c.Guests[fmt.Sprintf("g%d", i)] = guest("n2")
	}
	allocate(t, c)
	c.Guests["g5"] = guest("n2")
	if err := c.Allocate(rand.Reader); err == nil || diag.HintOf(err) == "" {
		t.Errorf("a network without addresses: %v", err)
	}
	for i := range cloud.LastPort - cloud.FirstPort {
		c.Guests[fmt.Sprintf("h%d", i)] = cloud.Guest{SSHPort: cloud.FirstPort + i}
	}
	delete(c.Guests, "g5")
	c.Nodes["n3"] = cloud.Node{Mode: "prod", Region: "eu1", Driver: "nspawn", Slots: 20}
	c.Guests["g6"], c.Guests["g7"] = guest("n3"), guest("n3")
	if err := c.Allocate(rand.Reader); err == nil || !strings.Contains(err.Error(), "ports of 40000 to 50000") {
		t.Errorf("no port is free: %v", err)
	}
}

func TestNodesGetNetworksOfTheirOwn(t *testing.T) {
	c := cloud.New()
	c.Range4 = "10.0.0.0/22"
	c.Nodes["wide"] = cloud.Node{Mode: "dev", Region: "eu1", Driver: "nspawn", Slots: 1, Range4: "10.0.0.0/23"}
	c.Nodes["a"] = cloud.Node{Mode: "dev", Region: "eu1", Driver: "nspawn", Slots: 1}
	c.Nodes["b"] = cloud.Node{Mode: "dev", Region: "eu1", Driver: "nspawn", Slots: 1}
	allocate(t, c)
	if c.Nodes["a"].Range4 != "10.0.2.0/24" || c.Nodes["b"].Range4 != "10.0.3.0/24" {
		t.Errorf("the networks are %+v", c.Nodes)
	}
	c.Nodes["c"] = cloud.Node{Mode: "dev", Region: "eu1", Driver: "nspawn", Slots: 1}
	if err := c.Allocate(rand.Reader); err == nil || !strings.Contains(err.Error(), "no free network") {
		t.Errorf("a fourth network: %v", err)
	}
}

// TestMistakesAreNamedWithTheirPlaces makes one mistake in a valid file.
func TestMistakesAreNamedWithTheirPlaces(t *testing.T) {
	c := sample(t)
	c.Guests["web2"] = guest("n1")
	allocate(t, c)
	good, err := c.Bytes()
	if err != nil {
		t.Fatal(err)
	}
	g := c.Guests["web2"]
	for _, m := range []struct{ old, new, says string }{
		{"form: 1", "form: 2", "form is 2"},
		{"form: 1", "- 1", "not YAML"},
		{"form: 1", "form: 1\nguest: {}", `did you mean "guests"?`},
		{"form: 1", "form: 1\nform: 1", "form is given twice"},
		{"    mode: prod", "    mode: prd", `did you mean "prod"?`},
		{"    region: eu1", "    region: eu", "the last a digit"},
		{"    slots: 3", "    slots: 1", "it has 2 guests and 1 slot"},
		{"    slots: 3", "    slots: 0x3", "a whole number was expected"},
		{"    slots: 3", "    slots: 5000", "a node cannot have 5000 slots"},
		{c.Guests["web1"].Address4, g.Address4, "is that of guests.web1.address4"},
		{g.Address4, "10.80.1.9", "is not the address of a guest"},
		{g.Address4, "10.80.0.1", "is not the address of a guest"},
		{g.Address4, "010.80.0.5", "is not the address of a host"},
		{g.Address6, "::1", "is not the address of a host"},
		{fmt.Sprint(g.SSHPort), "40000", "is that of guests.web1.ssh_port"},
		{fmt.Sprint(g.SSHPort), "22", "22 is not a port of 40000 to 50000"},
		{g.ID, c.Guests["web1"].ID, "is that of guests.web1.id"},
		{"  web2:\n", "  web-2:\n", "such as web1"},
		{"  web2:\n", "  web1:\n", "web1 is given twice"},
		{"    node: n1", "    node: n7", "there is no node n7"},
		{"    image: bookworm", "    image: bookwurm", `did you mean "bookworm"?`},
		{"    size: \"5GiB\"", "    size: 5GB", "such as 5GiB"},
		{"    size: \"5GiB\"", "    size: &x 5GiB", "a text was expected"},
		{"    size: \"5GiB\"", "    size: ~", "a text was expected"},
		{"    size: \"5GiB\"", "    names: [WWW.example.com]", "in lower case"},
		{"    size: \"5GiB\"", "    names: [\"a.b acl x\"]", "is not allowed"},
		{"    size: \"5GiB\"", "    size: 5GiB\n    names: [web1.cloud.example.com]",
			"the name web1.cloud.example.com is that of"},
		{"    size: \"5GiB\"", "    size: 5GiB\n    names: [n2.cloud.example.com]",
			"the name n2.cloud.example.com is that of nodes.n2"},
		{"    size: \"5GiB\"", "    size: 5GiB\n    names: [web2.guests.cloud.example.com]",
			"the name web2.guests.cloud.example.com is that of"},
		{"  web2:\n", "  n2:\n", "the name n2.cloud.example.com is that of nodes.n2"},
		{"    size: \"5GiB\"", "    size: 5GiB\n    names: [a.example.com, a.example.com]", "is given twice"},
		{"ssh-ed25519 AAAA", "ssh-rsa AAAA", "not a public SSH key"},
		{"ssh-ed25519 AAAA", "command=x ssh-ed25519 AAAA", "not a public SSH key"},
		{"sha256:ab", "sha256:zz", "images.bookworm.digest"},
		{"    address: \"192.0.2.2\"", "    address: 10.80.0.9", "a network of guests"},
		{c.Nodes["n2"].Range4, c.Nodes["n1"].Range4, "overlaps"},
		{c.Nodes["n2"].Range4, "10.80.1.5/24", "its first address and a length"},
	} {
		text := strings.Replace(string(good), m.old, m.new, 1)
		if text == string(good) {
			t.Errorf("the file has no %q", m.old)
		}
		read, err := cloud.Parse("cloud.yaml", []byte(text))
		var list diag.List
		if !errors.As(err, &list) || read != nil && m.new == "- 1" {
			t.Errorf("%q in the place of %q: %v", m.new, m.old, err)
			continue
		}
		found := false
		for _, d := range list {
			found = found || strings.Contains(d.Text(), m.says)
			if d.Pos.File != "cloud.yaml" || d.Pos.Line == 0 || d.Hint == "" {
				t.Errorf("%q: %q has no position or no hint: %v", m.new, d.Text(), d.Pos)
			}
		}
		if !found {
			t.Errorf("%q: the error is %q, want %q", m.new, err, m.says)
		}
	}
}

func TestPlaceTakesTheNodeWithMostFreeSlots(t *testing.T) {
	c := sample(t)
	if node := c.Place("prod"); node != "n2" {
		t.Errorf("a guest is placed on %q", node)
	}
	if node := c.Place("dev"); node != "" {
		t.Errorf("a dev guest is placed on %q", node)
	}
}

// TestNetworksOfGuestsAreOfHosts checks networks that node add may get.
func TestNetworksOfGuestsAreOfHosts(t *testing.T) {
	for text, good := range map[string]bool{"10.80.0.0/24": true, "192.0.2.0/24": true, "100.64.0.0/16": true,
		"127.0.0.0/24": false, "224.0.0.0/24": false, "0.0.0.0/8": false, "169.254.1.0/24": false, "240.0.0.0/24": false,
		"169.0.0.0/8": false} {
		if err := cloud.CheckRange4(text); (err == nil) != good {
			t.Errorf("%s: %v", text, err)
		}
	}
	for text, good := range map[string]bool{"fd12:3456:789a::/64": true, "2001:db8::/64": true, "fe80::/64": false,
		"ff02::/64": false, "::/64": false} {
		if err := cloud.CheckRange6(text); (err == nil) != good {
			t.Errorf("%s: %v", text, err)
		}
	}
}

// TestGuestsHaveNamesOfTheirOwn checks guests whose names, or hostnames, would be those of other hosts.
func TestGuestsHaveNamesOfTheirOwn(t *testing.T) {
	for name, project := range map[string]string{"web1": "shop", "localhost": "shop", "ip6localhost": "shop", "n1": "shop",
		"root": "shop", "web2": "cloud"} {
		c := cloud.New()
		c.Images["tiny"] = cloud.Image{}
		c.Nodes["n1"] = cloud.Node{Mode: "prod", Region: "eu1", Driver: cloud.Nspawn, Slots: 9}
		c.Guests[name] = cloud.Guest{Node: "n1", Project: project, Env: "prod", Image: "tiny", Size: "5GiB"}
		if err := c.Check(); (err == nil) != (name == "web1") {
			t.Errorf("guest %s of %s: %v", name, project, err)
		}
	}
}
