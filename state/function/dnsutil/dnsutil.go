// Package dnsutil implements dnsutil.*: records of the domain name system, serial numbers of zones, and the hosts file.
package dnsutil

import (
	"strings"

	"github.com/corpus-agent/corpus-agent/state/function"
	"github.com/corpus-agent/corpus-agent/state/value"
)

type dnsutil struct{ *function.Facts }

// Functions returns the functions of dnsutil that templates may call.
func Functions(f *function.Facts) function.Table {
	d := dnsutil{f}
	return function.Table{
		"dnsutil.A":           function.Of("host, nameserver=None", d.Addresses("A")),
		"dnsutil.AAAA":        function.Of("host, nameserver=None", d.Addresses("AAAA")),
		"dnsutil.NS":          function.Of("domain, resolve=True, nameserver=None", d.NameServers),
		"dnsutil.MX":          function.Of("domain, resolve=False, nameserver=None", d.MailServers),
		"dnsutil.check_ip":    function.Of("ip_addr", function.IsAddress),
		"dnsutil.serial":      function.Of("zone='', update=False", d.serial),
		"dnsutil.parse_hosts": function.Of("hostsfile='/etc/hosts', hosts=None", d.parseHosts),
	}
}

// serial returns the serial number of a zone: the one in the grains, or the first of today. With update it returns
// the next number, but does not store it, since that would change the grains.
func (d dnsutil) serial(zone string, update bool) (string, error) {
	key := "dnsserial"
	if zone != "" {
		key += "_" + zone
	}
	stored := value.Str(function.Traverse(d.Grains, key, "", ":"))
	present := d.Time().Format("20060102") + "01"
	switch {
	case !update && stored != "":
		return stored, nil
	case update && stored >= present:
		n, err := value.ParseInt(stored, 10)
		if err != nil {
			return "", err
		}
		next, err := value.Add(n, 1)
		return value.Str(next), err
	}
	return present, nil
}

// parseHosts returns the names of each address in a hosts file, or in the text of one.
func (d dnsutil) parseHosts(file, text string) (any, error) {
	if text == "" {
		var err error
		if text, err = function.ReadText(d.Host, file); err != nil {
			return "Error: hosts data was not found", nil
		}
	}
	found := value.NewMap()
	for _, line := range value.SplitLines(text, false) {
		fields := strings.Fields(line)
		if len(fields) == 0 || strings.HasPrefix(line, "#") {
			continue
		}
		names, ok := found.Value(fields[0]).(*value.List)
		if !ok {
			names = value.NewList()
			found.Set(fields[0], names)
		}
		for _, name := range fields[1:] {
			names.Append(name)
		}
	}
	return found, nil
}
