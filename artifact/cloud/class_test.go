package cloud_test

import (
	"fmt"
	"net/netip"
	"strings"
	"testing"

	"github.com/corpus-agent/corpus-agent/artifact/cloud"
)

// class returns a class with a rule.
func class(members int) cloud.Class {
	return cloud.Class{Project: "shop", Env: "prod", Region: "eu1", Image: "bookworm", Min: 2, Max: members,
		Metric: "busy", Answers: ":8080/metrics",
		Above: "50", Below: "10", For: "5m", Drain: "10m", Away: "10m", Size: "1GiB"}
}

// TestNoTwoHostsGetOneAddress fills a cloud with classes and guests, and compares all that may ever run.
func TestNoTwoHostsGetOneAddress(t *testing.T) {
	c := sample(t)
	c.Nodes["small"] = cloud.Node{Mode: "prod", Region: "eu1", Driver: "nspawn", Slots: 20, Range4: "192.168.7.0/26"}
	c.Nodes["tiny"] = cloud.Node{Mode: "prod", Region: "eu1", Driver: "nspawn", Slots: 20, Range4: "192.168.8.0/29"}
	c.Nodes["dev"] = cloud.Node{Mode: "dev", Region: "eu1", Driver: "nspawn", Slots: 20}
	for i, members := range []int{4, 2, 9, 5} {
		c.Classes["class"+strings.Repeat("x", i)] = class(members)
	}
	allocate(t, c)
	for i := range 15 {
		c.Guests[fmt.Sprint("guest", i)] = guest("n2")
	}
	allocate(t, c)
	seen := map[string]string{}
	once := func(host, value string) {
		if other, taken := seen[value]; taken && other != host {
			t.Errorf("%s and %s both have %s", host, other, value)
		}
		seen[value] = host
	}
	for name, g := range c.Guests {
		for _, value := range []string{g.Address4, g.Address6, g.ID, fmt.Sprint(g.SSHPort)} {
			once(name, value)
		}
	}
	for name, of := range c.Classes {
		for number := 1; number <= of.Max; number++ {
			member := cloud.MemberName(name, number)
			for node, n := range c.Nodes {
				if may := c.MayRun(name, node); may == (node == "dev" || node == "tiny") {
					t.Errorf("node %s may run %s: %t", node, member, may)
				}
				if !c.MayRun(name, node) {
					continue
				}
				g := c.Member(name, number, node)
				for _, value := range []string{g.Address4, g.Address6, g.ID} {
					once(member+" on "+node, value)
				}
				once(member, fmt.Sprint(g.SSHPort))
				if !netip.MustParsePrefix(n.Range4).Contains(netip.MustParseAddr(g.Address4)) {
					t.Errorf("%s has the address %s on %s", member, g.Address4, n.Range4)
				}
			}
		}
	}
}

// TestClassesKeepWhatTheyHave checks that a class with a larger maximum has the same members as before.
func TestClassesKeepWhatTheyHave(t *testing.T) {
	c := sample(t)
	c.Classes["app"] = class(4)
	allocate(t, c)
	before := c.Member("app", 4, "n1")
	of := c.Classes["app"]
	of.Max = 8
	c.Classes["app"] = of
	allocate(t, c)
	got := c.Member("app", 4, "n1")
	if got.Address4 != before.Address4 || got.SSHPort != before.SSHPort || got.ID != before.ID {
		t.Errorf("member 4 was %+v, and is %+v", before, got)
	}
	text, err := c.Bytes()
	if err != nil {
		t.Fatal(err)
	}
	again, err := cloud.Parse("cloud.yaml", text)
	if err != nil || again.Classes["app"].FirstPort != c.Classes["app"].FirstPort {
		t.Errorf("%v\n%s", err, text)
	}
}

func TestContradictionsOfClassesAreRefused(t *testing.T) {
	for says, change := range map[string]func(c *cloud.Cloud, of *cloud.Class){
		"a class cannot have 3 to 2 members":   func(_ *cloud.Cloud, of *cloud.Class) { of.Min, of.Max = 3, 2 },
		"a class cannot have 0 to 4 members":   func(_ *cloud.Cloud, of *cloud.Class) { of.Min = 0 },
		"a class cannot have 1 to 101 members": func(_ *cloud.Cloud, of *cloud.Class) { of.Min, of.Max = 1, 101 },
		"50 is not below 50":                   func(_ *cloud.Cloud, of *cloud.Class) { of.Below = "50" },
		"a part of the rule is missing":        func(_ *cloud.Cloud, of *cloud.Class) { of.Answers = "" },
		"nothing decides how many of 2 to 4":   func(_ *cloud.Cloud, of *cloud.Class) { *of = without(*of) },
		"there is no image trixie":             func(_ *cloud.Cloud, of *cloud.Class) { of.Image = "trixie" },
		"of a member is too long": func(_ *cloud.Cloud, of *cloud.Class) {
			of.Project = strings.Repeat("p", 50)
		},
		"a member has the address of guests.web1":   func(_ *cloud.Cloud, of *cloud.Class) { of.FirstAddress = 2 },
		"the addresses below number 2 are those of": func(_ *cloud.Cloud, of *cloud.Class) { of.FirstAddress = 1 },
		"49999 to 50002 are not ports":              func(_ *cloud.Cloud, of *cloud.Class) { of.FirstPort = 49999 },
		"the port 40000 is that of":                 func(_ *cloud.Cloud, of *cloud.Class) { of.FirstPort = 40000 },
		"the guest app3 is that of": func(c *cloud.Cloud, _ *cloud.Class) {
			c.Guests["app3"] = cloud.Guest{Node: "n1", Project: "shop", Env: "prod", Image: "bookworm", Size: "1GiB"}
		},
		"the members have addresses of those of app": func(c *cloud.Cloud, of *cloud.Class) {
			other := class(3)
			other.FirstAddress = of.FirstAddress + 3
			c.Classes["other"] = other
		},
		"the name app2.cloud.example.com is that of": func(c *cloud.Cloud, _ *cloud.Class) {
			c.Nodes["app2"] = cloud.Node{Mode: "dev", Region: "eu1", Driver: "nspawn", Slots: 1}
		},
	} {
		c := sample(t)
		c.Classes["app"] = class(4)
		allocate(t, c)
		of := c.Classes["app"]
		change(c, &of)
		c.Classes["app"] = of
		if err := c.Check(); err == nil || !strings.Contains(err.Error(), says) {
			t.Errorf("want %q: %v", says, err)
		}
	}
}

// without returns a class without its rule.
func without(of cloud.Class) cloud.Class {
	of.Metric, of.Answers, of.Above, of.Below, of.For = "", "", "", "", ""
	return of
}

// TestTwoPeopleAddClasses checks that classes that two people add at the same time get different ports and addresses.
func TestTwoPeopleAddClasses(t *testing.T) {
	base := sample(t)
	mine, theirs := clone(t, base), clone(t, base)
	mine.Classes["app"], theirs.Classes["cart"] = class(4), class(6)
	allocate(t, mine)
	allocate(t, theirs)
	joined, err := cloud.Merge(base, mine, theirs)
	if err != nil {
		t.Fatal(err)
	}
	allocate(t, joined)
	if joined.Classes["cart"].FirstPort != theirs.Classes["cart"].FirstPort {
		t.Error("what is published has changed")
	}
}
