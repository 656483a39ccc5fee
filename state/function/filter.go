package function

import (
	"errors"

	"github.com/corpus-agent/corpus-agent/state/diag"
	"github.com/corpus-agent/corpus-agent/state/value"
)

// Filter is what grains.filter_by and pillar.filter_by choose from.
type Filter struct {
	Lookup   *value.Map // pattern -> value
	Key      any        // path into the data; what it leads to is matched
	Merge    any        // mapping to put over the chosen value
	Fallback any        // pattern to take if none matches
	Base     any        // pattern whose value the chosen one is put over
}

// FilterBy chooses the first pattern that the data fits. Where the data is a list, its items are
// tried in order. The value that is chosen belongs to the caller's mapping, and merging changes it
// there.
func FilterBy(data *value.Map, f Filter) (any, error) {
	chosen, err := f.choose(Traverse(data, f.Key, value.NewList(), ":"))
	if err != nil {
		return nil, err
	}
	if chosen, err = f.overBase(chosen); err != nil {
		return nil, err
	}
	return f.merged(chosen)
}

func (f Filter) choose(found any) (any, error) {
	items := []any{found}
	if l, ok := found.(*value.List); ok {
		items = l.Items
	}
	for _, item := range items {
		if chosen := f.first(value.Str(item)); chosen != nil {
			return chosen, nil
		}
	}
	chosen, _, err := f.Lookup.GetKey(f.Fallback)
	return chosen, err
}

func (f Filter) first(text string) any {
	for pattern, v := range f.Lookup.All() {
		if value.Glob(value.Str(pattern), text) {
			return v
		}
	}
	return nil
}

func (f Filter) overBase(chosen any) (any, error) {
	if !value.Truth(f.Base) {
		return chosen, nil
	}
	base, ok, err := f.Lookup.GetKey(f.Base)
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
		return nil, diag.WithHint(errors.New("the base is a mapping, and what was chosen is none"),
			"make every value of the lookup a mapping")
	}
	under = value.Copy(under).(*value.Map)
	value.Update(under, over, true, false)
	return under, nil
}

func (f Filter) merged(chosen any) (any, error) {
	if !value.Truth(f.Merge) {
		return chosen, nil
	}
	over, ok := f.Merge.(*value.Map)
	if !ok {
		return nil, TypeError("argument merge: %v", Expected("a mapping", f.Merge))
	}
	if chosen == nil {
		return over, nil
	}
	under, ok := chosen.(*value.Map)
	if !ok {
		return nil, TypeError("what was chosen is a %s, and nothing can be merged into it", value.TypeName(chosen))
	}
	value.Update(under, value.Copy(over).(*value.Map), true, false)
	return under, nil
}

// Update is the recursive merge that everything of Salt's is built on: it changes dest.
func Update(dest, src any, recursive, mergeLists bool) (any, error) {
	under, ok := dest.(*value.Map)
	over, okOver := src.(*value.Map)
	if !ok || !okOver {
		return nil, TypeError("a %s cannot be merged into a %s: both have to be mappings", value.TypeName(src),
			value.TypeName(dest))
	}
	value.Update(under, over, recursive, mergeLists)
	return under, nil
}
