// Package sysctl implements sysctl.*: the settings of the kernel.
package sysctl

import (
	"context"
	"fmt"
	"strings"

	"github.com/corpus-agent/corpus-agent/state/function"
	"github.com/corpus-agent/corpus-agent/state/host"
	"github.com/corpus-agent/corpus-agent/state/value"
)

type sysctl struct{ *function.Facts }

// Functions returns the functions of sysctl that templates may call.
func Functions(f *function.Facts) function.Table {
	s := sysctl{f}
	return function.Table{
		"sysctl.get":            function.Of("name", s.get),
		"sysctl.show":           function.Of("config_file=False", s.show),
		"sysctl.default_config": function.Of("", func() string { return "/etc/sysctl.d/99-salt.conf" }),
	}
}

// get returns a kernel setting. For one that does not exist it returns a sentence, as in Salt.
func (s sysctl) get(name string) string {
	text, err := function.ReadText(s.Host, "/proc/sys/"+swapped(name))
	if err != nil {
		return fmt.Sprintf("sysctl: cannot stat /proc/sys/%s: No such file or directory", swapped(name))
	}
	return strings.TrimRight(text, "\n")
}

// swapped converts between a name and a path: dots become slashes, and slashes dots.
func swapped(name string) string {
	return strings.Map(func(r rune) rune {
		switch r {
		case '.':
			return '/'
		case '/':
			return '.'
		}
		return r
	}, name)
}

// show returns the settings in a file, or those of the kernel.
func (s sysctl) show(ctx context.Context, file any) (any, error) {
	if value.Truth(file) {
		text, err := function.ReadText(s.Host, value.Str(file))
		if function.Absent(err) {
			return value.NewList(), nil
		}
		return settings(text, "="), err
	}
	text, err := s.Stdout(ctx, "sysctl", "-a")
	return settings(text, " = "), err
}

func settings(text, separator string) *value.Map {
	all := value.NewMap()
	for line := range strings.Lines(text) {
		name, v, ok := strings.Cut(strings.TrimSpace(line), separator)
		if ok && !strings.HasPrefix(name, "#") {
			all.Set(strings.TrimRight(name, " \t"), strings.TrimLeft(v, " \t"))
		}
	}
	return all
}

// assign sets a kernel setting until the next boot.
func (s sysctl) assign(ctx context.Context, name string, v any) (*value.Map, error) {
	text := value.Str(v)
	if strings.HasPrefix(name, "-") || strings.ContainsAny(name, "= \n") {
		return nil, fmt.Errorf("%q is not a kernel setting", name)
	}
	if found, err := s.Host.Files.Stat("/proc/sys/" + swapped(name)); err != nil || found.IsDir() {
		return nil, fmt.Errorf("there is no kernel setting %s", name)
	}
	_, err := s.Host.Tool(ctx, host.Tool{Argv: []string{"sysctl", "-w", name + "=" + text}, Package: "procps",
		Changes: host.Subject{Kind: host.KindSysctl, Name: name}})
	return value.NewMap(name, text), err
}

// Acting returns the functions that change settings of the kernel.
func Acting(f *function.Facts) function.Table {
	s := sysctl{f}
	return function.StateFunctions(f, map[string]function.ByState{
		"sysctl.persist": {Signature: "name, value", State: "sysctl.present"},
	}).Add(function.Table{"sysctl.assign": function.Of("name, value", s.assign)})
}
