package value

import (
	"path"
	"slices"
	"strings"
)

// SplitWords splits a command line as a POSIX shell and Python's shlex do: with quotes and backslashes, without
// comments and expansions.
func SplitWords(line string) ([]string, error) {
	var words []string
	var word strings.Builder
	quote, inside, escaped := rune(0), false, false
	for _, r := range line {
		switch {
		case escaped:
			if quote == '"' && r != '"' && r != '\\' {
				word.WriteByte('\\')
			}
			word.WriteRune(r)
			escaped = false
		case r == '\\' && quote != '\'':
			escaped, inside = true, true
		case quote != 0 && r == quote:
			quote = 0
		case quote == 0 && (r == '\'' || r == '"'):
			quote, inside = r, true
		case quote == 0 && strings.ContainsRune(" \t\r\n", r):
			if inside {
				words = append(words, word.String())
				word.Reset()
				inside = false
			}
		default:
			word.WriteRune(r)
			inside = true
		}
	}
	if quote != 0 || escaped {
		return nil, Raise("ValueError", "a quote or backslash of the command line is not ended")
	}
	if inside {
		words = append(words, word.String())
	}
	return words, nil
}

// PathsIn returns the words of a command that are absolute paths, split as a shell does, and also at the shell's
// operators and at =, as in (/usr/bin/x; /usr/bin/y --file=/etc/z).
func PathsIn(command string) []string {
	words := strings.FieldsFunc(command, func(r rune) bool { return strings.ContainsRune(" \t\r\n;|&()<>{}`'\"=", r) })
	if quoted, err := SplitWords(command); err == nil { // the shell reports the error of other commands
		words = append(words, quoted...)
	}
	slices.Sort(words)
	return slices.DeleteFunc(slices.Compact(words), func(word string) bool { return !path.IsAbs(word) })
}
