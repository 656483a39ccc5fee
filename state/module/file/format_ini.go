package file

import (
	"errors"
	"fmt"
	"strings"

	"github.com/corpus-agent/corpus-agent/state/value"
)

// dumpINI writes sections like Python's configparser.
func dumpINI(v any, o dumpOptions) (string, error) {
	sections, ok := v.(*value.Map)
	if !ok {
		return "", fmt.Errorf("a mapping of sections was expected, not a %s", value.TypeName(v))
	}
	var b strings.Builder
	for name, v := range sections.All() {
		keys, ok := v.(*value.Map)
		if !ok {
			return "", fmt.Errorf("the section %s is a %s, and a mapping was expected", value.Str(name), value.TypeName(v))
		}
		fmt.Fprintf(&b, "[%s]\n", value.Str(name))
		for key, v := range keys.All() {
			if err := writeINI(&b, value.Str(key), v, o); err != nil {
				return "", fmt.Errorf("section %s: %w", value.Str(name), err)
			}
		}
		b.WriteByte('\n')
	}
	return b.String(), nil
}

func writeINI(b *strings.Builder, key string, v any, o dumpOptions) error {
	b.WriteString(strings.ToLower(key))
	if v == nil {
		if !o.flag("allow_no_value", false) {
			return fmt.Errorf("the key %s has no value; set allow_no_value in serializer_opts if that is right", key)
		}
		b.WriteByte('\n')
		return nil
	}
	text := strings.ReplaceAll(value.Str(v), "\n", "\n\t")
	if strings.Contains(strings.ReplaceAll(text, "%%", ""), "%") && !strings.Contains(text, "%(") &&
		o.text("interpolation", "basic") == "basic" {
		return errors.New("a % in a value is written %%")
	}
	b.WriteString(" = " + text + "\n")
	return nil
}

// loadINI reads sections like Python's configparser: it lowercases keys, joins indented continuation lines, and
// takes # and ; for comments.
func loadINI(text []byte, _ *value.Map) (any, error) {
	sections := value.NewMap()
	var section *value.Map
	last := ""
	for i, line := range value.SplitLines(string(text), false) {
		trimmed := value.Strip(line)
		switch {
		case trimmed == "" || trimmed[0] == '#' || trimmed[0] == ';':
		case line != value.StripLeft(line) && last != "":
			section.Set(last, value.Str(section.Value(last))+"\n"+trimmed)
		case trimmed[0] == '[' && strings.HasSuffix(trimmed, "]"):
			section, last = value.NewMap(), ""
			sections.Set(trimmed[1:len(trimmed)-1], section)
		case section == nil:
			return nil, fmt.Errorf("line %d precedes the first section", i+1)
		default:
			last = readINI(section, trimmed)
		}
	}
	return sections, nil
}

func readINI(section *value.Map, line string) (key string) {
	at := strings.IndexAny(line, "=:")
	if at < 0 {
		section.Set(strings.ToLower(line), nil)
		return ""
	}
	key = strings.ToLower(value.StripRight(line[:at]))
	section.Set(key, value.StripLeft(line[at+1:]))
	return key
}
