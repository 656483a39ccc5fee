package pkg

import (
	"context"
	"strings"

	"github.com/corpus-agent/corpus-agent/state/host"
	"github.com/corpus-agent/corpus-agent/state/value"
)

// hold is a change of a package's hold.
type hold struct {
	name string
	on   bool
	old  string // the selection state of dpkg before the change; "" if the package is unknown to dpkg
}

// selectionOf returns the selection state of a package in the words of dpkg --get-selections.
func selectionOf(v *host.Inventory, name string) string {
	switch {
	case v.Held(name):
		return "hold"
	case v.Version(name) != "":
		return "install"
	case v.Leftover(name) != "":
		return "deinstall"
	}
	return ""
}

func (c hold) word(on bool) string {
	if on {
		return "hold"
	}
	return "install"
}

// before returns the old selection state for a report.
func (c hold) before() any {
	if c.old == "" {
		return nil
	}
	return c.old
}

// holdsFor returns the packages whose hold differs from want; none if want is nil.
func holdsFor(v *host.Inventory, list []wanted, want *bool) []hold {
	var holds []hold
	if want == nil {
		return nil
	}
	for _, w := range list {
		if v.Held(w.name) != *want {
			holds = append(holds, hold{name: w.name, on: *want, old: selectionOf(v, w.name)})
		}
	}
	return holds
}

// withHolds adds holds to the changes of packages, in Salt's form: if a package is installed as well, the hold
// is a second line of its versions; if other packages are installed, a hold has only a new value.
func withHolds(m *value.Map, holds []hold) *value.Map {
	m, alone := orEmpty(m), m.Len() == 0
	for _, c := range holds {
		change, ok := m.Value(c.name).(*value.Map)
		switch {
		case ok:
			change.Set("new", lines(change.Value("new"), c.word(c.on)))
			change.Set("old", lines(change.Value("old"), c.word(!c.on)))
		case alone:
			m.Set(c.name, value.NewMap("old", c.before(), "new", c.word(c.on)))
		default:
			m.Set(c.name, value.NewMap("new", c.word(c.on)))
		}
	}
	return m
}

func orEmpty(m *value.Map) *value.Map {
	if m == nil {
		return value.NewMap()
	}
	return m
}

func lines(first any, second string) string {
	return strings.TrimPrefix(value.Str(first)+"\n"+second, "\n")
}

// setHolds applies the changes of holds.
func setHolds(ctx context.Context, h *host.Host, holds []hold) error {
	for _, on := range []bool{true, false} {
		var names []string
		for _, c := range holds {
			if c.on == on {
				names = append(names, c.name)
			}
		}
		if err := h.Packages.Hold(ctx, names, on); err != nil {
			return err
		}
	}
	return nil
}

func describeHolds(holds []hold) string {
	var on, off []string
	for _, c := range holds {
		if c.on {
			on = append(on, c.name)
		} else {
			off = append(off, c.name)
		}
	}
	var parts []string
	if len(on) > 0 {
		parts = append(parts, "put on hold: "+strings.Join(on, ", "))
	}
	if len(off) > 0 {
		parts = append(parts, "taken off hold: "+strings.Join(off, ", "))
	}
	return strings.Join(parts, "; ")
}
