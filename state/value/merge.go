package value

import "fmt"

// Strategy is a way to merge two mappings, as in Salt's pillar_source_merging_strategy.
type Strategy string

// The strategies. Smart is Recurse for everything that is plain YAML.
const (
	Smart     Strategy = "smart"
	Recurse   Strategy = "recurse"
	Aggregate Strategy = "aggregate"
	Overwrite Strategy = "overwrite"
	ListMerge Strategy = "list"
	None      Strategy = "none"
)

// Strategies returns all strategies.
func Strategies() []Strategy {
	return []Strategy{Smart, Recurse, Aggregate, Overwrite, ListMerge, None}
}

// Merge merges src over dst and returns the result. It changes neither, but the result may share values with src.
//
//   - smart, recurse, none: mappings are merged at every level. Any other value of src, even null, replaces that of
//     dst.
//   - overwrite, aggregate: a key of src replaces the same key of dst as a whole.
//   - list: a key that both have becomes the list of both values; what only src has is lost.
//
// With mergeLists, a list of src is appended to the list of dst, without the items dst has already.
// An unknown strategy is an error.
func Merge(dst, src *Map, strategy Strategy, mergeLists bool) (*Map, error) {
	merged := Copy(dst).(*Map)
	switch strategy {
	case Smart, Recurse:
		Update(merged, src, true, mergeLists)
	case None:
		Update(merged, src, true, false)
	case Overwrite, Aggregate:
		merged.Update(src)
	case ListMerge:
		for k, v := range merged.All() {
			if w, ok, _ := src.GetKey(k); ok {
				merged.put(k, NewList(v, w))
			}
		}
	default:
		return nil, fmt.Errorf("merging mappings: there is no strategy %q", strategy)
	}
	return merged, nil
}

// Update sets every key of src in dst. If it is recursive, two mappings under one key are merged
// in the same way, and with mergeLists two lists are joined, as in Merge.
func Update(dst, src *Map, recursive, mergeLists bool) {
	if dst == src {
		return
	}
	if !recursive {
		dst.Update(src)
		return
	}
	for k, v := range src.All() {
		old, _, _ := dst.GetKey(k)
		dst.put(k, merged(old, v, mergeLists))
	}
}

func merged(old, v any, mergeLists bool) any {
	switch v := v.(type) {
	case *Map:
		if m, ok := old.(*Map); ok {
			Update(m, v, true, mergeLists)
			return m
		}
	case *List:
		if l, ok := old.(*List); ok && mergeLists {
			return appendMissing(l, v)
		}
	}
	return v
}

func appendMissing(l, more *List) *List {
	all := Copy(l).(*List)
	for _, item := range more.Items {
		if !Contains(all.Items, item) {
			all.Append(item)
		}
	}
	return all
}

// Contains reports whether an item equals v.
func Contains(items []any, v any) bool {
	for _, item := range items {
		if Equal(item, v) {
			return true
		}
	}
	return false
}
