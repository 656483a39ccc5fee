package sls

import (
	"fmt"
	"strings"

	"github.com/corpus-agent/corpus-agent/state/compile"
	"github.com/corpus-agent/corpus-agent/state/diag"
	"github.com/corpus-agent/corpus-agent/state/value"
)

// merge merges declarations. It reports a problem if both have an ID with different declarations.
func (g *gatherer) merge(into, from *value.Map) {
	for _, key := range []string{compile.KeyExtend, compile.KeyExclude} {
		if more, ok := from.Value(key).(*value.List); ok {
			list, _ := into.Value(key).(*value.List)
			if list == nil {
				list = value.NewList()
				into.Set(key, list)
			}
			list.Items = append(list.Items, more.Items...)
			from.Delete(key)
		}
	}
	for id, body := range from.All() {
		old, known, err := into.GetKey(id)
		if err == nil && known && !value.Equal(old, body) {
			g.conflict(value.Str(id), old, body)
		}
	}
	into.Update(from)
}

func (g *gatherer) conflict(id string, a, b any) {
	from := func(body any) string {
		m, _ := body.(*value.Map)
		return value.Str(m.Value(compile.KeySLS))
	}
	g.problems.Add(g.posOf(b), "ID %q is declared in SLS %s and, otherwise, in SLS %s", id, from(b), from(a)).
		WithHint(diag.SLS, fmt.Sprintf("the other is at %s; IDs are global, so rename one", g.posOf(a)))
}

// posOf returns the position of a declaration.
func (g *gatherer) posOf(declaration any) diag.Pos {
	body, _ := declaration.(*value.Map)
	if h, ok := g.homes[body]; ok {
		return h.doc.Pos(h.container, h.key)
	}
	return diag.Pos{}
}

// number gives each state of a file the next number, unless it has one of its own.
func (g *gatherer) number(declarations *value.Map) {
	for _, body := range declarations.All() {
		m, _ := body.(*value.Map)
		for state, run := range m.All() {
			list, ok := run.(*value.List)
			if !ok || strings.HasPrefix(value.Str(state), "_") || hasArgument(list, "order") {
				continue
			}
			list.Append(value.NewMap("order", g.order))
			g.order++
		}
	}
}

func hasArgument(list *value.List, name string) bool {
	for _, item := range list.Items {
		if m, ok := item.(*value.Map); ok {
			for key := range m.All() {
				if key == name {
					return true
				}
				break
			}
		}
	}
	return false
}

// dropRepeatedExtensions keeps one of each extension, since a file may be included twice.
func (g *gatherer) dropRepeatedExtensions() {
	all, ok := g.high.Value(compile.KeyExtend).(*value.List)
	if !ok {
		return
	}
	kept := value.NewList()
	known := map[string][]any{}
	for _, item := range all.Items {
		m, _ := item.(*value.Map)
		for id, body := range m.All() {
			name := value.Str(id)
			if value.Contains(known[name], body) {
				continue
			}
			known[name] = append(known[name], body)
			kept.Append(value.NewMap(name, body))
		}
	}
	g.high.Set(compile.KeyExtend, kept)
}

// pos finds the place of an ID, of a state below it, or of an argument below that.
func (g *gatherer) pos(path ...string) diag.Pos {
	body, _ := g.high.Value(path[0]).(*value.Map)
	if len(path) > 1 && body != nil {
		if list, ok := body.Value(path[1]).(*value.List); ok {
			if p := g.posOfState(body, path[1], list, path[2:]); !p.IsZero() {
				return p
			}
		}
	}
	if len(path) > 1 && body.Has(path[1]) {
		if p := g.find(body, body, path[1]); !p.IsZero() {
			return p
		}
	}
	if p := g.posOf(body); !p.IsZero() {
		return p
	}
	return diag.Pos{File: value.Str(body.Value(compile.KeySLS))}
}

func (g *gatherer) posOfState(body *value.Map, state string, list *value.List, argument []string) diag.Pos {
	if len(argument) > 0 && argument[0] != "" {
		for _, item := range list.Items {
			if m, ok := item.(*value.Map); ok && m.Has(argument[0]) {
				return g.find(body, m, argument[0])
			}
		}
	}
	return g.find(body, body, written(state, list))
}

// find returns the position of a key: in the file of the declaration, or else in a file that extends it.
func (g *gatherer) find(body, container *value.Map, key string) diag.Pos {
	if h, ok := g.homes[body]; ok {
		if p := h.doc.Pos(container, key); !p.IsZero() {
			return p
		}
	}
	for _, d := range g.docs {
		if p := d.Pos(container, key); !p.IsZero() {
			return p
		}
	}
	return diag.Pos{}
}

// written returns a state as it was written in a file: file.managed became file with the function in its list.
func written(state string, list *value.List) string {
	for _, item := range list.Items {
		if function, ok := item.(string); ok {
			return state + "." + function
		}
	}
	return state
}
