// Package structsort sorts lists of structs.
//
// The functions of package slices are compiled once for each type of element, which adds 12 to 15 KB to a program for
// each struct. Those of this package compare through an index and are compiled once.
package structsort

import "sort"

// Func sorts a list by a comparison, which returns a negative number if a comes before b. Elements that compare equal
// keep their order.
func Func[T any](list []T, compare func(a, b T) int) {
	sort.SliceStable(list, func(i, j int) bool { return compare(list[i], list[j]) < 0 })
}
