package function

import (
	"strings"

	"github.com/corpus-agent/corpus-agent/state/value"
)

type dnsutil struct{ *Facts }

func dnsutilTable(f *Facts) Table {
	d := dnsutil{f}
	return Table{
		"dnsutil.A":           Of("host, nameserver=None", d.addresses("A")),
		"dnsutil.AAAA":        Of("host, nameserver=None", d.addresses("AAAA")),
		"dnsutil.NS":          Of("domain, resolve=True, nameserver=None", d.nameServers),
		"dnsutil.MX":          Of("domain, resolve=False, nameserver=None", d.mailServers),
		"dnsutil.check_ip":    Of("ip_addr", isAddress),
		"dnsutil.serial":      Of("zone='', update=False", d.serial),
		"dnsutil.parse_hosts": Of("hostsfile='/etc/hosts', hosts=None", d.parseHosts),
	}
}

// serial is the serial number of a zone: the one kept in the grains, or the first of today. Raising
// it would change the grains, so update gives the next number and keeps nothing.
func (d dnsutil) serial(zone string, update bool) (string, error) {
	key := "dnsserial"
	if zone != "" {
		key += "_" + zone
	}
	stored := value.Str(traverse(d.Grains, key, "", ":"))
	present := d.now().Format("20060102") + "01"
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

// parseHosts gives the names of every address of a hosts file, or of such a text.
func (d dnsutil) parseHosts(file, text string) (any, error) {
	if text == "" {
		var err error
		if text, err = readText(d.Host, file); err != nil {
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
