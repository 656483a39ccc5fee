package external

import (
	"errors"
	"fmt"
	"slices"

	"github.com/corpus-agent/corpus-agent/state/diag"
	"github.com/corpus-agent/corpus-agent/state/value"
)

// keyStrategy is the key of a mapping, or of the first item of a list, whose value is the merge strategy.
const keyStrategy = "__"

// ways returns the strategies of PillarStack.
func ways() []string { return []string{"overwrite", "merge-first", "merge-last", "remove"} }

// way removes the strategy from a mapping and returns it.
func way(m *value.Map) (string, error) {
	v := m.Value(keyStrategy)
	m.Delete(keyStrategy)
	if v == nil {
		return "merge-last", nil
	}
	name := value.Str(v)
	if !slices.Contains(ways(), name) {
		return "", diag.External.Hint(fmt.Errorf("there is no strategy %q", name), "%s", diag.DidYouMean(name, ways()))
	}
	return name, nil
}

// stacked merges a mapping over another according to its strategy.
func stacked(all, m *value.Map) (*value.Map, error) {
	m = m.Clone()
	strategy, err := way(m)
	if err != nil {
		return nil, err
	}
	if strategy == "overwrite" {
		return cleaned(m).(*value.Map), nil //nolint:errcheck // a mapping stays a mapping
	}
	all = all.Clone()
	for key, v := range m.All() {
		old, has, err := all.GetKey(key)
		switch {
		case err != nil:
		case strategy == "remove":
			_, err = all.DeleteKey(key)
		case !has:
			err = all.SetKey(key, cleaned(v))
		default:
			if strategy == "merge-first" {
				old, v = cleaned(v), old
			}
			if v, err = over(old, v); err == nil {
				err = all.SetKey(key, v)
			}
		}
		if err != nil {
			return nil, err
		}
	}
	return all, nil
}

// over merges one value over another.
func over(old, v any) (any, error) {
	switch v := v.(type) {
	case *value.Map:
		if m, ok := old.(*value.Map); ok {
			return stacked(m, v)
		}
	case *value.List:
		if l, ok := old.(*value.List); ok {
			return stackedList(l, v)
		}
	}
	return cleaned(v), nil
}

func stackedList(old, l *value.List) (any, error) {
	strategy, items := "merge-last", l.Items
	if len(items) > 0 {
		if first, ok := items[0].(*value.Map); ok && first.Has(keyStrategy) {
			var err error
			if strategy, err = way(first.Clone()); err != nil {
				return nil, err
			}
			items = items[1:]
		}
	}
	switch strategy {
	case "overwrite":
		return value.NewList(items...), nil
	case "remove":
		return value.NewList(slices.DeleteFunc(slices.Clone(old.Items),
			func(v any) bool { return value.Contains(items, v) })...), nil
	case "merge-first":
		return value.NewList(slices.Concat(items, old.Items)...), nil
	case "merge-last":
		return value.NewList(slices.Concat(old.Items, items)...), nil
	}
	return nil, errors.New("there is no strategy " + strategy)
}

// cleaned returns a value without the keys of merge strategies.
func cleaned(v any) any {
	switch v := v.(type) {
	case *value.Map:
		m := v.Clone()
		m.Delete(keyStrategy)
		for key, item := range m.All() {
			_ = m.SetKey(key, cleaned(item)) // the key is valid, since it is in the mapping
		}
		return m
	case *value.List:
		if v.Len() > 0 {
			if first, ok := v.Items[0].(*value.Map); ok && first.Has(keyStrategy) {
				return value.NewList(v.Items[1:]...)
			}
		}
	}
	return v
}
