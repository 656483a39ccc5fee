package order

import "strings"

// Pacman compares two versions of pacman, [epoch:]version[-release]. If only one has a release, releases are ignored.
func Pacman(a, b string) int { return compareEVR(a, b, compareAlpmParts) }

// compareAlpmParts compares runs of digits as numbers and runs of letters as text. More separators between runs are
// newer. Remaining letters make a version older, as in 1.0rc, and remaining digits make it newer.
func compareAlpmParts(a, b string) int {
	if a == b {
		return 0
	}
	for a != "" && b != "" {
		restA, restB := strings.TrimLeftFunc(a, separatesAlpm), strings.TrimLeftFunc(b, separatesAlpm)
		between := len(a) - len(restA) - (len(b) - len(restB))
		a, b = restA, restB
		if a == "" || b == "" {
			break
		}
		if between != 0 {
			return sign(between)
		}
		var c int
		if c, a, b = compareRuns(a, b); c != 0 {
			return c
		}
	}
	return leftOver(a, b)
}

func leftOver(a, b string) int {
	switch {
	case a == "" && b == "":
		return 0
	case a == "" && !isLetter(b[0]), a != "" && isLetter(a[0]):
		return -1
	}
	return 1
}

func separatesAlpm(r rune) bool { return r > 127 || !isDigit(byte(r)) && !isLetter(byte(r)) }
