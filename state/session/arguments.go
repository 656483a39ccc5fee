package session

import (
	"errors"
	"regexp"
	"slices"
	"strings"
	"sync"

	"github.com/corpus-agent/corpus-agent/state/diag"
	"github.com/corpus-agent/corpus-agent/state/value"
	"github.com/corpus-agent/corpus-agent/state/yaml"
)

// keyword matches name=value. A word with two equals signs after the name is text.
var keyword = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`(?s)^([^\d\W][\w.-]*)=([^=].*)?$`) })

// ParseArguments parses the words after a function's name on a command line. A word name=value becomes an argument
// by name. Values are parsed as YAML where that makes sense; the values of the arguments named in asText stay text.
func ParseArguments(words []string, asText ...string) (args []any, kwargs *value.Map) {
	kwargs = value.NewMap()
	for _, word := range words {
		if m := keyword().FindStringSubmatch(word); m != nil && slices.Contains(asText, m[1]) {
			kwargs.Set(m[1], m[2])
			continue
		} else if m != nil {
			kwargs.Set(m[1], parseArgument(m[2]))
			continue
		}
		args = append(args, parseArgument(word))
	}
	return args, kwargs
}

// parseArgument parses one value as YAML. It returns the text unchanged if the text is not YAML, or if YAML would read
// it as a comment, an empty document, a mapping without braces or a list without brackets.
func parseArgument(text string) any {
	switch trimmed := strings.TrimSpace(text); {
	case trimmed == "", trimmed == "---", trimmed == "...", text == "|", text == "!", strings.ContainsAny(text, "\t\r\n"):
		return text
	case text == "None":
		return nil
	case strings.Contains(text, "_") && strings.Trim(trimmed, "0123456789_") == "":
		return text
	}
	document, err := yaml.LoadString(text, "argument")
	if err != nil {
		return text
	}
	return typed(text, document.Value)
}

// typed returns v, the parsed value of text, or text itself if the user must have meant the text.
func typed(text string, v any) any {
	switch v.(type) {
	case *value.Map:
		if !strings.HasPrefix(text, "{") && !strings.Contains(text, "#") {
			return text
		}
	case *value.List:
		if !strings.HasPrefix(text, "[") && !strings.Contains(text, "#") {
			return text
		}
	case string, nil:
		if strings.Contains(text, "#") {
			return text
		}
	}
	return v
}

// misuse returns an error about the arguments of a call.
func misuse(hint, format string, args ...any) error {
	return diag.At(diag.Pos{}, format, args...).WithHint(diag.Call, hint)
}

// asMapping returns an argument that must be a mapping.
func asMapping(name string, v any) (*value.Map, error) {
	if m, ok := v.(*value.Map); ok {
		return m, nil
	}
	hint := "write it as " + name + "='{key: value}'"
	if text, ok := v.(string); ok {
		var list diag.List
		if _, err := yaml.LoadString(text, "argument "+name); errors.As(err, &list) {
			list[0].Hint = diag.Call.Coded(hint)
			return nil, err
		}
	}
	return nil, misuse(hint, "%s is %s, and a mapping was expected", name, value.Repr(v))
}
