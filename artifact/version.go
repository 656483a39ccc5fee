package artifact

import (
	"cmp"
	"strings"
)

// CompareVersions orders versions for display: numbers in them are compared as numbers, so that 1.10 comes after 1.9.
// Nothing depends on the order; channels name versions exactly.
func CompareVersions(a, b string) int {
	for a != "" && b != "" {
		partA, restA := nextPart(a)
		partB, restB := nextPart(b)
		if c := compareParts(partA, partB); c != 0 {
			return c
		}
		a, b = restA, restB
	}
	return cmp.Compare(len(a), len(b))
}

// nextPart splits off the run of digits, or of other characters, at the start.
func nextPart(s string) (part, rest string) {
	digits := isDigit(s[0])
	i := 1
	for i < len(s) && isDigit(s[i]) == digits {
		i++
	}
	return s[:i], s[i:]
}

func compareParts(a, b string) int {
	if !isDigit(a[0]) || !isDigit(b[0]) {
		return cmp.Compare(a, b)
	}
	a, b = strings.TrimLeft(a, "0"), strings.TrimLeft(b, "0")
	return cmp.Or(cmp.Compare(len(a), len(b)), cmp.Compare(a, b))
}

func isDigit(c byte) bool { return '0' <= c && c <= '9' }
