package slsutil

import (
	"fmt"
	"strings"

	"github.com/corpus-agent/corpus-agent/state/function"
	"github.com/corpus-agent/corpus-agent/state/value"
)

// iniText formats sections of settings, as Python's configparser does.
func iniText(sections *value.Map) (string, error) {
	var b strings.Builder
	for name, section := range sections.All() {
		settings, ok := section.(*value.Map)
		if !ok {
			return "", function.TypeError("section %s: %v", value.Str(name), function.Expected("a mapping", section))
		}
		fmt.Fprintf(&b, "[%s]\n", value.Str(name))
		for key, v := range settings.All() {
			if v == nil {
				return "", function.TypeError("setting %s of section %s has no value", value.Str(key), value.Str(name))
			}
			text := value.Str(v)
			if plain := strings.ReplaceAll(text, "%%", ""); strings.Contains(plain, "%") && !interpolates(plain) {
				return "", value.Raise("ValueError", "setting %s of section %s has a %% that is not doubled", value.Str(key),
					value.Str(name))
			}
			fmt.Fprintf(&b, "%s = %s\n", strings.ToLower(value.Str(key)), strings.ReplaceAll(text, "\n", "\n\t"))
		}
		b.WriteByte('\n')
	}
	return b.String(), nil
}

// interpolates reports whether every % of a text begins a reference such as %(home)s.
func interpolates(text string) bool {
	for {
		_, rest, ok := strings.Cut(text, "%")
		if !ok {
			return true
		}
		reference, after, ok := strings.Cut(rest, ")s")
		if !ok || !strings.HasPrefix(reference, "(") {
			return false
		}
		text = after
	}
}

func keyValueText(v any, separator, ending string, quoting bool) (string, error) {
	var lines []string
	add := func(key, v any) {
		text := value.Str(v)
		if quoting {
			text = quoted(text)
		}
		lines = append(lines, value.Str(key)+separator+text)
	}
	if m, ok := v.(*value.Map); ok {
		for key, v := range m.All() {
			add(key, v)
		}
		return strings.Join(lines, ending), nil
	}
	pairs, err := function.List(v)
	if err != nil {
		return "", err
	}
	for _, item := range pairs.Items {
		pair, err := function.List(item)
		if err != nil || pair.Len() != 2 {
			return "", function.TypeError("a list of pairs was expected")
		}
		add(pair.Items[0], pair.Items[1])
	}
	return strings.Join(lines, ending), nil
}

// quoted quotes a word for a shell if necessary.
func quoted(s string) string {
	safe := func(r rune) bool {
		return r < 0x80 && (r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' ||
			strings.ContainsRune("@%+=:,./-_", r))
	}
	if s != "" && strings.IndexFunc(s, func(r rune) bool { return !safe(r) }) < 0 {
		return s
	}
	return "'" + strings.ReplaceAll(s, "'", `'"'"'`) + "'"
}

func keyValues(text, separator string, quoting any) (any, error) {
	read := value.NewMap()
	for _, line := range value.SplitLines(text, false) {
		key, v, ok := strings.Cut(line, separator)
		if !ok {
			return nil, fmt.Errorf("a line has no %q", separator)
		}
		if n := len(v); quoting == false && n > 1 && v[0] == v[n-1] && (v[0] == '"' || v[0] == '\'') {
			v = v[1 : n-1]
		}
		read.Set(key, v)
	}
	return read, nil
}
