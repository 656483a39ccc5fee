// Package yaml reads and writes YAML 1.1 as Salt does.
//
// Authors of SLS files expect the behaviour of PyYAML: `yes` is true, 22:22 is a number in base sixty, and mappings
// keep the order of their keys. Salt adds rules: 0644 keeps its digits, a date stays text, and a duplicate key is an
// error. No YAML library for Go implements these rules, and none is fast enough for trees of hundreds of states, so
// this package has its own scanner. It creates values directly, without a syntax tree, and records the position of
// every key and item for later errors.
//
// All errors of a file are reported together.
package yaml

import (
	"slices"
	"sort"
	"strings"
	"unicode/utf8"

	"github.com/corpus-agent/corpus-agent/state/diag"
	"github.com/corpus-agent/corpus-agent/state/value"
)

// Document is a YAML document: its value, and the positions of keys and items.
type Document struct {
	Value any // nil for an empty document

	file  string
	text  string
	lines []int // offsets of the starts of lines, computed when first needed
	start int
	plain bool // YAML 1.1 without Salt's rules

	spans []span // of the collections, in the order of their ends
	marks []mark
	index map[any]int // from a collection to its span, computed when first needed
}

// span is the range of the marks of a collection.
type span struct {
	of           any // *value.Map or *value.List
	at           int32
	first, count int32
}

// mark is the position of a key and its value, or of an item. A key is identified by its hash, so that marks hold no
// pointers; if two keys of one mapping share a hash, the position of one may be reported for the other.
type mark struct {
	hash           uint32
	keyAt, valueAt int32
}

// marksFor allocates n marks of a collection.
func (d *Document) marksFor(of any, at int32, n int) []mark {
	first := len(d.marks)
	d.spans = append(d.spans, span{of: of, at: at, first: int32(first), count: int32(n)})
	d.marks = slices.Grow(d.marks, n)[:first+n]
	return d.marks[first:]
}

// hashKey returns the FNV-1a hash of the printed key.
func hashKey(key any) uint32 {
	text, ok := key.(string)
	if !ok {
		text = value.Repr(key)
	}
	h := uint32(2166136261)
	for i := range len(text) {
		h = (h ^ uint32(text[i])) * 16777619
	}
	return h
}

// Start returns the position of the start of the document's content.
func (d *Document) Start() diag.Pos { return d.pos(d.start) }

// Pos returns the position of a key of a mapping, or of an item of a list with its index as key. Container is a
// *value.Map or *value.List of this document. For a missing key, it returns the start of the container; for a container
// of another document, the zero Pos.
func (d *Document) Pos(container, key any) diag.Pos {
	m, at := d.find(container, key)
	if m != nil {
		return d.pos(int(m.keyAt))
	}
	return d.posOrZero(at)
}

// ValuePos is like Pos, for the value that belongs to the key.
func (d *Document) ValuePos(container, key any) diag.Pos {
	m, at := d.find(container, key)
	if m != nil {
		return d.pos(int(m.valueAt))
	}
	return d.posOrZero(at)
}

func (d *Document) posOrZero(at int32) diag.Pos {
	if at < 0 {
		return diag.Pos{}
	}
	return d.pos(int(at))
}

// find returns the mark of a key, or else the offset of the start of the container, which is -1 if unknown.
func (d *Document) find(container, key any) (m *mark, at int32) {
	if d.index == nil {
		d.index = make(map[any]int, len(d.spans))
		for i := range d.spans {
			d.index[d.spans[i].of] = i
		}
	}
	i, ok := d.index[container]
	if !ok {
		return nil, -1
	}
	s := &d.spans[i]
	marks := d.marks[s.first : s.first+s.count]
	if _, isList := container.(*value.List); isList {
		if n, ok := key.(int); ok && n >= 0 && n < len(marks) {
			return &marks[n], s.at
		}
		return nil, s.at
	}
	hash := hashKey(key)
	for i := range marks {
		if marks[i].hash == hash {
			return &marks[i], s.at
		}
	}
	return nil, s.at
}

func (d *Document) pos(at int) diag.Pos {
	line, col := d.lineCol(at)
	return diag.Pos{File: d.file, Line: line, Col: col}
}

// lineCol counts lines and characters from 1.
func (d *Document) lineCol(at int) (line, col int) {
	if d.lines == nil {
		d.lines = lineStarts(d.text)
	}
	at = min(at, len(d.text))
	line = sort.SearchInts(d.lines, at+1)
	return line, utf8.RuneCountInString(d.text[d.lines[line-1]:at]) + 1
}

func lineStarts(text string) []int {
	starts := make([]int, 1, strings.Count(text, "\n")+2)
	for i := 0; i < len(text); i++ {
		switch text[i] {
		case '\r':
			if i+1 < len(text) && text[i+1] == '\n' {
				i++
			}
			starts = append(starts, i+1)
		case '\n':
			starts = append(starts, i+1)
		}
	}
	return starts
}
