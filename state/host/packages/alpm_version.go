package packages

import "strings"

// comparePacman orders two versions of pacman, [epoch:]version[-release]: -1, 0 or 1. Where only one of
// them has a release, releases do not count.
func comparePacman(a, b string) int { return compareEVR(a, b, compareAlpmParts) }

// compareAlpmParts orders runs of digits as numbers and runs of letters as text, and more signs
// between them are newer. Letters that are left over make a version older, as in 1.0rc, and digits
// newer.
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
