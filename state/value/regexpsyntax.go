package value

import (
	"regexp"
	"strconv"
	"strings"
	"sync"
	"unicode"
	"unicode/utf8"
)

// EscapeRegexp is Python's re.escape.
func EscapeRegexp(s string) string {
	var b strings.Builder
	for _, r := range s {
		if strings.ContainsRune("()[]{}?*+-|^$\\.&~# \t\n\r\v\f", r) {
			b.WriteByte('\\')
		}
		b.WriteRune(r)
	}
	return b.String()
}

// waryOf says for which texts Go's engine would find something else than Python.
type waryOf struct {
	always  bool // back-references and look-around
	newline bool // $ matches before a last newline
	unicode bool // \w, \d, \s, \b know all of Unicode
}

func (w waryOf) of(s string) bool {
	return w.newline && strings.Contains(s, "\n") || w.unicode && !isASCII(s)
}

// translateRegexp rewrites Python's syntax into what Go's engine and the backtracking one both read.
func translateRegexp(pattern string, multiline bool) (string, waryOf, error) {
	t := regexpTranslator{rest: pattern, multiline: multiline}
	for t.rest != "" {
		if err := t.step(); err != nil {
			return "", waryOf{}, err
		}
	}
	if t.open > 0 {
		return "", waryOf{}, Raise("re.error", "missing ), unterminated subpattern")
	}
	return t.out.String(), t.wary, nil
}

type regexpTranslator struct {
	out       strings.Builder
	rest      string
	wary      waryOf
	open      int // parentheses
	multiline bool
}

func (t *regexpTranslator) step() error {
	switch t.rest[0] {
	case '\\':
		return t.escape(false)
	case '[':
		return t.class()
	case '(':
		return t.group()
	case ')':
		if t.open--; t.open < 0 {
			return Raise("re.error", "unbalanced parenthesis")
		}
	case '{':
		return t.repetition()
	case '$':
		t.wary.newline = t.wary.newline || !t.multiline
	}
	t.copy(1)
	return nil
}

func (t *regexpTranslator) copy(n int) {
	t.out.WriteString(t.rest[:n])
	t.rest = t.rest[n:]
}

func (t *regexpTranslator) replace(n int, with string) {
	t.out.WriteString(with)
	t.rest = t.rest[n:]
}

// group reads what may follow an opening parenthesis.
func (t *regexpTranslator) group() error {
	t.open++
	rest := t.rest
	switch {
	case strings.HasPrefix(rest, "(?P="):
		name, _, found := strings.Cut(rest[4:], ")")
		if !found {
			return Raise("re.error", "missing ), unterminated name")
		}
		t.wary.always = true
		t.open--
		t.replace(len("(?P=")+len(name)+1, `\k<`+name+`>`)
	case strings.HasPrefix(rest, "(?P<"):
		t.replace(len("(?P<"), "(?P<")
	case strings.HasPrefix(rest, "(?#"):
		comment, _, found := strings.Cut(rest, ")")
		if !found {
			return Raise("re.error", "missing ), unterminated comment")
		}
		t.open--
		t.replace(len(comment)+1, "")
	case lookAround().MatchString(rest):
		t.wary.always = true
		t.copy(2)
	case strings.HasPrefix(rest, "(?"):
		return t.inlineFlags()
	default:
		t.copy(1)
	}
	return nil
}

var (
	lookAround  = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^\(\?(?:=|!|<=|<!|>|\()`) })
	inlineFlags = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^\(\?([aiLmsux]*)(-[imsx]+)?([:)])`) })
	repeatForm  = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^\{(\d*)(,?)(\d*)\}`) })
)

func (t *regexpTranslator) inlineFlags() error {
	m := inlineFlags().FindStringSubmatch(t.rest)
	if m == nil {
		if strings.HasPrefix(t.rest, "(?:") {
			t.copy(3)
			return nil
		}
		return Raise("re.error", "unknown extension %.3s", t.rest)
	}
	flags := strings.Map(func(r rune) rune {
		if strings.ContainsRune("aLu", r) {
			return -1
		}
		return r
	}, m[1])
	t.multiline = t.multiline || strings.Contains(flags, "m")
	if m[3] == ")" {
		if t.out.Len() > 0 {
			return Raise("re.error", "global flags not at the start of the expression")
		}
		t.open--
		if flags == "" {
			t.replace(len(m[0]), "")
			return nil
		}
	}
	t.replace(len(m[0]), "(?"+flags+m[2]+m[3])
	return nil
}

// repetition knows that {,n} starts at nothing and that a brace without numbers is a plain one.
func (t *regexpTranslator) repetition() error {
	m := repeatForm().FindStringSubmatch(t.rest)
	switch {
	case m == nil || m[1] == "" && m[3] == "" && m[2] == "":
		t.replace(1, `\{`)
	case m[1] == "" && m[3] == "":
		t.replace(len(m[0]), "*")
	case m[1] == "":
		t.replace(len(m[0]), "{0,"+m[3]+"}")
	default:
		t.copy(len(m[0]))
	}
	return nil
}

// escape reads a backslash and what belongs to it.
func (t *regexpTranslator) escape(inClass bool) error {
	if len(t.rest) == 1 {
		return Raise("re.error", "bad escape (end of pattern)")
	}
	c := t.rest[1]
	switch {
	case strings.IndexByte("wWdDsS", c) >= 0:
		t.wary.unicode = true
		t.copy(2)
	case c == 'b' && inClass:
		t.replace(2, `\x08`)
	case !inClass && (c == 'b' || c == 'B'):
		t.wary.unicode = true
		t.copy(2)
	case !inClass && c == 'A':
		t.copy(2)
	case !inClass && c == 'Z':
		t.replace(2, `\z`)
	case strings.IndexByte("afnrtv", c) >= 0:
		t.copy(2)
	case c == 'x' || c == 'u' || c == 'U':
		return t.character(map[byte]int{'x': 2, 'u': 4, 'U': 8}[c])
	case c >= '0' && c <= '9':
		return t.number(inClass)
	case c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z':
		return Raise("re.error", `bad escape \%c`, c)
	default:
		r, size := utf8.DecodeRuneInString(t.rest[1:])
		t.replace(1+size, quoteRegexp(r))
	}
	return nil
}

func quoteRegexp(r rune) string {
	if r == '-' || r < 0x80 && !unicode.IsLetter(r) && !unicode.IsDigit(r) && r > ' ' && r != '_' {
		return `\` + string(r)
	}
	return string(r)
}

func (t *regexpTranslator) character(digits int) error {
	if len(t.rest) < 2+digits {
		return Raise("re.error", "incomplete escape %s", t.rest)
	}
	n, err := strconv.ParseUint(t.rest[2:2+digits], 16, 32)
	if err != nil || n > utf8.MaxRune {
		return Raise("re.error", "bad escape %s", t.rest[:2+digits])
	}
	t.replace(2+digits, quoteControl(rune(n)))
	return nil
}

func quoteControl(r rune) string {
	if r < ' ' || r == 0x7f {
		return `\x` + strconv.FormatInt(int64(r)+0x100, 16)[1:]
	}
	return quoteRegexp(r)
}

// number is a back-reference or, with a leading zero, three digits or inside a class, a character.
func (t *regexpTranslator) number(inClass bool) error {
	end := 1
	for end < len(t.rest) && end < 4 && t.rest[end] >= '0' && t.rest[end] <= '7' {
		end++
	}
	if octal := t.rest[1:end]; octal != "" && (octal[0] == '0' || len(octal) == 3 || inClass) {
		n, _ := strconv.ParseUint(octal, 8, 32)
		t.replace(end, quoteControl(rune(n)))
		return nil
	}
	if inClass {
		return Raise("re.error", `bad escape \%c`, t.rest[1])
	}
	end = 2
	if len(t.rest) > 2 && t.rest[2] >= '0' && t.rest[2] <= '9' {
		end = 3
	}
	t.wary.always = true
	t.replace(end, `(?:\`+t.rest[1:end]+`)`)
	return nil
}

// class copies [...]. A bracket inside is an ordinary character to Python.
func (t *regexpTranslator) class() error {
	t.copy(1)
	if strings.HasPrefix(t.rest, "^") {
		t.copy(1)
	}
	for first := true; t.rest != ""; first = false {
		switch {
		case t.rest[0] == ']' && !first:
			t.copy(1)
			return nil
		case t.rest[0] == '\\':
			if err := t.escape(true); err != nil {
				return err
			}
		case t.rest[0] == '[' || t.rest[0] == ']':
			t.replace(1, `\`+t.rest[:1])
		default:
			t.copy(1)
		}
	}
	return Raise("re.error", "unterminated character set")
}

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

// parseReplacementEscape reads what follows a backslash and tells how long it is.
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
