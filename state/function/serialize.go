package function

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/corpus-agent/corpus-agent/state/diag"
	"github.com/corpus-agent/corpus-agent/state/value"
	"github.com/corpus-agent/corpus-agent/state/yaml"
)

// serialize writes a value in one of Salt's formats. Each format has options of its own.
func serialize(ctx context.Context, format string, v any, options *value.Map) (any, error) {
	return through(ctx, writers(), format, v, options)
}

// deserialize reads a text.
func deserialize(ctx context.Context, format string, text any, options *value.Map) (any, error) {
	return through(ctx, readers(), format, text, options)
}

func writers() Table {
	return Table{
		"json":         Of("obj, indent=None, sort_keys=False, ensure_ascii=False", jsonText),
		"yaml":         Of("obj, default_flow_style=None, indent=2, width=80, sort_keys=True, allow_unicode=False", yamlText),
		"configparser": Of("obj", iniText),
		"keyvalue":     Of("obj, separator='=', line_ending='\n', quoting=False", keyValueText),
	}
}

func readers() Table {
	return Table{
		"json":     Of("stream_or_string, **options", func(text string, _ *value.Map) (any, error) { return fromJSON(text, "the text") }),
		"yaml":     Of("stream_or_string", fromPlainYAML),
		"keyvalue": Of("stream_or_string, separator='=', quoting=None", keyValues),
	}
}

// fromPlainYAML reads data, for which Salt's rules for SLS files do not hold.
func fromPlainYAML(text string) (any, error) {
	doc, err := yaml.LoadPlain(text, "the text")
	if err != nil {
		return nil, err
	}
	return doc.Value, nil
}

func through(ctx context.Context, formats Table, format string, v any, options *value.Map) (any, error) {
	f, ok := formats[format]
	if ok {
		return f.call(ctx, []any{v}, options)
	}
	err := fmt.Errorf("there is no serializer %q here", format)
	if hint := diag.DidYouMean(format, formats.Names()); hint != "" {
		return nil, diag.WithHint(err, "%s", hint)
	}
	if slices.Contains([]string{"msgpack", "plist", "python", "toml", "yamlex", "configparser"}, format) {
		return nil, diag.WithHint(err, "use one of %s, or converge this host with `engine: salt-call`", strings.Join(formats.Names(), ", "))
	}
	return nil, diag.WithHint(err, "the serializers are %s", strings.Join(formats.Names(), ", "))
}

func jsonText(v, indent any, sorted, ascii bool) (string, error) {
	o := value.JSONOptions{SortKeys: sorted, ASCII: ascii}
	switch indent := indent.(type) {
	case nil:
	case string:
		o.Indent, o.Lines = indent, true
	default:
		n, err := whole(indent)
		if err != nil {
			return "", typeError("argument indent: %v", err)
		}
		o.Indent, o.Lines = strings.Repeat(" ", min(max(n, 0), 100)), true
	}
	return value.Dumps(v, o)
}

func yamlText(v, flow any, indent, width int, sorted, unicode bool) string {
	o := yaml.DumpOptions{ASCII: !unicode, Indent: indent, Width: width}
	if sorted {
		o.Sort = yaml.SortAll
	}
	switch {
	case flow == nil:
	case value.Truth(flow):
		o.Collections = yaml.Flow
	default:
		o.Collections = yaml.Block
	}
	text := yaml.Dump(v, o)
	if bare, ok := strings.CutSuffix(text, "\n...\n"); ok {
		text = bare
	}
	return strings.TrimSuffix(text, "\n")
}

// iniText writes sections of settings, as Python's configparser does.
func iniText(sections *value.Map) (string, error) {
	var b strings.Builder
	for name, section := range sections.All() {
		settings, ok := section.(*value.Map)
		if !ok {
			return "", typeError("section %s: %v", value.Str(name), expected("a mapping", section))
		}
		fmt.Fprintf(&b, "[%s]\n", value.Str(name))
		for key, v := range settings.All() {
			if v == nil {
				return "", typeError("setting %s of section %s has no value", value.Str(key), value.Str(name))
			}
			text := value.Str(v)
			if plain := strings.ReplaceAll(text, "%%", ""); strings.Contains(plain, "%") && !interpolates(plain) {
				return "", value.Raise("ValueError", "setting %s of section %s has a %% that is not doubled", value.Str(key), value.Str(name))
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
	pairs, err := list(v)
	if err != nil {
		return "", err
	}
	for _, item := range pairs.Items {
		pair, err := list(item)
		if err != nil || pair.Len() != 2 {
			return "", typeError("a list of pairs was expected")
		}
		add(pair.Items[0], pair.Items[1])
	}
	return strings.Join(lines, ending), nil
}

// quoted quotes a word for a shell, if it has to be.
func quoted(s string) string {
	safe := func(r rune) bool {
		return r < 0x80 && (r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || strings.ContainsRune("@%+=:,./-_", r))
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
