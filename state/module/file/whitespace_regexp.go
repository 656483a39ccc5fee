package file

import (
	"strings"

	"github.com/corpus-agent/corpus-agent/state/value"
)

// anyWhitespace returns a regular expression that matches a text with any white space between its words. A quoted
// string counts as one word, its blanks included.
func anyWhitespace(text string) string {
	const blanks = `\s*`
	var b strings.Builder
	b.WriteByte('^')
	for _, line := range value.SplitLines(text, false) {
		var words []string
		for _, w := range quotedWords(line) {
			words = append(words, value.EscapeRegexp(w))
		}
		b.WriteString(blanks + strings.Join(words, blanks) + blanks)
	}
	b.WriteByte('$')
	return b.String()
}

// quotedWords splits a line at blanks. A word that starts with a quote continues to the next quote. The quote is " in
// a line that contains ', and otherwise '. A line that contains '\" has no quoted words.
func quotedWords(line string) []string {
	quotes := ""
	switch {
	case strings.Contains(line, `'\"`):
	case strings.Contains(line, "'"):
		quotes = `"`
	case strings.Contains(line, `"`):
		quotes = "'"
	}
	var words []string
	for line = strings.TrimLeft(line, " \t\r"); line != ""; line = strings.TrimLeft(line, " \t\r") {
		end := strings.IndexAny(line, " \t\r")
		if strings.IndexByte(quotes, line[0]) >= 0 {
			if close := strings.IndexByte(line[1:], line[0]); close >= 0 {
				end = close + 2
			}
		}
		if end < 0 {
			end = len(line)
		}
		words = append(words, line[:end])
		line = line[end:]
	}
	return words
}
