package service

import (
	"context"
	"strings"

	"github.com/corpus-agent/corpus-agent/state/function"
	"github.com/corpus-agent/corpus-agent/state/value"
)

// unitFunctions returns the functions that read properties of systemd's units.
func unitFunctions(s service) function.Table {
	return function.Table{
		"service.show":  function.Of("name, root=None", s.show),
		"service.execs": function.Of("root=None", s.execs),
	}
}

func unitOf(name string) string {
	if i := strings.LastIndexByte(name, '.'); i >= 0 {
		switch name[i+1:] {
		case "service", "socket", "device", "mount", "automount", "swap", "target", "path", "timer", "slice", "scope":
			return name
		}
	}
	return name + ".service"
}

// show returns the properties of a unit.
func (s service) show(ctx context.Context, name string, _ any) (*value.Map, error) {
	if err := s.Host.Units.Allowed("querying unit " + name); err != nil {
		return nil, err
	}
	text, err := s.Stdout(ctx, "systemctl", "show", "--", unitOf(name))
	if err != nil {
		return nil, err
	}
	return properties(text), nil
}

// properties parses the output of systemctl show.
func properties(text string) *value.Map {
	all := value.NewMap()
	for line := range strings.Lines(text) {
		name, v, ok := strings.Cut(strings.TrimRight(line, "\n"), "=")
		switch {
		case !ok:
		case strings.HasPrefix(v, "{"):
			all.Set(name, structure(v))
		case name == "Before" || name == "After" || name == "Wants":
			all.Set(name, value.Strings(strings.Fields(v)...))
		default:
			all.Set(name, v)
		}
	}
	return all
}

// structure parses a value such as { path=/bin/true ; argv[]=/bin/true }.
func structure(text string) *value.Map {
	m := value.NewMap()
	for item := range strings.SplitSeq(strings.Trim(text, "{}"), " ; ") {
		if key, v, ok := strings.Cut(item, "="); ok {
			m.Set(strings.TrimSpace(key), strings.TrimSpace(v))
		}
	}
	return m
}

// execs returns the programs that services start.
func (s service) execs(ctx context.Context, _ any) (*value.Map, error) {
	names, err := s.all(ctx, nil)
	if err != nil {
		return nil, err
	}
	programs := value.NewMap()
	for len(names) > 0 {
		part := names[:min(len(names), 200)] // few enough for a command line
		names = names[len(part):]
		argv := []string{"systemctl", "show", "--property=ExecStart", "--property=LoadState", "--"}
		for _, name := range part {
			argv = append(argv, unitOf(name))
		}
		text, err := s.Stdout(ctx, argv...)
		if err != nil {
			return nil, err
		}
		for i, block := range strings.Split(text, "\n\n") {
			start, ok := properties(block).Value("ExecStart").(*value.Map)
			if ok && i < len(part) {
				programs.Set(part[i], start.Value("path"))
			}
		}
	}
	return programs, nil
}
