package order

import "strings"

// RPM compares two versions of rpm packages, [epoch:]version[-release]. If only one has a release, releases are
// ignored: 3.2 equals 3.2-1.
func RPM(a, b string) int { return compareEVR(a, b, compareRPMParts) }

// compareEVR compares two versions by their epochs, then by their versions, then by their releases. It ignores the
// releases if one of the versions has none.
func compareEVR(a, b string, parts func(a, b string) int) int {
	ea, va, ra := splitEVR(a)
	eb, vb, rb := splitEVR(b)
	if c := compareDigits(ea, eb); c != 0 {
		return c
	}
	if c := parts(va, vb); c != 0 || ra == "" || rb == "" {
		return c
	}
	return parts(ra, rb)
}

// splitEVR splits a version at its epoch and its last dash.
func splitEVR(v string) (epoch, version, release string) {
	v = strings.TrimSpace(v)
	if e, rest, ok := strings.Cut(v, ":"); ok && strings.Trim(e, "0123456789") == "" {
		epoch, v = e, rest
	}
	if i := strings.LastIndexByte(v, '-'); i >= 0 {
		return epoch, v[:i], v[i+1:]
	}
	return epoch, v, ""
}

// compareRPMParts compares runs of digits as numbers and runs of letters as text; a number is newer than letters. A
// tilde is older than the end, as in 1.0~rc1. A caret is newer than the end, as in 1.0^git5, and older than any other
// text.
func compareRPMParts(a, b string) int {
	for {
		a, b = strings.TrimLeftFunc(a, separatesRPM), strings.TrimLeftFunc(b, separatesRPM)
		if c, done, both := rpmMarks(a, b); done {
			return c
		} else if both {
			a, b = a[1:], b[1:]
			continue
		}
		if a == "" || b == "" {
			return sign(len(a) - len(b))
		}
		var c int
		if c, a, b = compareRuns(a, b); c != 0 {
			return c
		}
	}
}

// compareRuns compares the runs with which two texts begin: runs of digits as numbers if a begins with a digit,
// otherwise runs of letters. Digits are newer than anything else. It returns the texts after the runs.
func compareRuns(a, b string) (c int, restA, restB string) {
	is := isLetter
	if isDigit(a[0]) {
		is = isDigit
	}
	x, restA := runOf(a, is)
	y, restB := runOf(b, is)
	switch {
	case y == "" && isDigit(x[0]):
		c = 1
	case y == "":
		c = -1
	case isDigit(x[0]):
		c = compareDigits(x, y)
	default:
		c = strings.Compare(x, y)
	}
	return c, restA, restB
}

// rpmMarks compares tildes and carets at the start of two texts. done reports that c is the result, both that both
// texts begin with the same mark.
func rpmMarks(a, b string) (c int, done, both bool) {
	for _, mark := range "~^" {
		x, y := strings.HasPrefix(a, string(mark)), strings.HasPrefix(b, string(mark))
		switch {
		case x && y:
			return 0, false, true
		case !x && !y:
			continue
		case mark == '^' && a == "":
			return -1, true, false
		case mark == '^' && b == "":
			return 1, true, false
		case x:
			return -1, true, false
		}
		return 1, true, false
	}
	return 0, false, false
}

func separatesRPM(r rune) bool {
	return r != '~' && r != '^' && (r > 127 || !isDigit(byte(r)) && !isLetter(byte(r)))
}

func isLetter(c byte) bool { return 'a' <= c|0x20 && c|0x20 <= 'z' }

// runOf splits off the longest prefix of s whose bytes satisfy is.
func runOf(s string, is func(byte) bool) (start, rest string) {
	n := 0
	for n < len(s) && is(s[n]) {
		n++
	}
	return s[:n], s[n:]
}
