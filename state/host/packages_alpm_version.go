package host

import "strings"

// comparePacman orders two versions of pacman, [epoch:]version[-release]: -1, 0 or 1. Where only one of
// them has a release, releases do not count.
func comparePacman(a, b string) int {
	ea, va, ra := splitEVR(a)
	eb, vb, rb := splitEVR(b)
	if c := compareDigits(ea, eb); c != 0 {
		return c
	}
	if c := compareAlpmParts(va, vb); c != 0 || ra == "" || rb == "" {
		return c
	}
	return compareAlpmParts(ra, rb)
}

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
		var x, y string
		is := isLetter
		if isDigit(a[0]) {
			is = isDigit
		}
		x, a = runOf(a, is)
		y, b = runOf(b, is)
		if c := compareAlpmRuns(x, y); c != 0 {
			return c
		}
	}
	return leftOver(a, b)
}

// compareAlpmRuns orders two runs of the same kind; y is empty where the other is of another kind.
func compareAlpmRuns(x, y string) int {
	switch {
	case y == "" && isDigit(x[0]):
		return 1
	case y == "":
		return -1
	case isDigit(x[0]):
		return compareDigits(x, y)
	}
	return strings.Compare(x, y)
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
