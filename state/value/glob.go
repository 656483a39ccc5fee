package value

import (
	"strings"
	"unicode/utf8"
)

// Glob reports whether a name fits a pattern as in Python's fnmatch: * and ? match any character, /
// included, [!a-c] negates, and a bracket that is never closed is an ordinary character. It keeps one position for
// backtracking, so its time is at most the product of both lengths.
func Glob(pattern, name string) bool {
	if !strings.ContainsAny(pattern, "*?[") {
		return pattern == name
	}
	p, n := 0, 0
	star, retry := -1, 0
	for n < len(name) {
		if p < len(pattern) && pattern[p] == '*' {
			star, retry = p, n
			p++
			continue
		}
		c, width := utf8.DecodeRuneInString(name[n:])
		if size, ok := matchOne(pattern[p:], c); ok {
			p += size
			n += width
			continue
		}
		if star < 0 {
			return false
		}
		_, width = utf8.DecodeRuneInString(name[retry:])
		retry += width
		p, n = star+1, retry
	}
	return strings.Trim(pattern[p:], "*") == ""
}

// matchOne matches one character and returns the length of the part of the pattern for it.
func matchOne(pattern string, c rune) (size int, ok bool) {
	if pattern == "" {
		return 0, false
	}
	switch pattern[0] {
	case '?':
		return 1, true
	case '[':
		if end := closing(pattern); end > 0 {
			return end + 1, inSet(pattern[1:end], c)
		}
	}
	first, size := utf8.DecodeRuneInString(pattern)
	return size, first == c
}

// closing finds the bracket that ends a set; one right at its start belongs to the set.
func closing(pattern string) int {
	from := 1
	if strings.HasPrefix(pattern[from:], "!") {
		from++
	}
	if strings.HasPrefix(pattern[from:], "]") {
		from++
	}
	if i := strings.IndexByte(pattern[from:], ']'); i >= 0 {
		return from + i
	}
	return -1
}

func inSet(text string, c rune) bool {
	negate := strings.HasPrefix(text, "!")
	set := []rune(strings.TrimPrefix(text, "!"))
	found := false
	for i := 0; i < len(set); i++ {
		if i+2 < len(set) && set[i+1] == '-' {
			found = found || set[i] <= c && c <= set[i+2]
			i += 2
			continue
		}
		found = found || set[i] == c
	}
	return found != negate
}
