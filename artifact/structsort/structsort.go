// Package structsort sorts and filters lists of structs.
//
// The functions of package slices are compiled once for each type of element, which adds 12 to 15 KB to a program for
// each struct that is sorted, and 1 KB for each that is filtered. Those of this package compare through an index and
// are compiled once, or are small.
package structsort

import "sort"

// Func sorts a list by a comparison, which returns a negative number if a comes before b. Elements that compare equal
// keep their order.
func Func[T any](list []T, compare func(a, b T) int) {
	sort.SliceStable(list, func(i, j int) bool { return compare(list[i], list[j]) < 0 })
}

// Without returns a new list of the elements for which drop returns false, in their order. It is nil if the list is
// nil.
func Without[T any](list []T, drop func(T) bool) []T {
	if list == nil {
		return nil
	}
	kept, n := make([]T, len(list)), 0
	for i := range list {
		if !drop(list[i]) {
			kept[n] = list[i]
			n++
		}
	}
	return kept[:n]
}
