package firewalld_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/corpus-agent/corpus-agent/state/module"
	"github.com/corpus-agent/corpus-agent/state/module/firewalld"
	"github.com/corpus-agent/corpus-agent/state/statetest"
)

// firewall simulates firewalld. Its permanent configuration is a file of lines OBJECT ITEM, such as `zone=web
// port=80/tcp`.
type firewall struct{ h *statetest.Host }

func (f firewall) lines() []string {
	return strings.Split(strings.TrimSpace(f.h.Text("/firewall")), "\n")
}

// of returns the items of an object that have a prefix, without the prefix.
func (f firewall) of(object, prefix string) (items []string) {
	for _, line := range f.lines() {
		if item, ok := strings.CutPrefix(line, object+" "+prefix); ok {
			items = append(items, item)
		}
	}
	return items
}

func (f firewall) run(args []string, _ string) (string, error) {
	if f.h.Text("/down") != "" {
		return "", statetest.Code{Code: 252, Text: "FirewallD is not running"}
	}
	args = slices.DeleteFunc(slices.Clone(args), func(s string) bool { return s == "--permanent" || s == "--reload" })
	if len(args) == 0 {
		return "", nil
	}
	object, verb := "", strings.TrimPrefix(args[0], "--")
	if len(args) == 2 {
		object, verb = verb, strings.TrimPrefix(args[1], "--")
	}
	switch {
	case verb == "get-zones":
		return strings.Join(f.of("a", "zone="), " ") + "\n", nil
	case verb == "get-services":
		return strings.Join(f.of("a", "service="), " ") + "\n", nil
	case verb == "get-default-zone":
		return strings.Join(f.of("the", "default="), " ") + "\n", nil
	case verb == "get-ports" || verb == "get-protocols":
		return strings.Join(f.of(object, strings.TrimSuffix(strings.TrimPrefix(verb, "get-"), "s")+"="), " ") + "\n", nil
	case verb == "list-all":
		masquerade := "no"
		if len(f.of(object, "masquerade")) > 0 {
			masquerade = "yes"
		}
		return "zone\n  target: default\n  interfaces: " + strings.Join(f.of(object, "interface="), " ") +
			"\n  sources: " + strings.Join(f.of(object, "source="), " ") +
			"\n  services: " + strings.Join(f.of(object, "service="), " ") +
			"\n  ports: " + strings.Join(f.of(object, "port="), " ") + "\n  masquerade: " + masquerade +
			"\n  forward-ports: \n" + tabbed(f.of(object, "forward-port=")) +
			"  icmp-blocks: " + strings.Join(f.of(object, "icmp-block="), " ") +
			"\n  rich rules: \n" + tabbed(f.of(object, "rich-rule=")), nil
	case strings.HasPrefix(verb, "new-"):
		f.h.Append("/firewall", "a "+strings.TrimPrefix(verb, "new-")+"\n")
	case strings.HasPrefix(verb, "add-"):
		f.h.Append("/firewall", object+" "+strings.TrimPrefix(verb, "add-")+"\n")
	case strings.HasPrefix(verb, "remove-"):
		f.h.Put("/firewall", strings.Join(slices.DeleteFunc(f.lines(), func(l string) bool {
			return l == object+" "+strings.TrimPrefix(verb, "remove-")
		}), "\n")+"\n")
	case strings.HasPrefix(verb, "set-default-zone="):
		f.h.Put("/firewall", strings.Join(slices.DeleteFunc(f.lines(), func(l string) bool {
			return strings.HasPrefix(l, "the ")
		}), "\n")+
			"\nthe default="+strings.TrimPrefix(verb, "set-default-zone=")+"\n")
	default:
		return "", statetest.Code{Code: 2, Text: "usage: see firewall-cmd man page"}
	}
	return "success\n", nil
}

func tabbed(items []string) string {
	var b strings.Builder
	for _, item := range items {
		b.WriteString("\t" + item + "\n")
	}
	return b.String()
}

func TestConformance(t *testing.T) {
	statetest.Run(t, statetest.Suite{
		State:     "firewalld",
		Functions: func(*statetest.Host) module.Table { return firewalld.Functions() },
		Prepare: func(t *testing.T, h *statetest.Host) {
			statetest.UseTools(t, h, map[string]statetest.Tool{"firewall-cmd": firewall{h}.run})
		},
		Cases: statetest.Load(t, "../../../testdata/modules/system/firewalld.yaml"),
	})
}
