package grains

import (
	"context"
	"net/netip"
	"os"
	"strings"

	"github.com/corpus-agent/corpus-agent/state/value"
)

// hostname returns the name from which the identity is parsed: the machine's, or that of the tree that is read in its
// place.
func (c *collector) hostname() string {
	if name := c.machine.line("proc/sys/kernel/hostname"); name != "" || c.Machine != "" {
		return name
	}
	name, err := os.Hostname()
	_ = c.machineErrors.Note("the hostname", err)
	return name
}

func (c *collector) names(ctx context.Context) {
	hostname := c.hostname()
	fqdn := c.fqdn(ctx, hostname)
	host, domain, _ := strings.Cut(fqdn, ".")
	c.set("nodename", hostname)
	c.set("localhost", hostname)
	c.set("fqdn", fqdn)
	c.set("host", host)
	c.set("domain", domain)
}

// fqdn returns the canonical name of the hostname according to the resolver. A hostname with a domain is returned
// unchanged, so that most hosts query no name server.
func (c *collector) fqdn(ctx context.Context, hostname string) string {
	if hostname == "" {
		return "localhost.localdomain"
	}
	if strings.Contains(hostname, ".") {
		return hostname
	}
	if name := canonical(c.machine.read("etc/hosts"), hostname); name != "" {
		return name
	}
	ctx, cancel := context.WithTimeout(ctx, c.Patience)
	defer cancel()
	name, err := c.Resolver.LookupCNAME(ctx, hostname)
	if name = strings.TrimSuffix(name, "."); err != nil || name == "" {
		return hostname
	}
	return name
}

// canonical finds a name in a hosts file and returns the first name of its line.
func canonical(hosts, name string) string {
	for line := range strings.Lines(hosts) {
		line, _, _ = strings.Cut(line, "#")
		fields := strings.Fields(line)
		for _, alias := range fields[min(1, len(fields)):] {
			if strings.EqualFold(alias, name) {
				return fields[1]
			}
		}
	}
	return ""
}

// addresses returns the addresses of the full name according to the resolver. If the host has no address of the family,
// it does not query the resolver.
func (c *collector) addresses(ctx context.Context, network, fqdn string) *value.List {
	own, _ := c.facts.Value(strings.Replace(network, "ip", "ipv", 1)).(*value.List)
	found := value.NewList()
	if own == nil || own.Len() == 0 {
		return found
	}
	ctx, cancel := context.WithTimeout(ctx, c.Patience)
	defer cancel()
	addrs, err := c.Resolver.LookupNetIP(ctx, network, fqdn)
	if err != nil {
		return found
	}
	return addrList(addrs)
}

// dns sets the resolver's configuration, with Salt's keys.
func (c *collector) dns() {
	file := "etc/resolv.conf"
	if c.machine.exists("run/systemd/resolve/resolv.conf") {
		file = "run/systemd/resolve/resolv.conf"
	}
	if c.machine.exists(file) {
		c.set("dns", resolvConf(c.machine.read(file)))
	}
}

func resolvConf(text string) *value.Map {
	all, ip4, ip6 := value.NewList(), value.NewList(), value.NewList()
	sortlist, search, options := value.NewList(), value.NewList(), value.NewList()
	domain := ""
	for line := range strings.Lines(text) {
		words := uncommented(line)
		if len(words) < 2 {
			continue
		}
		switch strings.ToLower(words[0]) {
		case "nameserver":
			addr, err := netip.ParseAddr(words[1])
			if err != nil {
				continue
			}
			appendNew(all, addr.String())
			if addr.Is4() {
				appendNew(ip4, addr.String())
			} else {
				appendNew(ip6, addr.String())
			}
		case "domain":
			domain = words[1]
		case "search":
			search = value.Strings(words[1:]...)
		case "sortlist":
			sortlist = value.Strings(words[1:]...)
		case "options":
			appendNew(options, words[1])
		}
	}
	return value.NewMap("nameservers", all, "ip4_nameservers", ip4, "ip6_nameservers", ip6,
		"sortlist", sortlist, "domain", domain, "search", search, "options", options)
}

func uncommented(line string) []string {
	words := strings.Fields(line)
	for i, w := range words {
		if w[0] == '#' || w[0] == ';' {
			return words[:i]
		}
	}
	return words
}

func appendNew(l *value.List, text string) {
	for _, item := range l.Items {
		if item == text {
			return
		}
	}
	l.Append(text)
}
