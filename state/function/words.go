package function

import (
	"math"
	"strings"
	"time"

	"github.com/corpus-agent/corpus-agent/state/value"
)

// SplitWords splits a command line as a POSIX shell would, without comments and expansions.
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
		return nil, value.Raise("ValueError", "a quote or backslash of the command line is not ended")
	}
	if inside {
		words = append(words, word.String())
	}
	return words, nil
}

// CommaList reads a list, or a text with commas.
func CommaList(v any) []string {
	switch v := v.(type) {
	case nil:
		return nil
	case *value.List:
		items, _ := Texts(v)
		return items
	}
	parts := strings.Split(value.Str(v), ",")
	for i := range parts {
		parts[i] = strings.TrimSpace(parts[i])
	}
	return parts
}

// OptionalText is a value as text, and "" for None.
func OptionalText(v any) string {
	if v == nil {
		return ""
	}
	return value.Str(v)
}

// Timeout reads a number of seconds; none is no limit.
func Timeout(v any) (time.Duration, error) {
	if !value.Truth(v) {
		return 0, nil
	}
	f, err := value.ToFloat(v)
	if _, isText := v.(string); isText || err != nil || f < 0 || f > math.MaxInt32 {
		return 0, TypeError("argument timeout: a number of seconds was expected")
	}
	return time.Duration(f * float64(time.Second)), nil
}
