package salt

import (
	"strings"

	"github.com/corpus-agent/corpus-agent/state/jinja"
	"github.com/corpus-agent/corpus-agent/state/value"
)

func networkFilters() map[string]jinja.Filter {
	v, options, version := jinja.Arg("value"), jinja.Opt("options", nil), jinja.Opt("version", nil)
	ip := jinja.Arg("ip_addr")
	return map[string]jinja.Filter{
		"filter_by_networks": jinja.Define("filter_by_networks", filterByNetworks, jinja.Arg("values"),
			jinja.Arg("networks")),
		"gen_mac":          jinja.Define("gen_mac", makeMAC, jinja.Opt("prefix", "AC:DE:48")),
		"ip_host":          jinja.Define("ip_host", eachAddress(hostOf), v, options, version),
		"ipaddr":           jinja.Define("ipaddr", anyAddress, v, options),
		"ipv4":             jinja.Define("ipv4", onlyAddresses(4), v, options),
		"ipv6":             jinja.Define("ipv6", onlyAddresses(6), v, options),
		"ipwrap":           jinja.Define("ipwrap", wrapAddress, jinja.Arg("data")),
		"is_ip":            jinja.Define("is_ip", isAddress(4, 6), ip, options),
		"is_ipv4":          jinja.Define("is_ipv4", isAddress(4), ip, options),
		"is_ipv6":          jinja.Define("is_ipv6", isAddress(6), ip, options),
		"mac_str_to_bytes": jinja.Define("mac_str_to_bytes", macBytes, jinja.Arg("mac_str")),
		"network_hosts":    jinja.Define("network_hosts", eachAddress(hostsOf), v, options, version),
		"network_size":     jinja.Define("network_size", eachAddress(sizeOf), v, options, version),
	}
}

// chosenAddress returns a value as an address of a version that matches the options, which are the second argument of
// the call.
func chosenAddress(c *jinja.Call, v any, version int) (address, bool, error) {
	a, ok := parseAddress(v)
	if !ok || a.version() != version {
		return address{}, false, nil
	}
	wanted, err := c.Bool(1)
	if !wanted || err != nil {
		return a, err == nil, err
	}
	options, err := c.Text(1)
	if err != nil {
		return address{}, false, err
	}
	for _, kind := range strings.Split(options, ",") {
		if !a.is(value.Strip(kind)) {
			return address{}, false, nil
		}
	}
	return a, true, nil
}

func isAddress(versions ...int) func(c *jinja.Call) (any, error) {
	return func(c *jinja.Call) (any, error) {
		for _, version := range versions {
			if _, ok, err := chosenAddress(c, c.Args[0], version); ok || err != nil {
				return ok, err
			}
		}
		return false, nil
	}
}

// several returns the items of a value, and reports whether it is a collection of addresses and not a single one.
func several(c *jinja.Call, v any) ([]any, bool, error) {
	switch v.(type) {
	case string, []byte, *value.Map:
		return nil, false, nil
	}
	if !iterable(c, v) {
		return nil, false, nil
	}
	items, err := itemsOf(c, v)
	return items, true, err
}

// addressesOf returns the addresses of a version in a value, and whether it is a list.
func addressesOf(c *jinja.Call, version int) (all []any, list bool, err error) {
	items, list, err := several(c, c.Args[0])
	if err != nil {
		return nil, list, err
	}
	if !list {
		items = c.Args[:1]
		if _, text := items[0].(string); !text {
			return nil, false, nil
		}
	}
	for _, item := range items {
		a, ok, err := chosenAddress(c, item, version)
		if err != nil {
			return nil, list, err
		}
		if ok {
			all = append(all, a.String())
		}
	}
	return all, list, nil
}

// listOrOne returns all as a list, or its only item, or None.
func listOrOne(all []any, list bool) any {
	switch {
	case list:
		return value.NewList(all...)
	case len(all) == 0:
		return nil
	}
	return all[0]
}

func onlyAddresses(version int) func(c *jinja.Call) (any, error) {
	return func(c *jinja.Call) (any, error) {
		all, list, err := addressesOf(c, version)
		return listOrOne(all, list), err
	}
}

// addressesOfAll returns the addresses of any version, those of version 4 first.
func addressesOfAll(c *jinja.Call) ([]any, bool, error) {
	all, list, err := addressesOf(c, 4)
	if err != nil {
		return nil, list, err
	}
	six, _, err := addressesOf(c, 6)
	return append(all, six...), list, err
}

func anyAddress(c *jinja.Call) (any, error) {
	all, list, err := addressesOfAll(c)
	return listOrOne(all, list), err
}

// eachAddress returns a filter that applies a function to the addresses in a value.
func eachAddress(fn func(c *jinja.Call, a address) (any, error)) func(c *jinja.Call) (any, error) {
	return func(c *jinja.Call) (any, error) {
		all, list, err := addressesOfVersion(c)
		if len(all) == 0 || err != nil {
			return nil, err
		}
		for i := range all {
			a, _ := parseAddress(all[i])
			if all[i], err = fn(c, a); err != nil {
				return nil, err
			}
		}
		return listOrOne(all, list), nil
	}
}

// addressesOfVersion returns the addresses of the version that the third argument names.
func addressesOfVersion(c *jinja.Call) ([]any, bool, error) {
	wanted, err := c.Bool(2)
	if err != nil {
		return nil, false, err
	}
	if !wanted {
		return addressesOfAll(c)
	}
	version, err := c.Int(2)
	if err != nil {
		return nil, false, err
	}
	if version != 4 && version != 6 {
		return addressesOfAll(c)
	}
	return addressesOf(c, version)
}

func hostOf(_ *jinja.Call, a address) (any, error) {
	a.prefix = true
	return a.String(), nil
}

func sizeOf(_ *jinja.Call, a address) (any, error) { return a.size() }

func hostsOf(c *jinja.Call, a address) (any, error) {
	all := value.NewList()
	err := a.hosts(func(host address) error {
		all.Append(host.String())
		return c.Work(1)
	})
	return all, err
}

// filterByNetworks keeps the addresses that are in one of the networks.
func filterByNetworks(c *jinja.Call) (any, error) {
	if c.Args[1] == nil {
		return c.Args[0], nil
	}
	networks, err := c.Items(1)
	if err != nil {
		return nil, err
	}
	m, ok := c.Args[0].(*value.Map)
	if !ok {
		return inNetworks(c, c.Args[0], networks)
	}
	out := value.NewMap().Plain()
	for k, v := range m.All() {
		kept, err := inNetworks(c, v, networks)
		if err != nil {
			return nil, err
		}
		if err := out.SetKey(k, kept); err != nil {
			return nil, err
		}
	}
	return out, nil
}

func inNetworks(c *jinja.Call, v any, networks []any) (any, error) {
	items, err := itemsOf(c, v)
	if err != nil {
		return nil, err
	}
	kept := value.NewList()
	for _, item := range items {
		ip, ok := parseAddress(item)
		if !ok || ip.prefix {
			return nil, valueError(value.Repr(item) + " does not appear to be an IPv4 or IPv6 address")
		}
		for _, network := range networks {
			within, err := inNetwork(ip, network)
			if err != nil {
				return nil, err
			}
			if within {
				kept.Append(item)
			}
		}
		if err := c.Work(len(networks)); err != nil {
			return nil, err
		}
	}
	return kept, nil
}

// inNetwork reports whether a network contains an address.
func inNetwork(ip address, network any) (bool, error) {
	n, ok := parseAddress(network)
	if !ok || n.network().Addr() != n.ip {
		return false, valueError(value.Repr(network) + " does not appear to be an IPv4 or IPv6 network")
	}
	return n.network().Contains(ip.ip.WithZone("")), nil
}
