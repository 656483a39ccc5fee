package file

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/corpus-agent/corpus-agent/state/diag"
	"github.com/corpus-agent/corpus-agent/state/formats"
	"github.com/corpus-agent/corpus-agent/state/value"
	"github.com/corpus-agent/corpus-agent/state/yaml"
)

// format is a serialization format. dump returns text without a final newline; load is nil if the format cannot
// be read back.
type format struct {
	name string
	dump func(v any, o dumpOptions) (string, error)
	load func(text []byte, options *value.Map) (any, error)

	binary bool // no final newline is added
}

// dumpOptions holds the serializer_opts of a format.
type dumpOptions struct {
	*value.Map
	unicode bool // write characters beyond ASCII unescaped
}

func (o dumpOptions) flag(name string, otherwise bool) bool {
	if v, ok := o.Get(name); ok {
		return value.Truth(v)
	}
	return otherwise
}

func (o dumpOptions) text(name, otherwise string) string {
	if v, ok := o.Get(name); ok && v != nil {
		return value.Str(v)
	}
	return otherwise
}

func allFormats() []format {
	return []format{
		{name: "yaml", dump: dumpYAML, load: loadYAML},
		{name: "json", dump: dumpJSON, load: func(text []byte, _ *value.Map) (any, error) { return value.FromJSON(text) }},
		{name: "configparser", dump: dumpINI, load: loadINI},
		{name: "keyvalue", dump: dumpKeyValue, load: loadKeyValue},
		{name: "toml", dump: dumpTOML, load: func(text []byte, _ *value.Map) (any, error) { return formats.TOML(text) }},
		{name: "python", dump: dumpPython},
		{name: "plist", dump: dumpPlist, load: func(text []byte, _ *value.Map) (any, error) { return formats.Plist(text) }},
		{name: "msgpack", dump: dumpMsgpack, load: func(text []byte, _ *value.Map) (any, error) {
			return formats.Msgpack(text)
		}, binary: true},
	}
}

func formatOf(formatter, serializer string) (format, error) {
	if formatter != "" && serializer != "" {
		return format{}, diag.Contradiction.Hint(errors.New("both formatter and serializer are given"), "keep one of them")
	}
	name := strings.ToLower(formatter + serializer)
	if name == "" {
		name = "yaml"
	}
	all := allFormats()
	i := slices.IndexFunc(all, func(f format) bool { return f.name == name })
	if i < 0 {
		names := make([]string, len(all))
		for i, f := range all {
			names[i] = f.name
		}
		return format{}, diag.Argument.Hint(fmt.Errorf("the format %s is not known", name),
			"it can be %s", strings.Join(names, ", "))
	}
	return all[i], nil
}

func dumpYAML(v any, o dumpOptions) (string, error) {
	options := yaml.DumpOptions{Collections: yaml.Block, ASCII: !o.flag("allow_unicode", o.unicode)}
	if o.flag("sort_keys", true) {
		options.Sort = yaml.SortAll
	}
	if flow, ok := o.Get("default_flow_style"); ok {
		options.Collections = yaml.Block
		switch {
		case flow == nil:
			options.Collections = yaml.Mixed
		case value.Truth(flow):
			options.Collections = yaml.Flow
		}
	}
	options.Indent, _ = o.Value("indent").(int)
	options.Width, _ = o.Value("width").(int)
	text := yaml.Dump(v, options)
	return strings.TrimSuffix(strings.TrimSuffix(text, "\n"), "\n..."), nil
}

func loadYAML(text []byte, _ *value.Map) (any, error) {
	doc, err := yaml.LoadPlain(string(text), "")
	if err != nil {
		return nil, err
	}
	return doc.Value, nil
}

func dumpJSON(v any, o dumpOptions) (string, error) {
	options := value.JSONOptions{Indent: "  ", SortKeys: o.flag("sort_keys", true), ASCII: o.flag("ensure_ascii", false)}
	if indent, ok := o.Get("indent"); ok {
		options.Indent = ""
		switch n := indent.(type) {
		case int:
			options.Indent, options.Lines = strings.Repeat(" ", max(0, n)), true
		case string:
			options.Indent = n
		}
	}
	return value.Dumps(v, options)
}

func dumpKeyValue(v any, o dumpOptions) (string, error) {
	var lines []string
	add := func(key, v any) {
		text := value.Str(v)
		if o.flag("quoting", false) {
			text = shellQuoted(text)
		}
		lines = append(lines, value.Str(key)+o.text("separator", "=")+text)
	}
	switch v := v.(type) {
	case *value.Map:
		for key, item := range v.All() {
			add(key, item)
		}
	case *value.List:
		for _, item := range v.Items {
			pair, ok := item.(*value.List)
			if !ok || pair.Len() != 2 {
				return "", errors.New("a list must be one of pairs")
			}
			add(pair.Items[0], pair.Items[1])
		}
	default:
		return "", fmt.Errorf("a mapping was expected, not a %s", value.TypeName(v))
	}
	return strings.Join(lines, o.text("line_ending", "\n")), nil
}

func loadKeyValue(text []byte, options *value.Map) (any, error) {
	o := dumpOptions{Map: options}
	m := value.NewMap()
	for i, line := range value.SplitLines(string(text), false) {
		key, v, ok := strings.Cut(line, o.text("separator", "="))
		if !ok {
			return nil, fmt.Errorf("line %d has no %q", i+1, o.text("separator", "="))
		}
		m.Set(key, v)
	}
	return m, nil
}

// shellQuoted quotes a text for a shell if it contains a character that is special in a shell.
func shellQuoted(s string) string {
	plain := func(r rune) bool {
		return r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || strings.ContainsRune("@%_-+=:,./", r)
	}
	if s != "" && strings.IndexFunc(s, func(r rune) bool { return !plain(r) }) < 0 {
		return s
	}
	return "'" + strings.ReplaceAll(s, "'", `'"'"'`) + "'"
}
