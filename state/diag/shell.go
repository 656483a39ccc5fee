package diag

import (
	"strings"
	"unicode"
)

// ShellWord quotes a word of a command that a person or a shell is given, if it has characters that a shell interprets.
func ShellWord(word string) string {
	plain := func(r rune) bool {
		return unicode.IsLetter(r) || unicode.IsDigit(r) || strings.ContainsRune("-_./:@%+=,", r)
	}
	if word != "" && !strings.ContainsFunc(word, func(r rune) bool { return !plain(r) }) {
		return word
	}
	return "'" + strings.ReplaceAll(word, "'", `'\''`) + "'"
}

// OneLine writes the line feeds of a name as \x0a, so that the name of a file cannot look like another line of output.
func OneLine(name string) string { return strings.ReplaceAll(name, "\n", `\x0a`) }
