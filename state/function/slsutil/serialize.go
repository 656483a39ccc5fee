package slsutil

import (
	"context"
	"fmt"
	"strings"

	"github.com/corpus-agent/corpus-agent/state/diag"
	"github.com/corpus-agent/corpus-agent/state/formats"
	"github.com/corpus-agent/corpus-agent/state/function"
	"github.com/corpus-agent/corpus-agent/state/value"
	"github.com/corpus-agent/corpus-agent/state/yaml"
)

// serialize formats a value in one of Salt's formats, each of which has its own options.
func (s slsutil) serialize(ctx context.Context, format string, v any, options *value.Map) (any, error) {
	return through(ctx, s.writers(), format, v, options)
}

// deserialize parses a text in one of Salt's formats.
func (s slsutil) deserialize(ctx context.Context, format string, text any, options *value.Map) (any, error) {
	return through(ctx, s.readers(), format, text, options)
}

func (s slsutil) writers() function.Table {
	return function.Table{
		"json": function.Of("obj, indent=None, sort_keys=False, ensure_ascii=False", jsonText),
		"yaml": function.Of("obj, default_flow_style=None, indent=2, width=80, sort_keys=True, allow_unicode=False",
			yamlText),
		"configparser": function.Of("obj", iniText),
		"keyvalue":     function.Of("obj, separator='=', line_ending='\n', quoting=False", keyValueText),
		"python":       function.Of("obj, **options", s.dumpAs("python")),
		"toml":         function.Of("obj, **options", s.dumpAs("toml")),
		"plist":        function.Of("obj, **options", s.dumpAs("plist")),
		"msgpack":      function.Of("obj, **options", s.dumpBytes),
		"yamlex":       function.Of("obj, default_flow_style=None", orderedYAML),
	}
}

func (s slsutil) readers() function.Table {
	return function.Table{
		"json": function.Of("stream_or_string, **options", func(text string, _ *value.Map) (any, error) {
			return function.FromJSON(text, "the text")
		}),
		"yaml":     function.Of("stream_or_string", fromPlainYAML),
		"keyvalue": function.Of("stream_or_string, separator='=', quoting=None", keyValues),

		"configparser": function.Of("stream_or_string, **options", s.settingsOf),

		"toml":    function.Of("stream_or_string, **options", readBytes(formats.TOML)),
		"plist":   function.Of("stream_or_string, **options", readBytes(formats.Plist)),
		"msgpack": function.Of("stream_or_string, **options", readBytes(formats.Msgpack)),
		"yamlex":  function.Of("stream_or_string", fromYAMLEX),
	}
}

// readBytes returns a deserializer that accepts a text or bytes.
func readBytes(read func([]byte) (any, error)) func(v any, options *value.Map) (any, error) {
	return func(v any, _ *value.Map) (any, error) {
		switch v := v.(type) {
		case []byte:
			return read(v)
		case string:
			return read([]byte(v))
		}
		return nil, function.TypeError("%v", function.Expected("a text or bytes", v))
	}
}

// orderedYAML formats YAML with mappings in their order.
func orderedYAML(v, flow any) string {
	o := yaml.DumpOptions{ASCII: true, Indent: 2, Width: 80, Collections: yaml.Block}
	if value.Truth(flow) {
		o.Collections = yaml.Flow
	}
	return strings.TrimSuffix(strings.TrimSuffix(yaml.Dump(v, o), "\n"), "\n...")
}

// fromYAMLEX parses YAML by the rules of SLS files. The tags !aggregate and !reset are not supported.
func fromYAMLEX(text string) (any, error) {
	doc, err := yaml.LoadString(text, "the text")
	if err != nil {
		return nil, err
	}
	return doc.Value, nil
}

// dumpAs returns a serializer that formats as file.serialize does.
func (s slsutil) dumpAs(format string) func(v any, options *value.Map) (string, error) {
	return func(v any, options *value.Map) (string, error) {
		serializer, err := s.serializer(format)
		if err != nil {
			return "", err
		}
		return serializer.Dump(v, options)
	}
}

// serializer returns a format of file.serialize.
func (s slsutil) serializer(format string) (function.Serializer, error) {
	if s.Serializer != nil {
		if serializer, ok := s.Serializer(format); ok {
			return serializer, nil
		}
	}
	return nil, diag.Call.Hint(fmt.Errorf("the format %s is not written here", format), "write json, yaml or keyvalue")
}

// dumpBytes formats MessagePack, which is bytes and not text.
func (s slsutil) dumpBytes(v any, options *value.Map) ([]byte, error) {
	text, err := s.dumpAs("msgpack")(v, options)
	return []byte(text), err
}

// settingsOf parses sections of settings. References such as %(home)s are replaced by the setting with that name in
// the section or in the section DEFAULT, which applies to all others.
func (s slsutil) settingsOf(text string, options *value.Map) (any, error) {
	serializer, err := s.serializer("configparser")
	if err != nil {
		return nil, err
	}
	v, err := serializer.Load(text, options)
	sections, ok := v.(*value.Map)
	if err != nil || !ok {
		return nil, err
	}
	common, _ := sections.Value("DEFAULT").(*value.Map)
	all := value.NewMap()
	for _, name := range sections.Names() {
		if name == "DEFAULT" {
			continue
		}
		own, merged := sections.Value(name).(*value.Map), value.NewMap()
		merged.Update(common)
		merged.Update(own)
		read := value.NewMap()
		for _, key := range merged.Names() {
			if read.Set(key, merged.Value(key)); merged.Value(key) != nil {
				text, err := interpolated(value.Str(merged.Value(key)), merged, 0)
				if err != nil {
					return nil, fmt.Errorf("setting %s of section %s: %w", key, name, err)
				}
				read.Set(key, text)
			}
		}
		all.Set(name, read)
	}
	return all, nil
}

// interpolated returns a value with its references replaced.
func interpolated(text string, settings *value.Map, depth int) (string, error) {
	if depth > 10 {
		return "", fmt.Errorf("its references are nested too deeply")
	}
	var b strings.Builder
	for {
		before, after, found := strings.Cut(text, "%")
		b.WriteString(before)
		if !found {
			return b.String(), nil
		}
		if rest, ok := strings.CutPrefix(after, "%"); ok {
			b.WriteByte('%')
			text = rest
			continue
		}
		name, rest, ok := strings.Cut(after, ")s")
		v, known := settings.Get(strings.ToLower(strings.TrimPrefix(name, "(")))
		if !ok || !strings.HasPrefix(name, "(") || !known {
			return "", value.Raise("ValueError",
				"%% is followed by no reference to a setting, such as %%(home)s, and is not doubled")
		}
		inner, err := interpolated(value.Str(v), settings, depth+1)
		if err != nil {
			return "", err
		}
		b.WriteString(inner)
		text = rest
	}
}

// fromPlainYAML parses YAML without Salt's rules for SLS files.
func fromPlainYAML(text string) (any, error) {
	doc, err := yaml.LoadPlain(text, "the text")
	if err != nil {
		return nil, err
	}
	return doc.Value, nil
}

func through(ctx context.Context, known function.Table, format string, v any, options *value.Map) (any, error) {
	f, ok := known[format]
	if ok {
		return f.Call(ctx, []any{v}, options)
	}
	err := fmt.Errorf("there is no serializer %q here", format)
	if hint := diag.DidYouMean(format, known.Names()); hint != "" {
		return nil, diag.Call.Hint(err, "%s", hint)
	}
	return nil, diag.Call.Hint(err, "the serializers are %s", strings.Join(known.Names(), ", "))
}

func jsonText(v, indent any, sorted, ascii bool) (string, error) {
	o := value.JSONOptions{SortKeys: sorted, ASCII: ascii}
	switch indent := indent.(type) {
	case nil:
	case string:
		o.Indent, o.Lines = indent, true
	default:
		n, err := function.Int(indent)
		if err != nil {
			return "", function.TypeError("argument indent: %v", err)
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
