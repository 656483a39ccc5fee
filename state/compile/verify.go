package compile

import (
	"slices"
	"strings"

	"github.com/corpus-agent/corpus-agent/state/diag"
	"github.com/corpus-agent/corpus-agent/state/value"
)

// Verify checks the shape of all declarations. Its error is a diag.List.
func Verify(high *High) error {
	var problems diag.List
	verify(high, &problems)
	return problems.Err()
}

// verify checks the shape of all declarations.
func verify(high *High, problems *diag.List) {
	wants := map[string]*wanted{}
	for id, body := range high.Data.All() {
		if internal(id) {
			continue
		}
		v := &verifier{high: high, problems: problems, wants: wants}
		v.id(id, body)
	}
}

// wanted holds the items of one requisite argument of an ID.
type wanted struct {
	state string            // the state with the argument
	names map[string]string // the state of each item, by its name
}

type verifier struct {
	high     *High
	problems *diag.List
	wants    map[string]*wanted // by ID: its last requisite argument so far
	idText   string
	body     any
	state    string // "" for the ID itself
	key      string // of an argument, or ""
}

func (v *verifier) add(format string, args ...any) *diag.Diagnostic {
	pos := v.high.at(v.idText, v.state, v.key)
	if body := v.high.posOf(v.body); v.state == "" || pos.Line == 0 && !body.IsZero() { // an ID that is not a string
		pos = body
	}
	return v.problems.Add(pos, format, args...)
}

func (v *verifier) id(id, body any) {
	v.idText, v.body = value.Str(id), body
	if _, ok := id.(string); !ok {
		v.add("ID %s is of type %s, and an ID is a string", v.idText, value.TypeName(id)).
			WithHint(diag.SLS, "put it in quotes")
	}
	m, ok := body.(*value.Map)
	if !ok {
		v.add("ID %s holds a %s, and a mapping of states was expected", v.idText, value.TypeName(body)).
			WithHint(diag.SLS, "write `state.function:` below it, and below that its arguments")
		return
	}
	for state, run := range m.All() {
		if !internal(state) {
			v.declaration(value.Str(state), run)
		}
	}
}

func (v *verifier) declaration(state string, run any) {
	v.state = state
	switch run := run.(type) {
	case *value.List:
		v.functions(state, run)
		for _, argument := range run.Items {
			if m, ok := argument.(*value.Map); ok {
				v.argument(m)
			}
		}
	case nil:
		v.add("%s of %s ends with a colon and has no arguments", state,
			v.idText).WithHint(diag.SLS, "leave the colon out, or write `"+state+": []`")
	default:
		v.add("%s of %s holds a %s, and a list of arguments was expected", state, v.idText, value.TypeName(run)).
			WithHint(diag.SLS, "write each argument as `- name: value`")
	}
}

// functions checks that the state names exactly one function.
func (v *verifier) functions(state string, run *value.List) {
	var found []string
	wrong := false
	if strings.Contains(state, ".") {
		found = append(found, state)
	}
	for _, argument := range run.Items {
		name, ok := argument.(string)
		if !ok {
			continue
		}
		word := strings.TrimSpace(name)
		switch argument, _, colon := strings.Cut(word, ":"); {
		case colon && argument != "":
			v.add("%q in %s of %s is not a function", name, state,
				v.idText).
				WithHint(diag.SLS, "if it is an argument, it lacks a space after the colon: write `- "+argument+": ...`")
			wrong = true
		case strings.Contains(word, " "):
			v.add("%q in %s of %s is not a function", name, state, v.idText).
				WithHint(diag.SLS, "if it is an argument, it lacks a colon")
			wrong = true
		default:
			found = append(found, name)
		}
	}
	switch {
	case len(found) == 0 && !wrong && state != "require" && state != "watch":
		v.add("%s of %s names no function", state, v.idText).WithHint(diag.SLS, "write "+state+
			".FUNCTION: in its place; docs/states.md lists modules and their functions")
	case len(found) > 1:
		v.add("%s of %s names more than one function: %s", state, v.idText, strings.Join(found, ", ")).
			WithHint(diag.SLS, "give each an ID of its own")
	}
}

func (v *verifier) argument(m *value.Map) {
	key, arg, ok := single(m)
	if !ok {
		return
	}
	v.key = key
	defer func() { v.key = "" }()
	list, isList := arg.(*value.List)
	switch key {
	case "names":
		if !isList {
			v.add("names of %s is a %s, and a list was expected", v.idText,
				value.TypeName(arg)).WithHint(diag.SLS, "write each name as `- name` below it")
		}
	case "require", "watch", "prereq", "onchanges":
		if !isList {
			v.noList(key, arg)
			return
		}
		if m.Len() != 1 {
			v.add("an argument of %s has %s", v.idText, diag.Count(m.Len(), "key")).
				WithHint(diag.SLS, "give each argument a dash of its own")
		}
		v.wants[v.idText] = &wanted{state: v.state, names: map[string]string{}}
		for _, item := range list.Items {
			v.requisite(key, item)
			v.itself(key, item)
			v.mutual(item)
		}
	default:
		if turned(key) || key == "listen" || key == "listen_in" || slices.Contains(kinds(), key) {
			v.otherRequisite(key, arg)
		}
	}
}

// noList adds a problem for a requisite that is not a list.
func (v *verifier) noList(key string, arg any) {
	v.add("%s of %s is a %s, and a list was expected", key, v.idText, value.TypeName(arg)).
		WithHint(diag.SLS, "write `- "+key+":` and below it `- state: id`")
}

// otherRequisite checks a requisite whose shape Salt does not check: Salt ignores one that it cannot read. An _in
// requisite may be one mapping; one without a value is ignored.
func (v *verifier) otherRequisite(key string, arg any) {
	switch arg := arg.(type) {
	case nil:
	case *value.List:
		for _, item := range arg.Items {
			v.requisite(key, item)
		}
	case *value.Map:
		if !turned(key) {
			v.noList(key, arg)
		}
	default:
		v.noList(key, arg)
	}
}

func (v *verifier) requisite(key string, item any) {
	if _, ok := item.(string); ok {
		return
	}
	state, name, ok := single(item)
	if !ok {
		v.add("%s of %s holds %s, and `state: id` was expected", key, v.idText,
			value.Repr(item)).WithHint(diag.Requisite, "write `- state: id`, such as `- pkg: nginx`")
		return
	}
	if plain := withoutDot(state); plain != state {
		v.add("%s of %s names %s: %s, and a requisite names a state without its function", key, v.idText, state,
			value.Str(name)).
			WithHint(diag.Requisite, "write "+plain+": "+value.Str(name))
	}
	switch name.(type) {
	case *value.List, *value.Map:
		v.add("%s of %s names %s: %s, and a name was expected", key, v.idText, state, value.Repr(name)).
			WithHint(diag.Requisite, "write one item for each name")
	}
}

// itself adds a problem for a requisite of a state on its own name; mutual does so for one on its own ID.
func (v *verifier) itself(key string, item any) {
	state, target, _ := single(item)
	name, ok := target.(string)
	if !ok || state != v.state || name == v.idText || name == "" {
		return
	}
	for _, argument := range arguments(v.high.Data, v.idText, v.state) {
		if m, _ := argument.(*value.Map); m.Value("name") == name {
			v.add("%s of %s names %s: %s, which is this state itself", key, v.idText, state, name).
				WithHint(diag.Requisite, "remove this requisite, or correct the name")
		}
	}
}

// mutual adds a problem for two declarations that wait for each other, and for one that waits for itself. Longer cycles
// are found when steps are linked.
func (v *verifier) mutual(item any) {
	state, target, _ := single(item)
	if bare, ok := item.(string); ok {
		state, target = "id", bare
	}
	name, ok := target.(string)
	if !ok {
		return
	}
	own := v.wants[v.idText]
	own.names[name] = state
	other := v.wants[name]
	if other != nil && other.state == state && other.names[v.idText] == v.state && v.state != "" {
		way := []string{state + ": " + name}
		if name != v.idText {
			way = append(way, v.state+": "+v.idText)
		}
		v.problems.Add(v.high.at(name, state), "requisites form a cycle: %s",
			strings.Join(append(way, way[0]), " -> ")).
			WithHint(diag.Requisite, "remove one of these requisites")
	}
}
