package function

import (
	"fmt"
	"slices"
	"strings"

	"github.com/corpus-agent/corpus-agent/state/value"
)

// hosts reads /etc/hosts, or what hosts.file says.
type hosts struct{ *Facts }

func hostsTable(f *Facts) Table {
	h := hosts{f}
	return Table{
		"hosts.list_hosts": Of("", h.list),
		"hosts.get_ip":     Of("host", h.address),
		"hosts.get_alias":  Of("ip", h.aliases),
		"hosts.has_pair":   Of("ip, alias", h.has),
	}
}

// list gives names and comment of every address, and the comments that stand alone.
func (h hosts) list() (*value.Map, error) {
	file, _ := h.Options.Value("hosts.file").(string)
	if file == "" {
		file = "/etc/hosts"
	}
	text, err := readText(h.Host, file)
	found := value.NewMap()
	if absent(err) {
		return found, nil
	}
	comments := 0
	for line := range strings.Lines(text) {
		line = strings.TrimSpace(line)
		switch {
		case line == "":
		case strings.HasPrefix(line, "#"):
			found.Set(fmt.Sprintf("comment-%d", comments), value.NewList(line))
			comments++
		default:
			addEntry(found, line)
		}
	}
	return found, err
}

func addEntry(found *value.Map, line string) {
	line, comment, _ := strings.Cut(line, "#")
	fields := strings.Fields(line)
	if len(fields) == 0 {
		return
	}
	entry, ok := found.Value(fields[0]).(*value.Map)
	if !ok {
		entry = value.NewMap("aliases", value.NewList())
		found.Set(fields[0], entry)
	}
	aliases := entry.Value("aliases").(*value.List)
	for _, name := range fields[1:] {
		aliases.Append(name)
	}
	if comment = strings.TrimLeft(comment, " \t"); comment != "" {
		entry.Set("comment", comment)
	}
}

// address is the first address that has a name, or nothing.
func (h hosts) address(name string) (string, error) {
	all, err := h.list()
	for _, ip := range all.Names() {
		if slices.Contains(aliasesOf(all, ip), name) {
			return ip, err
		}
	}
	return "", err
}

func aliasesOf(all *value.Map, ip string) []string {
	entry, ok := all.Value(ip).(*value.Map)
	if !ok {
		return []string{}
	}
	names, _ := texts(entry.Value("aliases")) // they were texts to begin with
	return names
}

func (h hosts) aliases(ip string) ([]string, error) {
	all, err := h.list()
	return aliasesOf(all, ip), err
}

func (h hosts) has(ip string, aliases []string) (bool, error) {
	all, err := h.list()
	known := aliasesOf(all, ip)
	for _, name := range aliases {
		if !slices.Contains(known, name) {
			return false, err
		}
	}
	return all.Has(ip), err
}

// hostsActs add and remove names of addresses.
func hostsActs(f *Facts) Table {
	return byState(f, map[string]deed{
		"hosts.add_host": {signature: "ip, alias", state: "host.present", rename: map[string]string{"alias": "name"}, yes: true},
		"hosts.rm_host":  {signature: "ip, alias", state: "host.absent", rename: map[string]string{"alias": "name"}, yes: true},
	})
}
