package function

import (
	"context"
	"fmt"
	"strings"

	"github.com/corpus-agent/corpus-agent/state/value"
)

type sysctl struct{ *Facts }

func sysctlTable(f *Facts) Table {
	s := sysctl{f}
	return Table{
		"sysctl.get":            Of("name", s.get),
		"sysctl.show":           Of("config_file=False", s.show),
		"sysctl.default_config": Of("", func() string { return "/etc/sysctl.d/99-salt.conf" }),
	}
}

// get is a kernel setting. One that is not there is told as its value, as Salt does.
func (s sysctl) get(name string) string {
	text, err := readText(s.Host, "/proc/sys/"+swapped(name))
	if err != nil {
		return fmt.Sprintf("sysctl: cannot stat /proc/sys/%s: No such file or directory", swapped(name))
	}
	return strings.TrimRight(text, "\n")
}

// swapped makes a path of a name: the dots are slashes, and the slashes dots.
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

// show lists the settings in a file, or those of the kernel.
func (s sysctl) show(ctx context.Context, file any) (any, error) {
	if value.Truth(file) {
		text, err := readText(s.Host, value.Str(file))
		if absent(err) {
			return value.NewList(), nil
		}
		return settings(text, "="), err
	}
	text, err := s.answer(ctx, "sysctl", "-a")
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
