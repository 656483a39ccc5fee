package value

import (
	"regexp"
	"strconv"
	"strings"
	"sync"
	"unicode/utf8"
)

// replacement is a piece of a template: text, or a group by number or name.
type replacement struct {
	text  string
	group int // -1 for text
	name  string
}

func (p replacement) write(b *strings.Builder, s string, m *Match) error {
	group := p.group
	if p.name != "" {
		i, ok := m.names[p.name]
		if !ok {
			return Raise("IndexError", "unknown group name %s", Repr(p.name))
		}
		group = i + 1
	}
	switch {
	case group < 0:
		b.WriteString(p.text)
	case group == 0:
		b.WriteString(s[m.Start:m.End])
	case group > len(m.Groups):
		return Raise("re.error", "invalid group reference %d", group)
	default:
		text, _ := m.Groups[group-1].(string)
		b.WriteString(text)
	}
	return nil
}

func parseReplacement(template string) ([]replacement, error) {
	var parts []replacement
	for template != "" {
		text, rest, found := strings.Cut(template, `\`)
		parts = append(parts, replacement{text: text, group: -1})
		if !found {
			break
		}
		if rest == "" {
			return nil, Raise("re.error", "bad escape (end of pattern)")
		}
		part, size, err := parseReplacementEscape(rest)
		if err != nil {
			return nil, err
		}
		parts = append(parts, part)
		template = rest[size:]
	}
	return parts, nil
}

var (
	groupByName   = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^g<(\w+)>`) })
	groupByNumber = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^[1-9][0-9]?`) })
	octalEscape   = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^(?:0[0-7]{0,2}|[1-3][0-7]{2})`) })
)

// parseReplacementEscape parses the text after a backslash and returns the length of the escape sequence.
func parseReplacementEscape(s string) (replacement, int, error) {
	if m := groupByName().FindStringSubmatch(s); m != nil {
		if n, err := strconv.Atoi(m[1]); err == nil {
			return replacement{group: n}, len(m[0]), nil
		}
		return replacement{name: m[1], group: -1}, len(m[0]), nil
	}
	if m := octalEscape().FindString(s); m != "" {
		n, _ := strconv.ParseUint(m, 8, 32)
		return replacement{text: string(rune(n)), group: -1}, len(m), nil
	}
	if m := groupByNumber().FindString(s); m != "" {
		n, _ := strconv.Atoi(m)
		return replacement{group: n}, len(m), nil
	}
	return parseLetterEscape(s)
}

// parseLetterEscape reads an escape of one character: those of letters are Python's, and others stay unchanged.
func parseLetterEscape(s string) (replacement, int, error) {
	const letters = "abfnrtv\\"
	const meaning = "\a\b\f\n\r\t\v\\"
	if i := strings.IndexByte(letters, s[0]); i >= 0 {
		return replacement{text: meaning[i : i+1], group: -1}, 1, nil
	}
	if c := s[0] | 0x20; c >= 'a' && c <= 'z' {
		return replacement{}, 0, Raise("re.error", `bad escape \%c`, s[0])
	}
	_, size := utf8.DecodeRuneInString(s)
	return replacement{text: `\` + s[:size], group: -1}, size, nil
}
