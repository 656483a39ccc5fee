package yaml

import (
	"encoding/base64"
	"fmt"
	"math"
	"math/big"
	"strconv"
	"strings"

	"github.com/corpus-agent/corpus-agent/state/value"
)

// Collections says how lists and mappings are written.
type Collections uint8

// The ways of writing collections, in PyYAML's words default_flow_style None, True and False.
const (
	Mixed Collections = iota // in brackets unless there is a collection inside
	Flow                     // in brackets
	Block                    // one item or key per line
)

// Sorting says which mappings are written with sorted keys, if the keys have an order.
type Sorting uint8

// The ways of sorting.
const (
	Unsorted  Sorting = iota
	SortPlain         // plain dicts, as Salt does
	SortAll           // as PyYAML does
)

// DumpOptions are the options of PyYAML's dump.
type DumpOptions struct {
	Collections Collections
	Sort        Sorting
	ASCII       bool // escape everything that is not ASCII
	IndentLists bool // indent a list below its key
	Indent      int  // of one level; 0 is 2
	Width       int  // column after which lines are folded; 0 is 80
}

// Dump writes a value as PyYAML's safe_dump does, with the same folding, quoting, and anchors for shared lists and
// mappings. The text ends with a line break, and for a single scalar with the line "...".
func Dump(v any, o DumpOptions) string {
	e := newEmitter(o)
	e.countReferences(v)
	e.node(v, place{})
	e.indent = -1
	e.writeIndent()
	return e.out.String()
}

func newEmitter(o DumpOptions) *emitter {
	e := &emitter{options: o, indent: -1, whitespace: true, indention: true, anchors: map[any]*reference{}}
	if e.options.Indent < 2 || e.options.Indent > 9 {
		e.options.Indent = 2
	}
	if e.options.Width == 0 {
		e.options.Width = 80
	}
	if e.options.Width <= 2*e.options.Indent {
		e.options.Width = math.MaxInt
	}
	return e
}

// reference is a list or mapping that may occur more than once.
type reference struct {
	anchor string // "" if it occurs once
	met    bool
}

// countReferences assigns an anchor to every list and mapping that occurs more than once.
func (e *emitter) countReferences(v any) {
	switch v := v.(type) {
	case *value.List:
		if e.firstMeeting(v) {
			for _, item := range v.Items {
				e.countReferences(item)
			}
		}
	case value.Tuple:
		for _, item := range v {
			e.countReferences(item)
		}
	case *value.Map:
		if !e.firstMeeting(v) {
			return
		}
		for _, k := range e.keys(v) {
			e.countReferences(k)
			item, _, _ := v.GetKey(k)
			e.countReferences(item)
		}
	}
}

func (e *emitter) firstMeeting(v any) bool {
	r, met := e.anchors[v]
	switch {
	case !met:
		e.anchors[v] = &reference{}
	case r.anchor == "":
		e.named++
		r.anchor = fmt.Sprintf("id%03d", e.named)
	}
	return !met
}

// keys returns the keys of a mapping in the order in which they are written.
func (e *emitter) keys(m *value.Map) []any {
	keys := m.Keys()
	if e.options.Sort == SortAll || e.options.Sort == SortPlain && m.IsPlain() {
		sorted := m.Keys()
		if value.SortBy(sorted, func(k any) any { return k }, false) == nil {
			return sorted
		}
	}
	return keys
}

// scalarOf returns the text of a value that is not a collection, with its tag if it needs one.
func scalarOf(v any) (text, tag string) {
	switch v := v.(type) {
	case nil:
		return "null", ""
	case bool:
		return strconv.FormatBool(v), ""
	case int:
		return strconv.Itoa(v), ""
	case *big.Int:
		return v.String(), ""
	case float64:
		return floatText(v), ""
	case []byte:
		return binaryText(v), "!!binary"
	case value.Object:
		if IsDate(v) {
			return value.Str(v), ""
		}
	}
	return "NULL", "" // objects of other packages have no form in YAML
}

// IsDate reports whether a value is a date, or a date and a time, of Python. YAML writes it as str() does.
func IsDate(v any) bool {
	kind := value.TypeName(v)
	return kind == "date" || kind == "datetime"
}

func floatText(f float64) string {
	switch {
	case math.IsInf(f, 1):
		return ".inf"
	case math.IsInf(f, -1):
		return "-.inf"
	case f != f:
		return ".nan"
	}
	text := value.Repr(f)
	if !strings.Contains(text, ".") {
		text = strings.Replace(text, "e", ".0e", 1)
	}
	return text
}

func binaryText(b []byte) string {
	const lineLength = 76
	text := base64.StdEncoding.EncodeToString(b)
	var out strings.Builder
	for len(text) > lineLength {
		out.WriteString(text[:lineLength] + "\n")
		text = text[lineLength:]
	}
	if text != "" {
		out.WriteString(text + "\n")
	}
	return out.String()
}

// Scalar returns the text of a value that is not a collection, to stand inside a line; strings are always in double
// quotes. It returns an error for lists and mappings.
func Scalar(v any) (string, error) {
	switch v := v.(type) {
	case string:
		return DoubleQuoted(v), nil
	case *value.List, *value.Map, value.Tuple:
		return "", value.Raise("TypeError", "yaml_encode() only works with YAML scalar data; failed for <class '%s'>",
			value.TypeName(v))
	}
	text, _ := scalarOf(v)
	return text, nil
}

// DoubleQuoted writes a string in double quotes on one line, in ASCII.
func DoubleQuoted(s string) string {
	e := newEmitter(DumpOptions{Width: math.MaxInt, ASCII: true})
	e.writeDoubleQuoted(s, false)
	return e.out.String()
}

// SingleQuoted writes a string in single quotes.
func SingleQuoted(s string) string {
	e := newEmitter(DumpOptions{Width: math.MaxInt})
	e.writeSingleQuoted(s, false)
	return e.out.String()
}
