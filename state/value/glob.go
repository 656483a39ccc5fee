package value

import "strings"

// Fnmatch reports whether a name fits a pattern, as Python's fnmatch does: * and ? match any
// character, / included, [!a-c] negates, and a bracket that is never closed is a bracket. It keeps
// one place to return to, so it is never worse than pattern times name.
func Fnmatch(pattern, name string) bool {
	p, n := 0, 0
	star, retry := -1, 0
	for n < len(name) {
		if p < len(pattern) && pattern[p] == '*' {
			star, retry = p, n
			p++
			continue
		}
		if size, ok := matchOne(pattern[p:], name[n]); ok {
			p += size
			n++
			continue
		}
		if star < 0 {
			return false
		}
		retry++
		p, n = star+1, retry
	}
	return strings.Trim(pattern[p:], "*") == ""
}

// matchOne matches one character and says how much of the pattern it took.
func matchOne(pattern string, c byte) (size int, ok bool) {
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
	return 1, pattern[0] == c
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

func inSet(set string, c byte) bool {
	negate := strings.HasPrefix(set, "!")
	set = strings.TrimPrefix(set, "!")
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
