package config

import (
	"slices"
	"strings"
	"unicode/utf8"
)

// Variable is an assignment of an environment file.
type Variable struct{ Name, Value string }

// ParseEnvironment reads the text of an environment file as systemd reads the EnvironmentFile= of a unit: with comments,
// quotes, and a backslash at the end of a line that continues. The last assignment of a name counts. Lines that are no
// assignment, and assignments that a unit cannot have, are left out.
func ParseEnvironment(text string) (all []Variable) {
	for text != "" {
		text = strings.TrimLeft(text, " \t\r\n")
		if strings.HasPrefix(text, "#") || strings.HasPrefix(text, ";") {
			text = text[endOfLine(text):]
			continue
		}
		end := endOfLine(text)
		name, _, assigned := strings.Cut(text[:end], "=")
		if !assigned {
			text = text[end:]
			continue
		}
		value, length := environmentValue(text[len(name)+1:])
		text = text[len(name)+1+length:]
		if name = strings.TrimRight(name, " \t"); !validName(name) || !utf8.ValidString(value) {
			continue
		}
		all = slices.DeleteFunc(all, func(v Variable) bool { return v.Name == name })
		all = append(all, Variable{Name: name, Value: value})
	}
	return all
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
	for ; i < len(text); i++ {
		c := text[i]
		switch {
		case c == '\n' || c == '\r':
			return b.String()[:kept], i
		case c == '\\':
			if plain = true; i+1 < len(text) {
				if i++; text[i] != '\n' && text[i] != '\r' {
					b.WriteByte(text[i])
				}
			}
			kept = b.Len()
		case !plain && (c == '\'' || c == '"'):
			i += quoted(&b, text[i:])
			kept = b.Len()
		case c == ' ' || c == '\t':
			if plain {
				b.WriteByte(c)
			}
		default:
			plain = true
			b.WriteByte(c)
			kept = b.Len()
		}
	}
	return b.String()[:kept], i
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
