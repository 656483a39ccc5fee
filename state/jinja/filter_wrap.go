package jinja

import (
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/corpus-agent/corpus-agent/state/value"
)

func wordWrapFilter(c *Call) (any, error) {
	s, ok := c.Args[0].(string)
	if !ok {
		if err := refused(c.Args[0]); err != nil {
			return nil, err
		}
		return nil, noAttribute(c.Args[0], "splitlines")
	}
	width, err := c.Int(1)
	if err != nil {
		return nil, err
	}
	w := wrapper{width: width}
	if w.breakWords, err = c.Bool(2); err != nil {
		return nil, err
	}
	newline := "\n"
	if c.Args[3] != nil {
		if newline, err = c.Text(3); err != nil {
			return nil, err
		}
	}
	if w.breakHyphens, err = c.Bool(4); err != nil {
		return nil, err
	}
	var paragraphs []string
	for _, line := range value.SplitLines(s, false) {
		if line != "" && width <= 0 {
			return nil, value.Raise("ValueError", "invalid width %d (must be > 0)", width)
		}
		paragraphs = append(paragraphs, strings.Join(w.wrap(line), newline))
	}
	return strings.Join(paragraphs, newline), nil
}

// wrapper fills lines with words as Python's textwrap does.
type wrapper struct {
	width        int
	breakWords   bool
	breakHyphens bool
}

func (w *wrapper) wrap(line string) []string {
	chunks := w.chunks(line)
	var lines []string
	for len(chunks) > 0 {
		if strings.TrimSpace(chunks[0]) == "" && len(lines) > 0 {
			chunks = chunks[1:]
			continue
		}
		var text string
		if text, chunks = w.fill(chunks); text != "" {
			lines = append(lines, text)
		}
	}
	return lines
}

// fill returns a line with as many chunks as fit, and the rest.
func (w *wrapper) fill(chunks []string) (line string, rest []string) {
	var taken []string
	room := w.width
	for len(chunks) > 0 && utf8.RuneCountInString(chunks[0]) <= room {
		room -= utf8.RuneCountInString(chunks[0])
		taken, chunks = append(taken, chunks[0]), chunks[1:]
	}
	if len(chunks) > 0 && utf8.RuneCountInString(chunks[0]) > w.width {
		switch {
		case w.breakWords:
			head, tail := w.cut(chunks[0], room) // head is empty if there is no room
			taken = append(taken, head)
			if chunks = chunks[1:]; tail != "" {
				chunks = append([]string{tail}, chunks...)
			}
		case len(taken) == 0:
			taken, chunks = append(taken, chunks[0]), chunks[1:]
		}
	}
	if n := len(taken); n > 0 && strings.TrimSpace(taken[n-1]) == "" {
		taken = taken[:n-1]
	}
	return strings.Join(taken, ""), chunks
}

// cut splits a word that is too long, after a hyphen if possible.
func (w *wrapper) cut(word string, room int) (head, tail string) {
	runes := []rune(word)
	end := min(room, len(runes))
	if w.breakHyphens && len(runes) > room {
		if at := strings.LastIndexByte(string(runes[:room]), '-'); at > 0 {
			before := []rune(string(runes[:room])[:at])
			if strings.Trim(string(before), "-") != "" {
				end = len(before) + 1
			}
		}
	}
	return string(runes[:end]), string(runes[end:])
}

// chunks splits a line into words, white space, and the parts of words with hyphens.
func (w *wrapper) chunks(line string) []string {
	var chunks []string
	runes := []rune(line)
	for start := 0; start < len(runes); {
		end := start + 1
		for space := wrapSpace(runes[start]); end < len(runes) && wrapSpace(runes[end]) == space; end++ {
			if !space && w.breakHyphens && w.breaksAt(runes, start, end) {
				break
			}
		}
		chunks = append(chunks, string(runes[start:end]))
		start = end
	}
	return chunks
}

func wrapSpace(r rune) bool { return strings.ContainsRune("\t\n\v\f\r ", r) }

// breaksAt reports whether a word may be split before runes[at]: after a hyphen between letters, and around a dash of
// several hyphens.
func (w *wrapper) breaksAt(runes []rune, start, at int) bool {
	letter := func(i int) bool {
		return i >= start && i < len(runes) && (unicode.IsLetter(runes[i]) || runes[i] == '_')
	}
	wordish := func(i int) bool {
		return i >= start && i < len(runes) && (letter(i) || unicode.IsNumber(runes[i]) ||
			strings.ContainsRune(`!"'&.,?`, runes[i]))
	}
	dashes := func(i int) (end int) {
		for end = i; end < len(runes) && runes[end] == '-'; end++ {
		}
		return end
	}
	if end := dashes(at); runes[at] == '-' && end-at >= 2 && wordish(at-1) && end < len(runes) &&
		(letter(end) || unicode.IsNumber(runes[end])) {
		return true
	}
	if runes[at-1] != '-' {
		return false
	}
	if runes[start] == '-' && dashes(start) == at { // a chunk of hyphens only is a dash
		return at-start >= 2
	}
	after := letter(at) && (letter(at+1) || at+1 < len(runes) && runes[at+1] == '-' && letter(at+2))
	before := letter(at-2) && (letter(at-3) || at-3 >= start && runes[at-3] == '-' && letter(at-4))
	return after && before
}
