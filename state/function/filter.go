package function

import (
	"errors"

	"github.com/corpus-agent/corpus-agent/state/diag"
	"github.com/corpus-agent/corpus-agent/state/value"
)

// Filter has the arguments of grains.filter_by and pillar.filter_by.
type Filter struct {
	Lookup   *value.Map // pattern -> value
	Key      any        // path in the data of the value that is matched
	Merge    any        // mapping that is merged into the chosen value
	Fallback any        // pattern that is used if none matches
	Base     any        // pattern of the value into which the chosen one is merged
}

// FilterBy returns the value of the first pattern that matches the data. If the data is a list, its items are tried
// in order. The result may be a value of Lookup itself, which merging then modifies.
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
		return nil, diag.Call.Hint(errors.New("the base is a mapping, and the chosen value is not"),
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
		return nil, TypeError("the chosen value is a %s, and nothing can be merged into it", value.TypeName(chosen))
	}
	value.Update(under, value.Copy(over).(*value.Map), true, false)
	return under, nil
}

// Update merges src into dest recursively, as most functions of Salt do, and modifies dest.
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
