package pkg

import (
	"fmt"

	"github.com/corpus-agent/corpus-agent/state/diag"
	"github.com/corpus-agent/corpus-agent/state/host"
	"github.com/corpus-agent/corpus-agent/state/value"
)

// selection holds the arguments that name packages: one by name and version, or a list.
type selection struct {
	Name        string `sls:"name"`
	Version     any    `sls:"version"`
	Pkgs        any    `sls:"pkgs"`
	Normalize   bool   `sls:"normalize"`    // drop an architecture suffix that is the host's own
	IgnoreEpoch *bool  `sls:"ignore_epoch"` // nil: ignore the epoch if the wanted version has none
}

// wanted is a package that a state names.
type wanted struct {
	name    string
	version string // a version, conditions such as >=1.2,<2, a glob, or latest; "" for any
}

// none reports whether pkgs is given but empty, which means that there is nothing to do.
func (s *selection) none() bool {
	list, ok := s.Pkgs.(*value.List)
	return ok && list.Len() == 0
}

// packages returns the packages of the selection in order. A package that is named twice is an error, since the
// wanted version would be ambiguous.
func (s *selection) packages(v *host.Inventory) ([]wanted, error) {
	if s.Pkgs == nil {
		return []wanted{{name: s.listName(v, s.Name), version: versionText(s.Version)}}, nil
	}
	pairs, err := namedList(s.Pkgs, "pkgs")
	if err != nil {
		return nil, err
	}
	seen := map[string]bool{}
	list := make([]wanted, 0, len(pairs))
	for _, p := range pairs {
		w := wanted{name: s.listName(v, p.name), version: versionText(p.value)}
		if seen[w.name] {
			return nil, diag.Argument.Hint(fmt.Errorf("pkgs names package %s twice", w.name), "keep one of them")
		}
		seen[w.name] = true
		list = append(list, w)
	}
	return list, nil
}

func (s *selection) listName(v *host.Inventory, name string) string {
	if s.Normalize {
		return v.ListName(name)
	}
	return name
}

// named is an item of a list: a name, or a mapping of one name to a value.
type named struct {
	name  string
	value any
}

func namedList(v any, argument string) ([]named, error) {
	var items []any
	switch v := v.(type) {
	case *value.List:
		items = v.Items
	case value.Tuple:
		items = v
	case string:
		items = []any{v}
	default:
		return nil, fmt.Errorf("%s is a %s, and a list was expected", argument, value.TypeName(v))
	}
	list := make([]named, 0, len(items))
	for _, item := range items {
		switch item := item.(type) {
		case string, int, float64:
			list = append(list, named{name: value.Str(item)})
		case *value.Map:
			if item.Len() != 1 {
				return nil, badItem(argument, item)
			}
			for key, v := range item.All() {
				list = append(list, named{name: value.Str(key), value: v})
			}
		default:
			return nil, badItem(argument, item)
		}
	}
	return list, nil
}

func badItem(argument string, item any) error {
	return diag.Argument.Hint(fmt.Errorf("%s has %s in it, which is neither a name nor one name with a value",
		argument, value.Repr(item)),
		"write `- name` or `- name: value`")
}

// versionText returns a version as text; YAML parses some as numbers.
func versionText(v any) string {
	if v == nil {
		return ""
	}
	return value.Str(v)
}
