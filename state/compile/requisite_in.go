package compile

import (
	"slices"
	"strings"

	"github.com/corpus-agent/corpus-agent/state/diag"
	"github.com/corpus-agent/corpus-agent/state/value"
)

// requisitesIn reverses the _in requisites: `a: require_in: b` becomes `b: require: a`. It copies arguments for use and
// use_in. For a prereq, it adds a prerequired to the target.
func requisitesIn(high *High, problems *diag.List) {
	t := &turner{high: high, names: newNameIndex(high.Data), extensions: value.NewMap(), origins: map[*value.Map]origin{},
		problems: problems}
	for id, body := range high.Data.All() {
		m, ok := body.(*value.Map)
		if !ok {
			continue
		}
		for state, run := range m.All() {
			if list, ok := run.(*value.List); ok && !internal(state) {
				t.declaration(source{id: value.Str(id), state: value.Str(state), body: m}, list)
			}
		}
	}
	list := value.NewList()
	for id, body := range t.extensions.All() {
		list.Append(value.NewMap(id, body))
	}
	high.Data.Set(KeyExtend, list)
	extend(high, true, problems, t.origins)
}

// source is the declaration whose requisites are being reversed.
type source struct {
	id, state string
	body      *value.Map
	argument  string // the requisite, such as require_in
}

type turner struct {
	high       *High
	names      *nameIndex
	extensions *value.Map // ID -> body, to be merged into the high data
	origins    map[*value.Map]origin
	byName     map[string]source
	bySLS      map[string][]target
	problems   *diag.List
}

func turned(key string) bool {
	switch key {
	case "require_in", "watch_in", "onfail_in", "onchanges_in", "use", "use_in", "prereq", "prereq_in":
		return true
	}
	return false
}

func (t *turner) declaration(from source, arguments *value.List) {
	for _, argument := range arguments.Items {
		key, items, ok := single(argument)
		if !ok || !turned(key) {
			continue
		}
		from.argument = key
		switch items := items.(type) {
		case *value.Map:
			for state, name := range items.All() {
				t.turnMapping(from, key, value.Str(state), value.Str(name))
			}
		case *value.List:
			t.turnList(from, key, items)
		}
	}
}

// turnMapping handles the short form, in which the requisite is one mapping instead of a list.
func (t *turner) turnMapping(from source, key, state, name string) {
	t.demand(from, baseKey(key), t.plainState(from, key, state, name), name)
}

// repeatLimit is the length of the longest list of targets for which, as in Salt, the earlier targets are recorded
// again with each later one. This affects only the displayed data, whose size grows with the square of the length.
const repeatLimit = 64

// turnList reverses the requisites of a list of targets.
func (t *turner) turnList(from source, key string, items *value.List) {
	var targets []target
	for _, item := range items.Items {
		state, name, ok := t.target(item)
		if !ok {
			continue
		}
		if state == "sls" {
			targets = t.statesOf(name)
		} else {
			if items.Len() > repeatLimit {
				targets = nil
			}
			targets = append(targets, target{id: name, state: t.plainState(from, key, state, name)})
		}
		for _, to := range targets {
			t.turn(from, key, to)
		}
	}
}

// target is one state of an ID that a requisite names.
type target struct{ id, state string }

// target returns the state and the ID or name that an item names. An item is {state: name}, or a bare ID or name, which
// stands for the first state found under it.
func (t *turner) target(item any) (state, name string, ok bool) {
	if m, isMap := item.(*value.Map); isMap {
		key, v, ok := single(m)
		return key, value.Str(v), ok
	}
	bare, isString := item.(string)
	if !isString {
		return "", "", false
	}
	if body, found := t.high.Data.Value(bare).(*value.Map); found {
		return firstState(body), bare, true
	}
	found, ok := t.named(bare)
	return found.state, found.id, ok
}

// named returns the last declaration with this name argument, as Salt does.
func (t *turner) named(name string) (source, bool) {
	if t.byName == nil {
		t.byName = map[string]source{}
		for id, body := range t.high.Data.All() {
			m, _ := body.(*value.Map)
			for state, run := range m.All() {
				if list, ok := run.(*value.List); ok && !internal(state) {
					t.indexName(value.Str(id), value.Str(state), list)
				}
			}
		}
	}
	s, ok := t.byName[name]
	return s, ok
}

func (t *turner) indexName(id, state string, arguments *value.List) {
	for _, argument := range arguments.Items {
		m, _ := argument.(*value.Map)
		if name, ok := m.Value("name").(string); ok {
			t.byName[name] = source{id: id, state: state}
		}
	}
}

// statesOf lists every state of an SLS file.
func (t *turner) statesOf(sls string) []target {
	if t.bySLS == nil {
		t.bySLS = map[string][]target{}
		for id, body := range t.high.Data.All() {
			m, _ := body.(*value.Map)
			file, _ := m.Value(KeySLS).(string)
			for state := range m.All() {
				if !internal(state) {
					t.bySLS[file] = append(t.bySLS[file], target{id: value.Str(id), state: value.Str(state)})
				}
			}
		}
	}
	return slices.Clip(t.bySLS[sls])
}

// plainState returns the state that a requisite names. It adds a problem if the requisite names state.function.
func (t *turner) plainState(from source, key, state, name string) string {
	plain := withoutDot(state)
	if plain != state {
		t.problems.Add(t.high.at(from.id, from.state), "%s names %s: %s, and a requisite names a state without its "+
			"function",
			key, state, name).
			WithHint(diag.Requisite, "write "+plain+": "+name)
	}
	return plain
}

// turn adds the reverse of one requisite to its target.
func (t *turner) turn(from source, key string, to target) {
	switch key {
	case "use":
		for _, id := range t.names.find(to.id, to.state, true) {
			t.copyArguments(target{id: id, state: to.state}, target{id: from.id, state: from.state})
		}
		return
	case "use_in":
		for _, id := range t.names.find(to.id, to.state, true) {
			t.copyArguments(target{id: from.id, state: from.state}, target{id: id, state: to.state})
		}
		return
	case "prereq":
		for _, id := range t.names.find(to.id, to.state, true) {
			t.list(id, to.state).Append(requisite("prerequired", from.state, from.id))
		}
		return
	case "prereq_in":
		t.list(from.id, from.state).Append(requisite("prerequired", to.state, to.id))
	}
	t.demand(from, baseKey(key), to.state, to.id)
}

// demand adds a requisite on the source to the extension of the target.
func (t *turner) demand(from source, key, state, id string) {
	list := t.list(id, state)
	extension, _ := t.extensions.Value(id).(*value.Map)
	if _, ok := t.origins[extension]; !ok {
		t.origins[extension] = origin{t.high.at(from.id, from.state, from.argument), from.argument + " of " + from.id}
	}
	extension.Set(KeyEnv, from.body.Value(KeyEnv))
	extension.Set(KeySLS, from.body.Value(KeySLS))
	for _, argument := range list.Items {
		if k, v, _ := single(argument); k == key {
			if already, ok := v.(*value.List); ok {
				already.Append(value.NewMap(from.state, from.id))
				return
			}
		}
	}
	list.Append(requisite(key, from.state, from.id))
}

func requisite(key, state, id string) *value.Map {
	return value.NewMap(key, value.NewList(value.NewMap(state, id)))
}

// list returns the list of arguments that will extend a state.
func (t *turner) list(id, state string) *value.List {
	body, _ := t.extensions.Value(id).(*value.Map)
	if body == nil {
		body = value.NewMap()
		t.extensions.Set(id, body)
	}
	list, _ := body.Value(state).(*value.List)
	if list == nil {
		list = value.NewList()
		body.Set(state, list)
	}
	return list
}

// copyArguments copies the arguments of one state to another that does not have them itself, except requisites and
// names.
func (t *turner) copyArguments(from, to target) {
	own := t.argumentsOf(to)
	list := t.list(to.id, to.state)
	for _, argument := range arguments(t.high.Data, from.id, from.state) {
		m, ok := argument.(*value.Map)
		if !ok || m.Len() != 1 {
			continue
		}
		key, _, _ := single(m)
		if own[key] || neverUsed(key) {
			continue
		}
		list.Append(argument)
	}
}

func (t *turner) argumentsOf(to target) map[string]bool {
	own := map[string]bool{}
	for _, argument := range arguments(t.high.Data, to.id, to.state) {
		if m, ok := argument.(*value.Map); ok && m.Len() == 1 {
			key, _, _ := single(m)
			own[key] = true
		}
	}
	return own
}

func arguments(high *value.Map, id, state string) []any {
	body, _ := high.Value(id).(*value.Map)
	list, _ := body.Value(state).(*value.List)
	if list == nil {
		return nil
	}
	return list.Items
}

func neverUsed(key string) bool {
	switch key {
	case "name", "names", "require", "watch", "onfail", "onfail_stop", "onchanges":
		return true
	}
	return turned(key)
}

// baseKey returns the requisite that an _in form adds to its target.
func baseKey(key string) string {
	before, _, _ := strings.Cut(key, "_")
	return before
}
