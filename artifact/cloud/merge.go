package cloud

import (
	"fmt"
	"reflect"
	"slices"

	"github.com/corpus-agent/corpus-agent/state/diag"
)

// Merge joins two edits of a cloud that began with base: mine, which is not published yet, and theirs, which is. It
// joins edits of different objects, of different fields of one object, and of different items of a list. A field that
// both edits changed in different ways is a conflict; the error is a diag.List of all conflicts. If both edits gave the
// same address or port to new guests, Merge clears the value of mine, and Allocate has to choose another one.
func Merge(base, mine, theirs *Cloud) (*Cloud, error) {
	var sides [3]map[string]map[string]object
	for i, c := range []*Cloud{base, mine, theirs} {
		objects, err := c.objects()
		if err != nil {
			return nil, err
		}
		sides[i] = objects
	}
	m := &merging{}
	joined := map[string]map[string]object{}
	for section := range sides[1] {
		joined[section] = map[string]object{}
		for _, name := range union(sides[0][section], sides[1][section], sides[2][section]) {
			at := singular(section) + " " + name
			one := m.object(at, sides[0][section][name], sides[1][section][name], sides[2][section][name])
			if one != nil {
				joined[section][name] = one
			}
		}
	}
	if err := m.problems.Err(); err != nil {
		return nil, err
	}
	c, err := fromObjects(joined)
	if err != nil {
		return nil, err
	}
	c.yield(base, theirs)
	return c, nil
}

type merging struct{ problems diag.List }

func (m *merging) conflict(format string, args ...any) {
	m.problems.Add(diag.Pos{File: Name}, format, args...).
		WithHint(diag.Cloud, "look at what is published now (corpus guest ls, corpus node ls), and make your change again "+
			"if it is still right")
}

// object merges two edits of one object. nil stands for an object that does not exist.
func (m *merging) object(at string, base, mine, theirs object) object {
	switch {
	case reflect.DeepEqual(mine, base), reflect.DeepEqual(mine, theirs):
		return theirs
	case reflect.DeepEqual(theirs, base):
		return mine
	case base == nil:
		m.conflict("you and another person both added %s", at)
		return theirs
	case mine == nil:
		m.conflict("you removed %s, and another person changed it", at)
		return theirs
	case theirs == nil:
		m.conflict("you changed %s, and another person removed it", at)
		return theirs
	}
	joined := object{}
	for _, field := range union(base, mine, theirs) {
		if v := m.field(at+": "+field, base[field], mine[field], theirs[field]); v != nil {
			joined[field] = v
		}
	}
	return joined
}

func (m *merging) field(at string, base, mine, theirs any) any {
	switch {
	case reflect.DeepEqual(mine, base), reflect.DeepEqual(mine, theirs):
		return theirs
	case reflect.DeepEqual(theirs, base):
		return mine
	}
	a, isA := list(mine)
	b, isB := list(theirs)
	before, isBase := list(base)
	if isA && isB && isBase {
		return mergeLists(before, a, b)
	}
	m.conflict("%s is %s in your edit, and %s in that of another person", at, orNone(mine), orNone(theirs))
	return theirs
}

func orNone(v any) string {
	if v == nil {
		return "removed"
	}
	return shown(v)
}

// list returns the value of a field that is a list or absent. ok is false for other values.
func list(v any) ([]any, bool) {
	if v == nil {
		return nil, true
	}
	l, is := v.([]any)
	return l, is
}

// mergeLists applies the removals and the additions of mine to theirs.
func mergeLists(base, mine, theirs []any) any {
	var joined []any
	for _, item := range theirs {
		if slices.Contains(mine, item) || !slices.Contains(base, item) {
			joined = append(joined, item)
		}
	}
	for _, item := range mine {
		if !slices.Contains(base, item) && !slices.Contains(joined, item) {
			joined = append(joined, item)
		}
	}
	if joined == nil {
		return nil
	}
	return joined
}

// yield clears the networks of nodes, the addresses and ports of guests, and the numbers of users and projects, that
// are new in c and in use in theirs. Those of a guest that has moved are new, except for its port.
func (c *Cloud) yield(base, theirs *Cloud) {
	c.yieldAccess(base, theirs)
	c.yieldClasses(base, theirs)
	taken := map[string]bool{}
	for _, n := range theirs.Nodes {
		taken[n.Range4], taken[n.Range6] = true, true
	}
	for _, g := range theirs.Guests {
		taken[g.Address4], taken[g.Address6], taken[fmt.Sprint(g.SSHPort)] = true, true, true
	}
	clear := func(text *string) {
		if taken[*text] {
			*text = ""
		}
	}
	for name, n := range c.Nodes {
		if isNew(name, base.Nodes, theirs.Nodes) {
			clear(&n.Range4)
			clear(&n.Range6)
			c.Nodes[name] = n
		}
	}
	for name, g := range c.Guests {
		made := isNew(name, base.Guests, theirs.Guests)
		if !made && g.Node == theirs.Guests[name].Node {
			continue
		}
		clear(&g.Address4)
		clear(&g.Address6)
		if made && taken[fmt.Sprint(g.SSHPort)] {
			g.SSHPort = 0
		}
		c.Guests[name] = g
	}
}

func isNew[V any](name string, base, theirs map[string]V) bool {
	_, before := base[name]
	_, there := theirs[name]
	return !before && !there
}
