package diag

import (
	"strconv"
	"strings"
)

// Count writes a number of things, of which noun is one: "1 file", "2 files", "0 entries".
func Count[N int | int64 | uint64](n N, noun string) string {
	number := strconv.FormatInt(int64(n), 10)
	switch {
	case n == 1:
		return number + " " + noun
	case strings.HasSuffix(noun, "y"):
		return number + " " + strings.TrimSuffix(noun, "y") + "ies"
	}
	return number + " " + noun + "s"
}
