package syntax

import (
	"strings"
	"unicode/utf8"

	"github.com/corpus-agent/corpus-agent/state/value"
)

// Options configure the handling of white space around tags.
type Options struct {
	TrimBlocks   bool // drop the line break after a statement or comment
	LstripBlocks bool // drop the white space before a statement or comment that starts a line
}

// Normalize converts every line break of a template to \n, and drops the last one.
func Normalize(text string) string {
	if strings.Contains(text, "\r") {
		text = strings.ReplaceAll(strings.ReplaceAll(text, "\r\n", "\n"), "\r", "\n")
	}
	return strings.TrimSuffix(text, "\n")
}

// lexer splits a template into tokens.
type lexer struct {
	src          string
	options      Options
	pos          int
	line         int
	lineStarting bool // the last piece ended with a line break
	closers      []byte
	tokens       []token
}

// tokenize splits a normalized template into tokens. The last one is always tokEOF. After an error, it returns the
// tokens before it.
func tokenize(src string, o Options) ([]token, error) {
	l := &lexer{src: src, options: o, line: 1, lineStarting: true, tokens: make([]token, 0, len(src)/6+8)}
	var err error
	for l.pos < len(src) && err == nil {
		err = l.root()
	}
	last := 1
	if n := len(l.tokens); n > 0 {
		last = l.tokens[n-1].line
	}
	l.tokens = append(l.tokens, token{kind: tokEOF, line: last, at: len(src)})
	return l.tokens, err
}

// advance moves to an offset and counts the lines on the way.
func (l *lexer) advance(to int) {
	l.line += strings.Count(l.src[l.pos:to], "\n")
	l.pos = to
}

func (l *lexer) byteAt(i int) byte {
	if i < len(l.src) {
		return l.src[i]
	}
	return 0
}

// nextTag finds the first {{, {% or {# from an offset, or -1.
func (l *lexer) nextTag(from int) int {
	for {
		i := strings.IndexByte(l.src[from:], '{')
		if i < 0 || from+i+1 >= len(l.src) {
			return -1
		}
		from += i
		if c := l.src[from+1]; c == '{' || c == '%' || c == '#' {
			return from
		}
		from++
	}
}

// root reads text up to the next tag, and that tag.
func (l *lexer) root() error {
	tag := l.nextTag(l.pos)
	if tag < 0 {
		l.data(l.src[l.pos:])
		l.advance(len(l.src))
		return nil
	}
	sign := l.byteAt(tag + 2)
	if sign != '-' && sign != '+' {
		sign = 0
	}
	open := l.src[tag+1]
	l.data(l.stripBefore(l.src[l.pos:tag], sign, open == '{'))
	l.advance(tag)
	l.lineStarting = false
	after := tag + 2
	if sign != 0 {
		after++
	}
	switch {
	case open == '#':
		return l.comment(after)
	case open == '{':
		l.push(tokVariableBegin, l.pos)
		l.advance(after)
		return l.expression(true)
	}
	if body := l.rawBegin(after); body > 0 {
		l.endTag(body)
		return l.raw()
	}
	l.push(tokBlockBegin, l.pos)
	l.advance(after)
	return l.expression(false)
}

func (l *lexer) data(text string) {
	if text != "" {
		l.tokens = append(l.tokens, token{kind: tokData, line: l.line, at: l.pos, text: text})
	}
}

func (l *lexer) push(k kind, at int) {
	l.tokens = append(l.tokens, token{kind: k, line: l.line, at: at})
}

// stripBefore removes the white space before a tag according to its sign or to LstripBlocks.
func (l *lexer) stripBefore(text string, sign byte, variable bool) string {
	switch {
	case sign == '-':
		return value.StripRight(text)
	case sign == '+' || !l.options.LstripBlocks || variable:
		return text
	}
	line := strings.LastIndexByte(text, '\n') + 1
	if (line > 0 || l.lineStarting) && value.Strip(text[line:]) == "" {
		return text[:line]
	}
	return text
}

// skipSpace finds the end of the white space at an offset.
func (l *lexer) skipSpace(at int) int {
	return len(l.src) - len(value.StripLeft(l.src[at:]))
}

// tagEnd reads the end of a tag at an offset, with its sign and the white space that the sign removes. It returns the
// offset after it, or -1 if there is none.
func (l *lexer) tagEnd(at int, closing string, plus, trim bool) int {
	rest := l.src[at:]
	switch {
	case strings.HasPrefix(rest, "-"+closing):
		return l.skipSpace(at + 1 + len(closing))
	case plus && strings.HasPrefix(rest, "+"+closing):
		return at + 1 + len(closing)
	case !strings.HasPrefix(rest, closing):
		return -1
	}
	at += len(closing)
	if trim && l.options.TrimBlocks && l.byteAt(at) == '\n' {
		at++
	}
	return at
}

// endTag moves past a tag that ends at an offset.
func (l *lexer) endTag(end int) {
	l.lineStarting = end > 0 && l.src[end-1] == '\n'
	l.advance(end)
}

func (l *lexer) comment(from int) error {
	for at := from; at < len(l.src); at++ {
		if c := l.src[at]; c != '#' && c != '-' && c != '+' {
			continue
		}
		if end := l.tagEnd(at, "#}", true, true); end >= 0 {
			l.endTag(end)
			return nil
		}
	}
	if from >= len(l.src) {
		l.advance(len(l.src))
		return nil
	}
	return fail(l.line, l.pos, "Missing end of comment tag").withHint("close the comment with #}")
}

// rawBegin returns the start of the text of a raw block, if the tag at an offset begins one, or -1.
func (l *lexer) rawBegin(at int) int {
	at = l.skipSpace(at)
	if !strings.HasPrefix(l.src[at:], "raw") {
		return -1
	}
	at = l.skipSpace(at + len("raw"))
	if strings.HasPrefix(l.src[at:], "-%}") {
		return l.skipSpace(at + len("-%}"))
	}
	if strings.HasPrefix(l.src[at:], "%}") {
		return at + len("%}")
	}
	return -1
}

// raw reads text up to endraw.
func (l *lexer) raw() error {
	for from := l.pos; ; {
		i := strings.Index(l.src[from:], "{%")
		if i < 0 {
			break
		}
		from += i
		if sign, end := l.rawEnd(from); end >= 0 {
			l.data(l.stripBefore(l.src[l.pos:from], sign, false))
			l.endTag(end)
			return nil
		}
		from += 2
	}
	if l.pos >= len(l.src) {
		return nil
	}
	return fail(l.line, l.pos, "Missing end of raw directive").withHint("close it with {%% endraw %%}")
}

func (l *lexer) rawEnd(at int) (sign byte, end int) {
	at += 2
	if c := l.byteAt(at); c == '-' || c == '+' {
		sign = c
		at++
	}
	at = l.skipSpace(at)
	if !strings.HasPrefix(l.src[at:], "endraw") {
		return 0, -1
	}
	return sign, l.tagEnd(l.skipSpace(at+len("endraw")), "%}", true, true)
}

// expression splits the text inside {{ }} or {% %} into tokens, up to the end of the tag.
func (l *lexer) expression(variable bool) error {
	l.closers = l.closers[:0]
	closing, end := "%}", tokBlockEnd
	if variable {
		closing, end = "}}", tokVariableEnd
	}
	for l.pos < len(l.src) {
		if len(l.closers) == 0 {
			if after := l.tagEnd(l.pos, closing, !variable, !variable); after >= 0 {
				l.push(end, l.pos)
				l.endTag(after)
				return nil
			}
		}
		if after := l.skipSpace(l.pos); after > l.pos {
			l.advance(after)
			continue
		}
		if err := l.operand(); err != nil {
			return err
		}
	}
	return nil
}

// operand reads a number, a name, a string or an operator.
func (l *lexer) operand() error {
	c := l.src[l.pos]
	switch {
	case c >= '0' && c <= '9':
		return l.number()
	case c == '\'' || c == '"':
		return l.quoted(c)
	case isNameByte(c):
		return l.name()
	}
	return l.operator()
}

func isNameByte(c byte) bool {
	return c == '_' || c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || c >= utf8.RuneSelf
}

func (l *lexer) unexpected() error {
	r, _ := utf8.DecodeRuneInString(l.src[l.pos:])
	at := utf8.RuneCountInString(l.src[:l.pos])
	e := fail(l.line, l.pos, "unexpected char %s at %d", value.Repr(string(r)), at)
	if r == '\'' || r == '"' {
		return e.withHint("close the string with %c", r)
	}
	return e
}

// operators maps operators to their kinds; those of two characters are tried first.
var operators = map[string]kind{
	"+": tokAdd, "-": tokSub, "*": tokMul, "/": tokDiv, "//": tokFloorDiv, "%": tokMod, "**": tokPow,
	"~": tokTilde, "[": tokLbracket, "]": tokRbracket, "(": tokLparen, ")": tokRparen, "{": tokLbrace,
	"}": tokRbrace, "==": tokEq, "!=": tokNe, ">": tokGt, ">=": tokGe, "<": tokLt, "<=": tokLe,
	"=": tokAssign, ".": tokDot, ":": tokColon, "|": tokPipe, ",": tokComma, ";": tokSemicolon,
}

func (l *lexer) operator() error {
	size := 2
	k, ok := operators[l.src[l.pos:min(l.pos+2, len(l.src))]]
	if !ok {
		size = 1
		k, ok = operators[l.src[l.pos:l.pos+1]]
	}
	if !ok {
		return l.unexpected()
	}
	if err := l.balance(k); err != nil {
		return err
	}
	l.push(k, l.pos)
	l.pos += size
	return nil
}

// balance tracks the open brackets.
func (l *lexer) balance(k kind) error {
	switch k {
	case tokLbrace:
		l.closers = append(l.closers, '}')
	case tokLparen:
		l.closers = append(l.closers, ')')
	case tokLbracket:
		l.closers = append(l.closers, ']')
	case tokRbrace, tokRparen, tokRbracket:
		if len(l.closers) == 0 {
			return fail(l.line, l.pos, "unexpected '%s'", k)
		}
		expected := l.closers[len(l.closers)-1]
		l.closers = l.closers[:len(l.closers)-1]
		if k.String()[0] != expected {
			return fail(l.line, l.pos, "unexpected '%s', expected '%c'", k, expected)
		}
	}
	return nil
}
