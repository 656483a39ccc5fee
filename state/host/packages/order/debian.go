// Package order orders versions of packages as their package managers do: dpkg, rpm, pacman and apk. Each function
// returns -1, 0 or 1.
package order

import "strings"

// Debian compares two Debian versions, [epoch:]upstream[-revision].
//
// Each part is compared as alternating text and numbers. In text, letters sort before other characters, the end of a
// part before letters, and a tilde before the end, so that 1.0~rc1 comes before 1.0.
func Debian(a, b string) int {
	ea, ua, ra := splitVersion(a)
	eb, ub, rb := splitVersion(b)
	if c := compareDigits(ea, eb); c != 0 {
		return c
	}
	if c := compareParts(ua, ub); c != 0 {
		return c
	}
	return compareParts(ra, rb)
}

func splitVersion(v string) (epoch, upstream, revision string) {
	v = strings.TrimSpace(v)
	if e, rest, ok := strings.Cut(v, ":"); ok {
		epoch, v = e, rest
	}
	if i := strings.LastIndexByte(v, '-'); i >= 0 {
		return epoch, v[:i], v[i+1:]
	}
	return epoch, v, ""
}

func compareParts(a, b string) int {
	for a != "" || b != "" {
		for startsText(a) || startsText(b) {
			if ca, cb := weight(a), weight(b); ca != cb {
				return sign(ca - cb)
			}
			a, b = tail(a), tail(b)
		}
		var na, nb string
		na, a = digits(a)
		nb, b = digits(b)
		if c := compareDigits(na, nb); c != 0 {
			return c
		}
	}
	return 0
}

func startsText(s string) bool { return s != "" && !isDigit(s[0]) }

// weight returns the position of the first byte of s in the order of text. A digit has the same position as the end.
func weight(s string) int {
	switch {
	case s == "" || isDigit(s[0]):
		return 0
	case s[0] == '~':
		return -1
	case 'a' <= s[0]|0x20 && s[0]|0x20 <= 'z':
		return int(s[0])
	}
	return int(s[0]) + 256
}

func tail(s string) string {
	if s == "" {
		return s
	}
	return s[1:]
}

func digits(s string) (number, rest string) {
	n := 0
	for n < len(s) && isDigit(s[n]) {
		n++
	}
	return s[:n], s[n:]
}

// compareDigits compares numbers of any length.
func compareDigits(a, b string) int {
	a, b = strings.TrimLeft(a, "0"), strings.TrimLeft(b, "0")
	if len(a) != len(b) {
		return sign(len(a) - len(b))
	}
	return strings.Compare(a, b)
}

func isDigit(c byte) bool { return '0' <= c && c <= '9' }

func sign(n int) int {
	switch {
	case n < 0:
		return -1
	case n > 0:
		return 1
	}
	return 0
}
