package value

import (
	"regexp"
	"strings"
	"sync"
)

// waryOf says for which texts the matches of Go's engine may differ from Python's.
type waryOf struct {
	always  bool // back-references and look-around
	newline bool // $ also matches before a last newline
	unicode bool // \w, \d, \s, \b match all of Unicode
}

func (w waryOf) of(s string) bool {
	return w.newline && strings.Contains(s, "\n") || w.unicode && !isASCII(s)
}

// translateRegexp translates Python's syntax to one that Go's engine and the backtracking one both accept.
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

// group translates the start of a group after its opening parenthesis.
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

// repetition translates {,n} to {0,n}, and escapes a brace that is no repetition.
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
