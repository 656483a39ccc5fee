package diag

import (
	"strconv"
	"strings"
)

// Count formats a number with a noun, given in the singular: "1 file", "2 files", "0 entries".
func Count(n int, noun string) string {
	number := strconv.Itoa(n)
	switch {
	case n == 1:
		return number + " " + noun
	case strings.HasSuffix(noun, "y") && !strings.HasSuffix(noun, "ay") && !strings.HasSuffix(noun, "ey"):
		return number + " " + strings.TrimSuffix(noun, "y") + "ies"
	}
	return number + " " + noun + "s"
}
