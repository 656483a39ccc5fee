package config

import (
	"slices"
	"strings"
	"unicode/utf8"
)

// Variable is an assignment of an environment file.
type Variable struct{ Name, Value string }

// ParseEnvironment reads the text of an environment file as systemd reads the EnvironmentFile= of a unit: with
// comments, quotes, and a backslash at the end of a line that continues. The last assignment of a name counts. Lines
// that are no assignment, and assignments that a unit cannot have, are left out.
func ParseEnvironment(text string) (all []Variable) {
	for text != "" {
		v, length := assignment(text)
		text = strings.TrimLeft(text[length:], " \t\r\n")
		if validName(v.Name) && utf8.ValidString(v.Value) {
			all = slices.DeleteFunc(all, func(other Variable) bool { return other.Name == v.Name })
			all = append(all, v)
		}
	}
	return all
}

// NoAssignment returns the number of the first line of an environment file that is neither an assignment nor a comment;
// 0 if there is none.
func NoAssignment(text string) (line int) {
	line = 1
	for text != "" {
		v, length := assignment(text)
		first := strings.TrimLeft(text[:endOfLine(text)], " \t")
		if !validName(v.Name) && first != "" && first[0] != '#' && first[0] != ';' {
			return line
		}
		line += strings.Count(text[:length], "\n")
		rest := strings.TrimLeft(text[length:], " \t\r\n")
		line += strings.Count(text[length:len(text)-len(rest)], "\n")
		text = rest
	}
	return 0
}

// assignment reads the assignment at the begin of text, and returns its length there, which is that of the line if it
// is none.
func assignment(text string) (v Variable, length int) {
	line := text[:endOfLine(text)]
	name, _, assigned := strings.Cut(line, "=")
	if trimmed := strings.TrimLeft(line, " \t"); !assigned || strings.HasPrefix(trimmed, "#") ||
		strings.HasPrefix(trimmed, ";") {
		return Variable{}, len(line)
	}
	value, length := environmentValue(text[len(name)+1:])
	return Variable{Name: strings.Trim(name, " \t"), Value: value}, len(name) + 1 + length
}

func endOfLine(text string) int {
	if end := strings.IndexAny(text, "\r\n"); end >= 0 {
		return end
	}
	return len(text)
}

func validName(name string) bool {
	for i, c := range name {
		letter := c == '_' || c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z'
		if !letter && (i == 0 || c < '0' || c > '9') {
			return false
		}
	}
	return name != ""
}

// environmentValue reads the value at the begin of text, and returns its length there. Quotes begin a quoted part only
// at the begin of the value and after another quoted part.
func environmentValue(text string) (value string, length int) {
	var b strings.Builder
	kept := 0 // the length of the value without spaces at its end that are not quoted
	plain := false
	i := 0
	for ; i < len(text) && text[i] != '\n' && text[i] != '\r'; i++ {
		switch c := text[i]; {
		case c == ' ' || c == '\t':
			if plain {
				b.WriteByte(c)
			}
			continue
		case !plain && (c == '\'' || c == '"'):
			i += quoted(&b, text[i:])
		default:
			plain = true
			i += escaped(&b, text[i:])
		}
		kept = b.Len()
	}
	return b.String()[:kept], i
}

// escaped appends the character at the begin of text, or the one after a backslash, and returns its position. The end
// of a line is left out.
func escaped(b *strings.Builder, text string) int {
	at := 0
	if text[0] == '\\' {
		at = 1
	}
	if at < len(text) && text[at] != '\n' && text[at] != '\r' {
		b.WriteByte(text[at])
	}
	return min(at, len(text)-1)
}

// quoted appends the quoted text at the begin of text, and returns the position of its end, which is a quote. In double
// quotes a backslash escapes what a shell needs escaped, and the end of a line.
func quoted(b *strings.Builder, text string) int {
	quote := text[0]
	i := 1
	for ; i < len(text) && text[i] != quote; i++ {
		c := text[i]
		if quote == '\'' || c != '\\' || i+1 == len(text) {
			b.WriteByte(c)
			continue
		}
		i++
		switch {
		case text[i] == '\n':
		case strings.IndexByte("\"\\`$", text[i]) >= 0:
			b.WriteByte(text[i])
		default:
			b.WriteString(text[i-1 : i+1])
		}
	}
	return min(i, len(text)-1)
}
