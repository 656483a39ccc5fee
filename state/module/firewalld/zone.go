package firewalld

import (
	"context"
	"slices"
	"strings"

	"github.com/corpus-agent/corpus-agent/state/host"
	"github.com/corpus-agent/corpus-agent/state/module"
	"github.com/corpus-agent/corpus-agent/state/value"
)

// zone implements firewalld.present. It keeps items that are not declared unless their list is pruned.
type zone struct {
	Name            string   `sls:"name"`
	BlockICMP       []string `sls:"block_icmp"`
	PruneBlockICMP  bool     `sls:"prune_block_icmp"`
	Default         bool     `sls:"default"`
	Masquerade      bool     `sls:"masquerade"`
	Ports           []string `sls:"ports"`
	PrunePorts      bool     `sls:"prune_ports"`
	Forwards        []string `sls:"port_fwd"`
	PruneForwards   bool     `sls:"prune_port_fwd"`
	Services        []string `sls:"services"`
	PruneServices   bool     `sls:"prune_services"`
	Interfaces      []string `sls:"interfaces"`
	PruneInterfaces bool     `sls:"prune_interfaces"`
	Sources         []string `sls:"sources"`
	PruneSources    bool     `sls:"prune_sources"`
	RichRules       []string `sls:"rich_rules"`
	PruneRichRules  bool     `sls:"prune_rich_rules"`

	todo todo
}

func (z *zone) Check(ctx context.Context, h *host.Host) (module.Diff, error) {
	return z.todo.check(ctx, h, "the zone "+z.Name, z.find)
}

func (z *zone) Apply(ctx context.Context, h *host.Host, d module.Diff) (module.Report, error) {
	return z.todo.finish(ctx, h, d, "the zone "+z.Name, z.find)
}

func (z *zone) find(ctx context.Context, h *host.Host) (todo, error) {
	t := newTodo()
	zones, err := ask(ctx, h, "--permanent", "--get-zones")
	if err != nil {
		return t, err
	}
	have := settings{}
	if names := strings.Fields(zones); !slices.Contains(names, z.Name) {
		t.add(z.Name, value.NewMap("old", value.Strings(names...), "new", z.Name), command{"--new-zone=" + z.Name})
	} else {
		out, err := ask(ctx, h, "--permanent", "--zone="+z.Name, "--list-all")
		if err != nil {
			return t, err
		}
		have = readSettings(out)
	}
	forwards := make([]string, len(z.Forwards))
	for i, text := range z.Forwards {
		if forwards[i], err = forwarded(text); err != nil {
			return t, err
		}
	}
	of := "--zone=" + z.Name
	t.parts(of,
		part{"icmp_types", "icmp-block", have["icmp-blocks"], z.BlockICMP, z.PruneBlockICMP},
		part{"ports", "port", have["ports"], slashed(z.Ports), z.PrunePorts},
		part{"port_fwd", "forward-port", have["forward-ports"], forwards, z.PruneForwards},
		part{"services", "service", have["services"], z.Services, z.PruneServices},
		part{"interfaces", "interface", have["interfaces"], z.Interfaces, z.PruneInterfaces},
		part{"sources", "source", have["sources"], z.Sources, z.PruneSources},
		part{"rich_rules", "rich-rule", have["rich rules"], z.RichRules, z.PruneRichRules})
	if on := slices.Contains(have["masquerade"], "yes"); on != z.Masquerade {
		verb := map[bool]string{true: "--add-masquerade", false: "--remove-masquerade"}[z.Masquerade]
		t.add("masquerade", value.NewMap("old", on, "new", z.Masquerade), command{of, verb})
	}
	return t, z.findDefault(ctx, h, &t)
}

// findDefault makes the zone the default. The command comes last, since it takes effect without a reload.
func (z *zone) findDefault(ctx context.Context, h *host.Host, t *todo) error {
	if !z.Default {
		return nil
	}
	now, err := ask(ctx, h, "--get-default-zone")
	if err == nil && now != z.Name {
		t.add("default", value.NewMap("old", now, "new", z.Name), command{"--set-default-zone=" + z.Name})
	}
	return err
}

// slashed returns ports in firewalld's notation. A port without a protocol is a TCP port.
func slashed(ports []string) []string {
	all := slices.Clone(ports)
	for i, p := range all {
		if !strings.Contains(p, "/") {
			all[i] = p + "/tcp"
		}
	}
	return all
}

// settings maps firewalld's names of a zone's lists to their items.
type settings map[string][]string

// readSettings parses the output of --list-all. Every list has a line ` NAME: ITEM ITEM`. Some have a line for
// each item instead, which follows and begins with a tab.
func readSettings(text string) settings {
	all, name := settings{}, ""
	for line := range strings.Lines(text) {
		if item, ok := strings.CutPrefix(line, "\t"); ok {
			all[name] = append(all[name], strings.TrimSpace(item))
			continue
		}
		key, rest, ok := strings.Cut(strings.TrimSpace(line), ":")
		if !ok || !strings.HasPrefix(line, " ") {
			continue
		}
		if name = key; name != "rich rules" {
			all[name] = strings.Fields(rest)
		}
	}
	return all
}
