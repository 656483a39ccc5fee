// Package hosts implements hosts.*: the names of addresses in /etc/hosts.
package hosts

import (
	"fmt"
	"slices"
	"strings"

	"github.com/corpus-agent/corpus-agent/state/function"
	"github.com/corpus-agent/corpus-agent/state/value"
)

// hosts reads /etc/hosts, or the file that the option hosts.file names.
type hosts struct{ *function.Facts }

// Functions returns the functions of hosts that templates may call.
func Functions(f *function.Facts) function.Table {
	h := hosts{f}
	return function.Table{
		"hosts.list_hosts": function.Of("", h.list),
		"hosts.get_ip":     function.Of("host", h.address),
		"hosts.get_alias":  function.Of("ip", h.aliases),
		"hosts.has_pair":   function.Of("ip, alias", h.has),
	}
}

// list returns the names and the comment of each address, and comments on separate lines.
func (h hosts) list() (*value.Map, error) {
	file, _ := h.Options.Value("hosts.file").(string)
	if file == "" {
		file = "/etc/hosts"
	}
	text, err := function.ReadText(h.Host, file)
	found := value.NewMap()
	if function.Absent(err) {
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

// address returns the first address with a name, or "".
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
	names, _ := function.Texts(entry.Value("aliases")) // they were texts to begin with
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

// Acting returns the functions that add and remove names of addresses.
func Acting(f *function.Facts) function.Table {
	return function.StateFunctions(f, map[string]function.ByState{
		"hosts.add_host": {Signature: "ip, alias", State: "host.present", Rename: map[string]string{"alias": "name"},
			True: true},
		"hosts.rm_host": {Signature: "ip, alias", State: "host.absent", Rename: map[string]string{"alias": "name"},
			True: true},
	})
}
