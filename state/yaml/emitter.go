package yaml

import (
	"strings"
	"unicode/utf8"

	"github.com/corpus-agent/corpus-agent/state/value"
)

// emitter writes a document. It tracks the column, which determines where a line is folded and whether a space is
// needed.
type emitter struct {
	out        strings.Builder
	options    DumpOptions
	indent     int // -1 outside of any collection
	flow       int // depth of brackets
	column     int
	whitespace bool // the last character was a blank, or there is none
	indention  bool // only indentation, dashes and question marks so far on this line
	anchors    map[any]*reference
	named      int
}

// place is the context of a node.
type place struct {
	mapping   bool // as the key or value of a mapping
	simpleKey bool // as a key that is written without a question mark
}

// maxSimpleKey is the maximum length of a key without a question mark.
const maxSimpleKey = 128

func (e *emitter) node(v any, at place) {
	if r := e.reference(v); r != nil && r.anchor != "" {
		if r.met {
			e.indicator("*"+r.anchor, true, false, false)
			return
		}
		r.met = true
		e.indicator("&"+r.anchor, true, false, false)
	}
	switch v := v.(type) {
	case *value.List:
		e.sequence(v.Items, at)
	case value.Tuple:
		e.sequence(v, at)
	case *value.Map:
		e.mapping(v)
	default:
		e.scalar(v, at)
	}
}

func (e *emitter) reference(v any) *reference {
	switch v.(type) {
	case *value.List, *value.Map:
		return e.anchors[v]
	}
	return nil
}

// inBrackets reports whether a collection with these items, or keys and values, is written in brackets.
func (e *emitter) inBrackets(items []any) bool {
	if e.flow > 0 || len(items) == 0 || e.options.Collections == Flow {
		return true
	}
	if e.options.Collections == Block {
		return false
	}
	for _, item := range items {
		switch item.(type) {
		case *value.List, *value.Map, value.Tuple, []byte:
			return false
		}
	}
	return true
}

func (e *emitter) sequence(items []any, at place) {
	outer := e.indent
	defer func() { e.indent = outer }()
	if e.inBrackets(items) {
		e.flowSequence(items)
		return
	}
	e.deeper(false, at.mapping && !e.indention && !e.options.IndentLists)
	for _, item := range items {
		e.writeIndent()
		e.indicator("-", true, false, true)
		e.node(item, place{})
	}
}

// deeper increases the indentation by one level.
func (e *emitter) deeper(inBrackets, indentless bool) {
	switch {
	case e.indent < 0 && inBrackets:
		e.indent = e.options.Indent
	case e.indent < 0:
		e.indent = 0
	case !indentless:
		e.indent += e.options.Indent
	}
}

func (e *emitter) flowSequence(items []any) {
	e.indicator("[", true, true, false)
	e.deeper(true, false)
	e.flow++
	for i, item := range items {
		if i > 0 {
			e.indicator(",", false, false, false)
		}
		e.foldHere()
		e.node(item, place{})
	}
	e.flow--
	e.indicator("]", false, false, false)
}

// foldHere starts a new line between items if this one is full.
func (e *emitter) foldHere() {
	if e.column > e.options.Width {
		e.writeIndent()
	}
}

func (e *emitter) mapping(m *value.Map) {
	outer := e.indent
	defer func() { e.indent = outer }()
	keys := e.keys(m)
	parts := make([]any, 0, 2*len(keys))
	for _, k := range keys {
		item, _, _ := m.GetKey(k)
		parts = append(parts, k, item)
	}
	if e.inBrackets(parts) {
		e.flowMapping(parts)
		return
	}
	e.deeper(false, false)
	for i := 0; i < len(parts); i += 2 {
		e.writeIndent()
		e.blockPair(parts[i], parts[i+1])
	}
}

func (e *emitter) blockPair(k, v any) {
	if e.isSimpleKey(k) {
		e.node(k, place{mapping: true, simpleKey: true})
		e.indicator(":", false, false, false)
	} else {
		e.indicator("?", true, false, true)
		e.node(k, place{mapping: true})
		e.writeIndent()
		e.indicator(":", true, false, true)
	}
	e.node(v, place{mapping: true})
}

func (e *emitter) flowMapping(parts []any) {
	e.indicator("{", true, true, false)
	e.deeper(true, false)
	e.flow++
	for i := 0; i < len(parts); i += 2 {
		if i > 0 {
			e.indicator(",", false, false, false)
		}
		e.foldHere()
		if e.isSimpleKey(parts[i]) {
			e.node(parts[i], place{mapping: true, simpleKey: true})
			e.indicator(":", false, false, false)
		} else {
			e.indicator("?", true, false, false)
			e.node(parts[i], place{mapping: true})
			e.foldHere()
			e.indicator(":", true, false, false)
		}
		e.node(parts[i+1], place{mapping: true})
	}
	e.flow--
	e.indicator("}", false, false, false)
}

func (e *emitter) isSimpleKey(k any) bool {
	text, ok := k.(string)
	switch k := k.(type) {
	case *value.List:
		return len(k.Items) == 0
	case value.Tuple:
		return len(k) == 0
	case *value.Map:
		return k.Len() == 0
	}
	if !ok {
		text, _ = scalarOf(k)
	}
	return len(text) <= maxSimpleKey && !analyze(text, e.options.ASCII).multiline
}

func (e *emitter) scalar(v any, at place) {
	outer := e.indent
	defer func() { e.indent = outer }()
	text, tag := "", ""
	s, isString := v.(string)
	if isString {
		text = s
	} else if text, tag = scalarOf(v); tag != "" {
		e.indicator(tag, true, false, false)
	}
	style := e.style(text, isString, tag != "", at)
	e.deeper(true, false)
	switch style {
	case singleQuoted:
		e.writeSingleQuoted(text, !at.simpleKey)
	case doubleQuoted:
		e.writeDoubleQuoted(text, !at.simpleKey)
	case literal:
		e.writeLiteral(text)
	default:
		e.writePlain(text, !at.simpleKey)
	}
}

// style returns the simplest style that is parsed back to the same value.
func (e *emitter) style(text string, isString, binary bool, at place) style {
	a := analyze(text, e.options.ASCII)
	if binary {
		if !a.block || e.flow > 0 || at.simpleKey {
			return doubleQuoted
		}
		return literal
	}
	if at.simpleKey && a.multiline {
		return doubleQuoted
	}
	_, typed := implicit(text)
	quoted := isString && (typed || isSpecialWord(text)) ||
		e.flow > 0 && !a.flowPlain || e.flow == 0 && !a.blockPlain ||
		text == "" && (e.flow > 0 || at.simpleKey)
	switch {
	case !quoted:
		return plain
	case a.singleQuoted:
		return singleQuoted
	}
	return doubleQuoted
}

// isSpecialWord reports whether a plain word is not a string for PyYAML, though it is for Salt's loader: dates, << and
// =.
func isSpecialWord(text string) bool { return specialOf(text) != ordinary || isTimestamp(text) }

// indicator writes an indicator, after a space if one is needed.
func (e *emitter) indicator(text string, needSpace, isSpace, isIndention bool) {
	if needSpace && !e.whitespace {
		e.put(" ")
	}
	e.put(text)
	e.whitespace = isSpace
	e.indention = e.indention && isIndention
}

func (e *emitter) put(s string) {
	e.out.WriteString(s)
	e.column += utf8.RuneCountInString(s)
}

func (e *emitter) lineBreak() {
	e.out.WriteByte('\n')
	e.column = 0
}

// writeIndent starts a new line with the indentation, unless it is there already.
func (e *emitter) writeIndent() {
	indent := max(e.indent, 0)
	if !e.indention || e.column > indent || e.column == indent && !e.whitespace {
		e.lineBreak()
	}
	if e.column < indent {
		e.put(strings.Repeat(" ", indent-e.column))
	}
	e.whitespace = true
	e.indention = true
}
