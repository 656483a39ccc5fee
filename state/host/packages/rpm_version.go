package packages

import "strings"

// compareRPM orders two versions of rpm packages, [epoch:]version[-release]: -1, 0 or 1. Where only
// one of them has a release, releases do not count: 3.2 is what 3.2-1 is.
func compareRPM(a, b string) int { return compareEVR(a, b, compareRPMParts) }

// compareEVR orders two versions by their epochs, and then by how the parts between dashes compare.
// Where only one of them has a release, releases do not count.
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

// splitEVR takes a version apart at its epoch and its last dash.
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

// compareRPMParts orders runs of digits as numbers and runs of letters as text; a number is newer
// than letters. A tilde is older than the end, as in 1.0~rc1, a caret newer, as in 1.0^git5, but
// older than anything else that follows.
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

// compareRuns orders the runs of digits, or of letters, with which two texts begin, by the kind of the
// first one: digits are numbers, and newer than what is none. It gives what follows the runs.
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

// rpmMarks looks for tildes and carets at the start: done says that they decide, both that both have
// the same.
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

// runOf splits off the start of s that is of one kind.
func runOf(s string, is func(byte) bool) (start, rest string) {
	n := 0
	for n < len(s) && is(s[n]) {
		n++
	}
	return s[:n], s[n:]
}
