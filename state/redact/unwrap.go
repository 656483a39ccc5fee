package redact

import (
	"cmp"
	"slices"
	"strings"
)

// unwrapped is a text without line breaks and the indentation after them.
type unwrapped struct {
	text   string
	pieces []piece
}

// piece is a part of a text without a line break.
type piece struct{ from, original int } // its start in the unwrapped and in the original text

// at returns the offset in the original of a byte of the unwrapped text.
func (u unwrapped) at(flat int) int {
	i, found := slices.BinarySearchFunc(u.pieces, flat, func(p piece, at int) int { return cmp.Compare(p.from, at) })
	if !found {
		i--
	}
	return u.pieces[i].original + flat - u.pieces[i].from
}

// unwrap removes line feeds, including escaped ones of JSON or a programming language, and the indentation of lines.
func unwrap(text string) unwrapped {
	var u unwrapped
	var out strings.Builder
	for at := 0; at < len(text); {
		end, next := lineBreak(text, at)
		if end > at {
			u.pieces = append(u.pieces, piece{out.Len(), at})
			out.WriteString(text[at:end])
		}
		at = next
	}
	u.text = out.String()
	return u
}

// lineBreak returns the offset of the next line break, and the offset after it and its indentation.
func lineBreak(text string, from int) (begin, behind int) {
	begin = strings.IndexByte(text[from:], '\n')
	size := 1
	if escaped := strings.Index(text[from:], `\n`); escaped >= 0 && (begin < 0 || escaped < begin) {
		begin, size = escaped, 2
	}
	if begin < 0 {
		return len(text), len(text)
	}
	begin += from
	behind = begin + size
	for behind < len(text) && (text[behind] == ' ' || text[behind] == '\t') {
		behind++
	}
	if size == 1 && begin > from && text[begin-1] == '\r' {
		begin--
	}
	return begin, behind
}
