package check

import (
	"fmt"
	"slices"

	"github.com/corpus-agent/corpus-agent/grains"
	"github.com/corpus-agent/corpus-agent/state/diag"
	"github.com/corpus-agent/corpus-agent/state/value"
	"github.com/corpus-agent/corpus-agent/state/yaml"
)

// Minion is a host for which a tree is compiled. Only its name and its grains are known.
type Minion struct {
	ID     string
	Grains *value.Map
}

// systems returns the grains of common operating systems. An entry of a matrix that names one with the grains os and
// osrelease need not repeat the rest.
func systems() []*value.Map {
	system := func(family, name, full, codename, release string, major int, init, arch string) *value.Map {
		return value.NewMap("kernel", "Linux", "os_family", family, "os", name, "osfullname", full, "oscodename", codename,
			"osrelease", release, "osmajorrelease", major, "osfinger", fmt.Sprintf("%s-%s", full, release), "init", init,
			"osarch", arch, "cpuarch", "x86_64", "num_cpus", 2, "mem_total", 4096, "virtual", "kvm", "path",
			"/usr/sbin:/usr/bin",
			"shell", "/bin/sh", "saltversion", "3006.0", "pythonversion", value.NewList(3, 11, 2, "final", 0),
			"ipv4", value.Strings("127.0.0.1", "192.0.2.10"), "ipv6", value.Strings("::1"),
			"fqdn_ip4", value.Strings("192.0.2.10"), "fqdn_ip6", value.NewList(),
			"ip4_interfaces", value.NewMap("lo", value.Strings("127.0.0.1"), "eth0", value.Strings("192.0.2.10")),
			"ip6_interfaces", value.NewMap("lo", value.Strings("::1"), "eth0", value.NewList()),
			"ip_interfaces", value.NewMap("lo", value.Strings("127.0.0.1", "::1"), "eth0", value.Strings("192.0.2.10")),
			"hwaddr_interfaces", value.NewMap("lo", "00:00:00:00:00:00", "eth0", "02:00:00:00:00:01"),
			"disks", value.Strings("vda"), "SSDs", value.NewList(), "roles", value.NewList())
	}
	return []*value.Map{
		system("Debian", "Debian", "Debian GNU/Linux", "bookworm", "12", 12, "systemd", "amd64"),
		system("Debian", "Ubuntu", "Ubuntu", "noble", "24.04", 24, "systemd", "amd64"),
		system("RedHat", "Rocky", "Rocky Linux", "Blue Onyx", "9.4", 9, "systemd", "x86_64"),
	}
}

// Defaults returns the hosts for which a tree is compiled if no grains are given: one of each of the three commonest
// systems, in testing and in production, named by the hostname convention for a service.
func Defaults(service string) []Minion {
	var all []Minion
	for i, system := range systems() {
		for j, instance := range []string{"testing", "production"} {
			id := fmt.Sprintf("%s-%s-useast1-%d%d", service, instance, i+1, j+1)
			all = append(all, Minion{ID: id, Grains: completed(id, system)})
		}
	}
	return all
}

// Matrix parses a file of hosts: a mapping of their names to their grains, as YAML or JSON. A file that has only the
// grains of one host, as `corpus-agent grains --json` prints them, stands for that host. Grains that an entry lacks are
// taken from its name, and then from its system, or from Debian.
func Matrix(text, file string) ([]Minion, error) {
	doc, err := yaml.LoadString(text, file)
	if err != nil {
		return nil, err
	}
	hosts, ok := doc.Value.(*value.Map)
	if !ok || hosts.Len() == 0 {
		return nil, diag.At(doc.Start(), "expected a mapping of names of hosts to their grains").
			WithHint(diag.Usage, "one entry is, for example, web-testing-useast1-1: {os: Ubuntu, osrelease: '24.04'}")
	}
	if id, is := hosts.Value("id").(string); is {
		return []Minion{{ID: id, Grains: completed(id, hosts)}}, nil
	}
	var all []Minion
	var problems diag.List
	for key, entry := range hosts.All() {
		id, isText := key.(string)
		own, isMap := entry.(*value.Map)
		switch {
		case !isText || id == "":
			problems.Add(doc.Pos(hosts, key), "the name of a host must be text")
		case entry != nil && !isMap:
			problems.Add(doc.ValuePos(hosts, key), "the grains of %s must be a mapping", id)
		default:
			all = append(all, Minion{ID: id, Grains: completed(id, own)})
		}
	}
	return all, problems.Err()
}

// completed returns the grains of a host: the given ones, then those of its name, then those of its system.
func completed(id string, given *value.Map) *value.Map {
	all := value.NewMap()
	known := systems()
	system := slices.IndexFunc(known, func(s *value.Map) bool {
		return given != nil && s.Value("os") == given.Value("os") &&
			(given.Value("osrelease") == nil || s.Value("osrelease") == given.Value("osrelease"))
	})
	all.Update(known[max(system, 0)])
	all.Update(value.NewMap("id", id, "host", id, "nodename", id, "localhost", id, "fqdn", id, "domain", ""))
	if identity, err := grains.Parse(id, grains.Convention{}); err == nil {
		all.Update(identity.Grains())
	}
	if given != nil {
		all.Update(given)
	}
	return all
}
