package value

import (
	"fmt"
	"math"
	"math/big"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/corpus-agent/corpus-agent/artifact/structsort"
)

// JSONOptions are options of Python's json.dumps.
type JSONOptions struct {
	Indent   string // indentation of one level; "" writes everything on one line unless Lines is set
	Lines    bool   // write one member or item per line
	SortKeys bool
	ASCII    bool // escape everything that is not ASCII
}

// Dumps writes v as Python's json.dumps does. For a value that JSON cannot represent, the error is a TypeError.
func Dumps(v any, o JSONOptions) (string, error) {
	d := dumper{options: o}
	d.options.Lines = o.Lines || o.Indent != ""
	if err := d.value(v); err != nil {
		return "", err
	}
	return d.String(), nil
}

type dumper struct {
	strings.Builder
	options JSONOptions
	level   int
	budget  int // number of values so far; shared values can be printed very often, so the output is limited
}

func (d *dumper) value(v any) error {
	if d.level > maxDepth {
		return valueError("Circular reference detected")
	}
	if d.budget++; d.budget&1023 == 0 {
		if err := checkText(d.Len()); err != nil {
			return err
		}
	}
	switch v := v.(type) {
	case nil:
		d.WriteString("null")
	case bool:
		d.WriteString(strconv.FormatBool(v))
	case string:
		d.quote(v)
	case int:
		d.WriteString(strconv.Itoa(v))
	case *big.Int:
		d.WriteString(v.String())
	case float64:
		d.WriteString(jsonFloat(v))
	case *List:
		return d.items(v.Items)
	case Tuple:
		return d.items(v)
	case *Map:
		return d.members(v)
	case interface{ JSONItems() []any }: // a kind of tuple of another package
		return d.items(v.JSONItems())
	default:
		return typeError("Object of type %s is not JSON serializable", TypeName(v))
	}
	return nil
}

// jsonFloat formats a float as Python does: NaN, Infinity and -Infinity are words that JSON does not have.
func jsonFloat(f float64) string {
	switch {
	case math.IsInf(f, 1):
		return "Infinity"
	case math.IsInf(f, -1):
		return "-Infinity"
	case f != f:
		return "NaN"
	}
	return floatRepr(f)
}

func (d *dumper) items(items []any) error {
	if len(items) == 0 {
		d.WriteString("[]")
		return nil
	}
	d.open('[')
	for i, item := range items {
		d.separate(i)
		if err := d.value(item); err != nil {
			return err
		}
	}
	d.close(']')
	return nil
}

func (d *dumper) members(m *Map) error {
	if m.Len() == 0 {
		d.WriteString("{}")
		return nil
	}
	keys := m.Keys()
	if d.options.SortKeys {
		if err := SortBy(keys, func(k any) any { return k }, false); err != nil {
			return err
		}
	}
	d.open('{')
	for i, k := range keys {
		name, err := JSONKey(k)
		if err != nil {
			return &Error{Class: "TypeError", Message: err.Error()}
		}
		d.separate(i)
		d.quote(name)
		d.WriteString(": ")
		v, _, _ := m.GetKey(k)
		if err := d.value(v); err != nil {
			return err
		}
	}
	d.close('}')
	return nil
}

func (d *dumper) open(bracket byte) {
	d.WriteByte(bracket)
	d.level++
	d.newline()
}

func (d *dumper) separate(i int) {
	switch {
	case i == 0:
	case d.options.Lines:
		d.WriteByte(',')
		d.newline()
	default:
		d.WriteString(", ")
	}
}

func (d *dumper) close(bracket byte) {
	d.level--
	d.newline()
	d.WriteByte(bracket)
}

func (d *dumper) newline() {
	if d.options.Lines {
		d.WriteByte('\n')
		d.WriteString(strings.Repeat(d.options.Indent, d.level))
	}
}

func (d *dumper) quote(s string) {
	d.WriteByte('"')
	for i := 0; i < len(s); {
		r, size := utf8.DecodeRuneInString(s[i:])
		switch {
		case r == utf8.RuneError && size == 1: // a byte that is not UTF-8, as surrogateescape has it
			fmt.Fprintf(d, `\udc%02x`, s[i])
		default:
			d.quoteRune(r)
		}
		i += size
	}
	d.WriteByte('"')
}

func (d *dumper) quoteRune(r rune) {
	switch {
	case r == '"' || r == '\\':
		d.WriteByte('\\')
		d.WriteByte(byte(r))
	case r == '\n':
		d.WriteString(`\n`)
	case r == '\r':
		d.WriteString(`\r`)
	case r == '\t':
		d.WriteString(`\t`)
	case r == '\b':
		d.WriteString(`\b`)
	case r == '\f':
		d.WriteString(`\f`)
	case r < 0x20, d.options.ASCII && r > 0x7e && r <= 0xffff:
		fmt.Fprintf(d, `\u%04x`, r)
	case d.options.ASCII && r > 0xffff:
		r -= 0x10000
		fmt.Fprintf(d, `\u%04x\u%04x`, 0xd800+r>>10, 0xdc00+r&0x3ff)
	default:
		d.WriteRune(r)
	}
}

// SortBy sorts items as Python's sorted(items, key, reverse) does: it is stable, also in reverse. For keys without an
// order, the error is an *OrderError.
func SortBy(items []any, key func(any) any, reverse bool) error {
	type pair struct{ key, item any }
	pairs := make([]pair, len(items))
	for i, item := range items {
		pairs[i] = pair{key(item), item}
	}
	var failed error
	structsort.Func(pairs, func(a, b pair) int {
		c, err := Compare(a.key, b.key)
		if err != nil && failed == nil {
			failed = err
		}
		if reverse {
			return -c
		}
		return c
	})
	if failed != nil {
		return failed
	}
	for i, p := range pairs {
		items[i] = p.item
	}
	return nil
}
