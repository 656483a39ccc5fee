package function

import (
	"errors"

	"github.com/corpus-agent/corpus-agent/state/diag"
	"github.com/corpus-agent/corpus-agent/state/value"
)

// filter is what grains.filter_by and pillar.filter_by choose from.
type filter struct {
	lookup   *value.Map // pattern -> value
	key      any        // path into the data; what it leads to is matched
	merge    any        // mapping to put over the chosen value
	fallback any        // pattern to take if none matches
	base     any        // pattern whose value the chosen one is put over
}

// filterBy chooses the first pattern that the data fits. Where the data is a list, its items are
// tried in order. The value that is chosen belongs to the caller's mapping, and merging changes it
// there.
func filterBy(data *value.Map, f filter) (any, error) {
	chosen, err := f.choose(traverse(data, f.key, value.NewList(), ":"))
	if err != nil {
		return nil, err
	}
	if chosen, err = f.overBase(chosen); err != nil {
		return nil, err
	}
	return f.merged(chosen)
}

func (f filter) choose(found any) (any, error) {
	items := []any{found}
	if l, ok := found.(*value.List); ok {
		items = l.Items
	}
	for _, item := range items {
		if chosen := f.first(value.Str(item)); chosen != nil {
			return chosen, nil
		}
	}
	chosen, _, err := f.lookup.GetKey(f.fallback)
	return chosen, err
}

func (f filter) first(text string) any {
	for pattern, v := range f.lookup.All() {
		if value.Glob(value.Str(pattern), text) {
			return v
		}
	}
	return nil
}

func (f filter) overBase(chosen any) (any, error) {
	if !value.Truth(f.base) {
		return chosen, nil
	}
	base, ok, err := f.lookup.GetKey(f.base)
	if !ok || err != nil {
		return chosen, err
	}
	under, ok := base.(*value.Map)
	switch {
	case chosen == nil:
		return base, nil
	case !ok:
		return chosen, nil
	}
	over, ok := chosen.(*value.Map)
	if !ok {
		return nil, diag.WithHint(errors.New("the base is a mapping, and what was chosen is none"), "make every value of the lookup a mapping")
	}
	under = value.Copy(under).(*value.Map)
	value.Update(under, over, true, false)
	return under, nil
}

func (f filter) merged(chosen any) (any, error) {
	if !value.Truth(f.merge) {
		return chosen, nil
	}
	over, ok := f.merge.(*value.Map)
	if !ok {
		return nil, typeError("argument merge: %v", expected("a mapping", f.merge))
	}
	if chosen == nil {
		return over, nil
	}
	under, ok := chosen.(*value.Map)
	if !ok {
		return nil, typeError("what was chosen is a %s, and nothing can be merged into it", value.TypeName(chosen))
	}
	value.Update(under, value.Copy(over).(*value.Map), true, false)
	return under, nil
}

// update is the recursive merge that everything of Salt's is built on: it changes dest.
func update(dest, src any, recursive, mergeLists bool) (any, error) {
	under, ok := dest.(*value.Map)
	over, okOver := src.(*value.Map)
	if !ok || !okOver {
		return nil, typeError("a %s cannot be merged into a %s: both have to be mappings", value.TypeName(src), value.TypeName(dest))
	}
	value.Update(under, over, recursive, mergeLists)
	return under, nil
}
