package value

import (
	"bytes"
	"fmt"
	"math"
	"math/big"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Str returns Python's str(v), or repr(v) if str fails.
func Str(v any) string {
	s, err := ToStr(v)
	if err != nil {
		return Repr(v)
	}
	return s
}

// Stringer is an Object whose str differs from its repr, or cannot be printed.
type Stringer interface {
	Object
	PyStr() (string, error)
}

// ToStr implements Python's str(v). Only a Stringer can return an error.
func ToStr(v any) (string, error) {
	switch v := v.(type) {
	case string:
		return v, nil
	case int:
		return strconv.Itoa(v), nil
	case Stringer:
		return v.PyStr()
	}
	return Repr(v), nil
}

// Repr implements Python's repr(v).
func Repr(v any) string {
	var p printer
	p.print(v)
	return p.String()
}

type printer struct {
	strings.Builder
	open []any // the lists and mappings being printed; one that contains itself prints as [...]
}

func (p *printer) print(v any) {
	switch v := v.(type) {
	case nil:
		p.WriteString("None")
	case bool:
		if v {
			p.WriteString("True")
		} else {
			p.WriteString("False")
		}
	case int:
		p.WriteString(strconv.Itoa(v))
	case *big.Int:
		p.WriteString(v.String())
	case float64:
		p.WriteString(floatRepr(v))
	case string:
		p.quote(v)
	case []byte:
		p.quoteBytes(v)
	case *List:
		p.nested(v, "[...]", func() { p.items("[", v.Items, "]") })
	case Tuple:
		p.tuple(v)
	case *Map:
		p.nested(v, "{...}", func() { p.mapping(v) })
	case Object:
		p.WriteString(v.PyRepr())
	default:
		fmt.Fprintf(p, "<%T>", v)
	}
}

func (p *printer) nested(v any, cycle string, print func()) {
	for _, o := range p.open {
		if o == v {
			p.WriteString(cycle)
			return
		}
	}
	p.open = append(p.open, v)
	print()
	p.open = p.open[:len(p.open)-1]
}

func (p *printer) items(left string, items []any, right string) {
	p.WriteString(left)
	for i, item := range items {
		if i > 0 {
			p.WriteString(", ")
		}
		p.print(item)
	}
	p.WriteString(right)
}

func (p *printer) tuple(t Tuple) {
	if len(t) == 1 {
		p.items("(", t, ",)")
		return
	}
	p.items("(", t, ")")
}

func (p *printer) mapping(m *Map) {
	p.WriteByte('{')
	first := true
	for k, v := range m.All() {
		if !first {
			p.WriteString(", ")
		}
		first = false
		p.print(k)
		p.WriteString(": ")
		p.print(v)
	}
	p.WriteByte('}')
}

// quote writes a Python string literal, in single quotes unless the string has some and no double ones.
func (p *printer) quote(s string) {
	q := byte('\'')
	if strings.IndexByte(s, '\'') >= 0 && strings.IndexByte(s, '"') < 0 {
		q = '"'
	}
	p.WriteByte(q)
	for i := 0; i < len(s); {
		r, size := utf8.DecodeRuneInString(s[i:])
		p.quoteRune(r, size, s[i], q)
		i += size
	}
	p.WriteByte(q)
}

func (p *printer) quoteRune(r rune, size int, first, q byte) {
	switch {
	case r == rune(q) || r == '\\':
		p.WriteByte('\\')
		p.WriteByte(byte(r))
	case r == '\n':
		p.WriteString(`\n`)
	case r == '\r':
		p.WriteString(`\r`)
	case r == '\t':
		p.WriteString(`\t`)
	case r == utf8.RuneError && size == 1: // a byte that is not UTF-8, as Python's surrogateescape shows it
		fmt.Fprintf(p, `\udc%02x`, first)
	case r < ' ' || r == 0x7f:
		fmt.Fprintf(p, `\x%02x`, r)
	case r < 0x7f || printable(r):
		p.WriteRune(r)
	case r <= 0xff:
		fmt.Fprintf(p, `\x%02x`, r)
	case r <= 0xffff:
		fmt.Fprintf(p, `\u%04x`, r)
	default:
		fmt.Fprintf(p, `\U%08x`, r)
	}
}

// printable implements Python's str.isprintable: no separators except the space, no unassigned characters.
func printable(r rune) bool {
	return unicode.In(r, unicode.L, unicode.M, unicode.N, unicode.P, unicode.S)
}

func (p *printer) quoteBytes(b []byte) {
	quote := byte('\'')
	if bytes.IndexByte(b, '\'') >= 0 && bytes.IndexByte(b, '"') < 0 {
		quote = '"'
	}
	p.WriteByte('b')
	p.WriteByte(quote)
	for _, c := range b {
		p.quoteByte(c, quote)
	}
	p.WriteByte(quote)
}

// quoteByte writes a byte of a bytes literal in the given quotes.
func (p *printer) quoteByte(c, quote byte) {
	switch {
	case c == quote || c == '\\':
		p.WriteByte('\\')
		p.WriteByte(c)
	case c == '\n':
		p.WriteString(`\n`)
	case c == '\r':
		p.WriteString(`\r`)
	case c == '\t':
		p.WriteString(`\t`)
	case c < ' ' || c >= 0x7f:
		fmt.Fprintf(p, `\x%02x`, c)
	default:
		p.WriteByte(c)
	}
}

// floatRepr prints the shortest digits that read back the same, as Python does: plain between
// 1e-4 and 1e16, with an exponent of at least two digits outside.
func floatRepr(f float64) string {
	switch {
	case math.IsInf(f, 1):
		return "inf"
	case math.IsInf(f, -1):
		return "-inf"
	case f != f:
		return "nan"
	}
	if abs := math.Abs(f); abs != 0 && (abs < 1e-4 || abs >= 1e16) {
		return strconv.FormatFloat(f, 'e', -1, 64)
	}
	s := strconv.FormatFloat(f, 'f', -1, 64)
	if !strings.Contains(s, ".") {
		s += ".0"
	}
	return s
}
