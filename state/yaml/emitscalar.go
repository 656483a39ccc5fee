package yaml

import (
	"fmt"
	"regexp"
	"strings"
	"sync"
	"unicode/utf8"
)

// analysis says which styles are possible for a text.
type analysis struct{ multiline, flowPlain, blockPlain, singleQuoted, block bool }

// analyze examines every character of a text once.
func analyze(text string, asciiOnly bool) analysis {
	if text == "" {
		return analysis{blockPlain: true, singleQuoted: true}
	}
	s := scanText(text, asciiOnly)
	edge := s.spaceFirst || s.spaceLast || s.breakFirst || s.breakLast
	a := analysis{multiline: s.breaks}
	a.singleQuoted = !s.breakThenSpace && !s.spaceThenBreak && !s.special
	a.block = !s.spaceLast && !s.spaceThenBreak && !s.special
	bare := a.singleQuoted && !edge && !s.breaks
	a.flowPlain = bare && !s.flowMark
	a.blockPlain = bare && !s.blockMark
	return a
}

// features is the result of scanText.
type features struct {
	breaks, special                              bool
	spaceFirst, spaceLast, breakFirst, breakLast bool
	breakThenSpace, spaceThenBreak               bool
	flowMark, blockMark                          bool // an indicator that ends a plain scalar
}

func scanText(text string, asciiOnly bool) features {
	var f features
	if strings.HasPrefix(text, "---") || strings.HasPrefix(text, "...") {
		f.flowMark, f.blockMark = true, true
	}
	previous := rune(-1)
	for i, r := range text {
		_, size := utf8.DecodeRuneInString(text[i:])
		last := i+size == len(text)
		blankNext := last || isBlankRune(firstRune(text[i+size:]))
		f.indicators(r, i == 0, previous < 0 || isBlankRune(previous), blankNext)
		if !printableRune(r) || asciiOnly && r > 0x7f {
			f.special = true
		}
		f.blanks(r, previous, i == 0, last)
		previous = r
	}
	return f
}

func firstRune(s string) rune {
	r, _ := utf8.DecodeRuneInString(s)
	return r
}

func (f *features) indicators(r rune, first, blankBefore, blankNext bool) {
	switch {
	case first && strings.ContainsRune("#,[]{}&*!|>'\"%@`", r):
		f.flowMark, f.blockMark = true, true
	case first && (r == '?' || r == ':'):
		f.flowMark = true
		f.blockMark = f.blockMark || blankNext
	case first && r == '-' && blankNext:
		f.flowMark, f.blockMark = true, true
	case first:
	case strings.ContainsRune(",?[]{}", r):
		f.flowMark = true
	case r == ':':
		f.flowMark = true
		f.blockMark = f.blockMark || blankNext
	case r == '#' && blankBefore:
		f.flowMark, f.blockMark = true, true
	}
}

func (f *features) blanks(r, previous rune, first, last bool) {
	switch {
	case r == ' ':
		f.spaceFirst = f.spaceFirst || first
		f.spaceLast = f.spaceLast || last
		f.breakThenSpace = f.breakThenSpace || isBreakRune(previous)
	case isBreakRune(r):
		f.breaks = true
		f.breakFirst = f.breakFirst || first
		f.breakLast = f.breakLast || last
		f.spaceThenBreak = f.spaceThenBreak || previous == ' '
	}
}

func isBreakRune(r rune) bool {
	return r == '\n' || r == '\r' || r == 0x85 || r == 0x2028 || r == 0x2029
}

func isBlankRune(r rune) bool { return r == ' ' || r == '\t' || isBreakRune(r) }

// printableRune reports whether libyaml writes the character without an escape.
func printableRune(r rune) bool {
	return r == '\n' || r >= ' ' && r < 0x7f || r >= 0xa0 && r < 0xfffe && r != 0xfeff && r != utf8.RuneError
}

var timestamp = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(
		`^(?:[0-9]{4}-[0-9]{2}-[0-9]{2}|[0-9]{4}-[0-9]{1,2}-[0-9]{1,2}(?:[Tt]|[ ` +
			`\t]+)[0-9]{1,2}:[0-9]{2}:[0-9]{2}(?:\.[0-9]*)?(?:[ \t]*(?:Z|[-+][0-9]{1,2}(?::[0-9]{2})?))?)$`)
})

func isTimestamp(text string) bool {
	return len(text) >= len("2001-12-14") && text[0] >= '0' && text[0] <= '9' && timestamp().MatchString(text)
}

func (e *emitter) writePlain(text string, fold bool) {
	if !e.whitespace && (text != "" || e.flow > 0) {
		e.put(" ")
	}
	e.writeFolded(text, fold, false)
	e.whitespace, e.indention = false, false
}

func (e *emitter) writeSingleQuoted(text string, fold bool) {
	e.indicator("'", true, false, false)
	e.writeFolded(text, fold, true)
	e.indicator("'", false, false, false)
	e.whitespace, e.indention = false, false
}

// writeFolded writes words, folds the line at single spaces, and doubles line breaks.
func (e *emitter) writeFolded(text string, fold, quoted bool) {
	spaces, breaks := false, false
	for i, r := range text {
		switch {
		case r == ' ':
			edge := quoted && (i == 0 || i == len(text)-1)
			if fold && !spaces && e.column > e.options.Width && !edge && !strings.HasPrefix(text[i+1:], " ") {
				e.writeIndent()
			} else {
				e.put(" ")
			}
			spaces = true
		case isBreakRune(r):
			if !breaks && r == '\n' {
				e.lineBreak()
			}
			e.writeBreak(r)
			e.indention = true
			breaks = true
		default:
			if breaks {
				e.writeIndent()
			}
			if quoted && r == '\'' {
				e.put("'")
			}
			e.put(string(r))
			e.indention = false
			spaces, breaks = false, false
		}
	}
	if breaks && quoted {
		e.writeIndent()
	}
}

func (e *emitter) writeBreak(r rune) {
	if r == '\n' {
		e.lineBreak()
		return
	}
	e.out.WriteRune(r)
	e.column = 0
}

// shortEscapes maps the characters with an escape of one letter to that letter.
var shortEscapes = sync.OnceValue(func() map[rune]byte {
	return map[rune]byte{
		0: '0', 7: 'a', 8: 'b', 9: 't', 10: 'n', 11: 'v', 12: 'f', 13: 'r', 0x1b: 'e', '"': '"', '\\': '\\',
		0x85: 'N', 0xa0: '_', 0x2028: 'L', 0x2029: 'P',
	}
})

func (e *emitter) writeDoubleQuoted(text string, fold bool) {
	e.indicator(`"`, true, false, false)
	spaces := false
	for i, r := range text {
		switch {
		case r == '"' || r == '\\' || isBreakRune(r) || !printableRune(r) || e.options.ASCII && r > 0x7f:
			e.put(escape(r))
			spaces = false
		case r == ' ' && fold && !spaces && e.column > e.options.Width && i > 0 && i < len(text)-1:
			e.writeIndent()
			if text[i+1] == ' ' {
				e.put(`\`)
			}
			spaces = true
		default:
			e.put(string(r))
			spaces = r == ' '
		}
	}
	e.indicator(`"`, false, false, false)
	e.whitespace, e.indention = false, false
}

func escape(r rune) string {
	short, ok := shortEscapes()[r]
	switch {
	case ok:
		return `\` + string(rune(short))
	case r <= 0xff:
		return fmt.Sprintf(`\x%02X`, r)
	case r <= 0xffff:
		return fmt.Sprintf(`\u%04X`, r)
	}
	return fmt.Sprintf(`\U%08X`, r)
}

// writeLiteral writes lines unchanged, below the indicator.
func (e *emitter) writeLiteral(text string) {
	e.indicator("|", true, false, false)
	e.lineBreak()
	e.indention, e.whitespace = true, true
	for line := range strings.Lines(text) {
		e.writeIndent()
		e.put(strings.TrimSuffix(line, "\n"))
		e.indention = false
		e.lineBreak()
		e.indention, e.whitespace = true, true
	}
}
