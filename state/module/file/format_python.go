package file

import (
	"strings"
	"unicode/utf8"

	"github.com/corpus-agent/corpus-agent/state/value"
)

const pythonWidth = 80

// dumpPython writes data like Python's pprint: on one line if it fits, otherwise with one item per line. Unlike
// pprint it does not split long strings.
func dumpPython(v any, _ dumpOptions) (string, error) {
	var b strings.Builder
	pretty(&b, sorted(v), 0, 0)
	return b.String(), nil
}

// sorted returns the value with the keys of its mappings sorted, as pprint shows them.
func sorted(v any) any {
	switch v := v.(type) {
	case *value.Map:
		keys := v.Keys()
		if err := value.SortBy(keys, func(k any) any { return k }, false); err != nil {
			keys = v.Keys()
		}
		m := value.NewMap()
		for _, k := range keys {
			item, _, _ := v.GetKey(k)
			_ = m.SetKey(k, sorted(item))
		}
		return m
	case *value.List:
		l := value.NewList()
		for _, item := range v.Items {
			l.Append(sorted(item))
		}
		return l
	}
	return v
}

// pretty writes a value that starts at a column; allowance is the number of characters that must still fit on
// its last line.
func pretty(b *strings.Builder, v any, column, allowance int) {
	flat := value.Repr(v)
	if column+utf8.RuneCountInString(flat)+allowance <= pythonWidth {
		b.WriteString(flat)
		return
	}
	indent := ",\n" + strings.Repeat(" ", column+1)
	switch v := v.(type) {
	case *value.Map:
		b.WriteByte('{')
		n := 0
		for key, item := range v.All() {
			if n++; n > 1 {
				b.WriteString(indent)
			}
			name := value.Repr(key) + ": "
			b.WriteString(name)
			pretty(b, item, column+1+utf8.RuneCountInString(name), behind(n == v.Len(), allowance))
		}
		b.WriteByte('}')
	case *value.List:
		b.WriteByte('[')
		for i, item := range v.Items {
			if i > 0 {
				b.WriteString(indent)
			}
			pretty(b, item, column+1, behind(i == v.Len()-1, allowance))
		}
		b.WriteByte(']')
	default:
		b.WriteString(flat)
	}
}

// behind returns the room for what follows an item: a comma, or the closing brackets.
func behind(last bool, allowance int) int {
	if last {
		return allowance + 1
	}
	return 1
}
