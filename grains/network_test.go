package grains_test

import (
	"context"
	"net"
	"slices"
	"testing"
	"time"

	"github.com/corpus-agent/corpus-agent/grains"
	"github.com/corpus-agent/corpus-agent/state/value"
)

func TestDomainComesFromTheCheapestSource(t *testing.T) {
	for _, c := range []struct {
		name, hostname, hosts string
		resolver              resolver
		fqdn, id              string
		asked                 bool
	}{
		{name: "in the hostname", hostname: "web1.example.com", hosts: "127.0.1.1 other.example.org web1.example.com",
			fqdn: "web1.example.com", id: "web1.example.com"},
		{name: "in /etc/hosts", hostname: "web1", hosts: "# web1.wrong\n127.0.1.1\tweb1.example.com web1",
			fqdn: "web1.example.com", id: "web1.example.com"},
		{name: "at a name server", hostname: "web1", hosts: "127.0.0.1 localhost",
			resolver: resolver{name: "web1.example.com."}, fqdn: "web1.example.com", id: "web1.example.com", asked: true},
		{name: "nowhere", hostname: "web1", fqdn: "web1", id: "web1", asked: true},
		{name: "at a name server that is silent", hostname: "web1", resolver: resolver{hang: true}, fqdn: "web1", id: "web1",
			asked: true},
		{name: "as localhost", hostname: "web1", hosts: "127.0.0.1 localhost web1", fqdn: "localhost", id: "web1"},
	} {
		t.Run(c.name, func(t *testing.T) {
			root := t.TempDir()
			write(t, root, "proc/sys/kernel/hostname", c.hostname+"\n")
			write(t, root, "etc/hosts", c.hosts)
			s := source(root)
			s.Resolver, s.Patience = &c.resolver, 20*time.Millisecond
			got := collect(t, s).Map()
			if got.Value("fqdn") != c.fqdn || got.Value("id") != c.id {
				t.Errorf("fqdn %v, id %v; want %s, %s", got.Value("fqdn"), got.Value("id"), c.fqdn, c.id)
			}
			if asked := len(c.resolver.queries) > 0; asked != c.asked {
				t.Errorf("the name server got the queries %q", c.resolver.queries)
			}
		})
	}
}

func TestAddressLookupIsLazy(t *testing.T) {
	r := &resolver{addrs: addrs("10.0.0.20")}
	s := source(hosts + "/ubuntu-22.04-on-ec2/root")
	s.Resolver = r
	facts := collect(t, s)
	if facts.Map().Has("fqdn_ip4") || len(r.queries) != 0 {
		t.Fatalf("a run without a lookup sent the queries %q", r.queries)
	}
	if got := facts.All(t.Context()).Value("fqdn_ip4"); !value.Equal(got, value.Strings("10.0.0.20")) {
		t.Errorf("fqdn_ip4 is %v", got)
	}
	if want := []string{"ip4 myapp-testing-useast1-898900.example.com"}; !slices.Equal(r.queries, want) {
		t.Errorf("the queries are %q, want %q", r.queries, want)
	}
	if got := facts.Later(); !slices.Equal(got, []string{"fqdn_ip4", "fqdn_ip6"}) {
		t.Errorf("later facts are %q", got)
	}
	r.queries = nil
	ctx, cancel := context.WithCancel(t.Context())
	all := grains.Layers{Core: facts.All(ctx), Static: value.NewMap("role", "web")}.Merge()
	cancel()
	if !all.Has("fqdn_ip6") || len(r.queries) != 0 {
		t.Errorf("all facts: fqdn_ip6 %v, queries %q", all.Has("fqdn_ip6"), r.queries)
	}
	for range 2 {
		if got := all.Value("fqdn_ip4"); !value.Equal(got, value.Strings("10.0.0.20")) {
			t.Errorf("fqdn_ip4 is %v", got)
		}
	}
	if len(r.queries) != 1 {
		t.Errorf("the queries are %q, want one query for one fact", r.queries)
	}
}

// TestInterfacesOfThisMachine compares the result of our netlink requests with that of package net.
func TestInterfacesOfThisMachine(t *testing.T) {
	s := source(t.TempDir())
	s.Interfaces = nil
	got := collect(t, s).Map()
	byName := got.Value("ip_interfaces").(*value.Map)
	all, err := net.Interfaces()
	if err != nil {
		t.Skipf("this machine does not list its interfaces: %v", err)
	}
	if len(all) != byName.Len() {
		t.Errorf("%d interfaces, want %d", byName.Len(), len(all))
	}
	for _, i := range all {
		own, err := i.Addrs()
		if err != nil {
			t.Fatal(err)
		}
		var want []string
		for _, a := range own {
			want = append(want, a.(*net.IPNet).IP.String())
		}
		list, _ := byName.Value(i.Name).(*value.List)
		var have []string
		for _, item := range list.Items {
			have = append(have, item.(string))
		}
		slices.Sort(want)
		slices.Sort(have)
		if !slices.Equal(have, want) {
			t.Errorf("%s has %q, want %q", i.Name, have, want)
		}
		if mac, _ := got.Value("hwaddr_interfaces").(*value.Map).Value(i.Name).(string); i.Flags&net.FlagLoopback == 0 &&
			mac != i.HardwareAddr.String() {
			t.Errorf("%s has hardware address %q, want %q", i.Name, mac, i.HardwareAddr)
		}
	}
}
