package compile

import (
	"github.com/corpus-agent/corpus-agent/state/diag"
	"github.com/corpus-agent/corpus-agent/state/value"
)

// isRequisite reports whether an extension adds to the argument of this name instead of replacing it.
func isRequisite(key string) bool {
	switch key {
	case "onchanges", "onchanges_any", "onfail", "onfail_any", "onfail_all", "onfail_stop",
		"prereq", "prerequired", "watch", "watch_any", "require", "require_any", "listen":
		return true
	}
	return false
}

// extend merges the extensions into the declarations that they name. If strict is set, as for requisites, extend
// considers only IDs that have the state. origins has the requisites from which extensions were made; extensions that
// are not in origins are written in files.
func extend(high *High, strict bool, problems *diag.List, origins map[*value.Map]origin) {
	extensions, _ := high.Data.Value(KeyExtend).(*value.List)
	high.Data.Delete(KeyExtend)
	if extensions == nil {
		return
	}
	x := &extender{high: high, names: newNameIndex(high.Data), skipped: excludedFiles(high.Data), strict: strict,
		origins: origins, problems: problems}
	for _, item := range extensions.Items {
		chunk, _ := item.(*value.Map)
		for name, body := range chunk.All() {
			id, idOK := name.(string)
			extension, bodyOK := body.(*value.Map)
			if idOK && bodyOK {
				x.one(id, extension)
			}
		}
	}
}

// origin is the requisite from which an extension was made.
type origin struct {
	pos  diag.Pos
	text string // such as require_in of web
}

type extender struct {
	high     *High
	names    *nameIndex
	skipped  map[string]bool // SLS files that are excluded
	strict   bool
	origins  map[*value.Map]origin
	problems *diag.List
}

func (x *extender) one(id string, extension *value.Map) {
	state := firstState(extension)
	body, _ := x.high.Data.Value(id).(*value.Map)
	if body == nil || !body.Has(state) {
		found := x.names.find(id, state, x.strict)
		if len(found) != 1 {
			x.unknown(id, extension, len(found))
			return
		}
		id = found[0]
		body, _ = x.high.Data.Value(id).(*value.Map)
	}
	if body == nil || x.skipped[value.Str(extension.Value(KeySLS))] {
		return
	}
	for key, run := range extension.All() {
		if internal(key) {
			continue
		}
		state := value.Str(key)
		target, _ := body.Value(state).(*value.List)
		addition, _ := run.(*value.List)
		if target == nil {
			body.Set(state, run)
			continue
		}
		if addition != nil {
			mergeArguments(target, addition)
		}
	}
}

func (x *extender) unknown(id string, extension *value.Map, found int) {
	o, ok := x.origins[extension]
	if !ok {
		o = origin{x.high.posOf(extension), "the extension of " + id}
	}
	if o.pos.IsZero() {
		o.pos.File = value.Str(extension.Value(KeySLS))
	}
	if found > 1 {
		x.problems.Add(o.pos, "%s: %q is ambiguous: it is the name of %d states", o.text, id, found).
			WithHint(diag.Requisite, "write the ID of one of them")
		return
	}
	hint := ""
	if len(*x.problems) < suggestions {
		hint = diag.DidYouMean(id, x.high.Data.Names())
	}
	if hint == "" {
		hint = "include the SLS that declares it, or correct the ID"
	}
	x.problems.Add(o.pos, "%s: there is no ID %q in this run", o.text, id).WithHint(diag.Requisite, hint)
}

func firstState(body *value.Map) string {
	for key := range body.All() {
		if !internal(key) {
			return value.Str(key)
		}
	}
	return ""
}

// mergeArguments merges the arguments of an extension: a function replaces the function, requisites are appended, other
// arguments are replaced, and new ones are added.
func mergeArguments(target, addition *value.List) {
	for _, argument := range addition.Items {
		if !mergeArgument(target, argument) {
			target.Append(argument)
		}
	}
}

func mergeArgument(target *value.List, argument any) (merged bool) {
	if _, ok := argument.(string); ok {
		for i, old := range target.Items {
			if _, ok := old.(string); ok {
				target.Items[i] = argument
				merged = true
			}
		}
		return merged
	}
	key, v, ok := single(argument)
	if !ok {
		return false
	}
	for i, old := range target.Items {
		oldKey, oldValue, ok := single(old)
		switch {
		case !ok:
		case oldKey == key && isRequisite(key):
			appendTo(oldValue, v)
			merged = true
		case oldKey == key:
			target.Items[i] = argument
			merged = true
		case key == "name" && oldKey == "names":
			target.Items[i] = argument
		}
	}
	return merged
}

func appendTo(list, more any) {
	to, _ := list.(*value.List)
	from, _ := more.(*value.List)
	if to != nil && from != nil && to != from {
		to.Items = append(to.Items, from.Items...)
	}
}

// single returns the name and the value of an argument, which are the first key of the mapping and its value.
func single(argument any) (key string, v any, ok bool) {
	m, _ := argument.(*value.Map)
	for k, v := range m.All() {
		name, ok := k.(string)
		return name, v, ok
	}
	return "", nil, false
}
