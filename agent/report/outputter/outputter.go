// Package outputter prints the result of a called function.
//
// JSON and YAML are for programs and contain the whole result. The other forms are for people and resemble Salt's:
// nested for data, highstate for the results of states. They have Salt's columns, with the words of this project.
package outputter

import (
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/corpus-agent/corpus-agent/state/diag"
	"github.com/corpus-agent/corpus-agent/state/redact"
	"github.com/corpus-agent/corpus-agent/state/value"
	"github.com/corpus-agent/corpus-agent/state/yaml"
)

// host is the name of the minion in the output of salt-call.
const host = "local"

// Options configure the form of the output. The zero value is nested data without colours.
type Options struct {
	Format string // one of Formats
	Mode   string // of highstate: full, terse, mixed or changes; "" for full
	Brief  bool   // of highstate: leave out what was right already
	Color  bool
	Indent int // of json: spaces, 4 if it is 0, and one line if it is negative
	// Ordered keeps the order of ordered mappings in nested, as Salt does. Other mappings are sorted.
	Ordered bool
}

// Formatted is the format of an answer that is the text to print.
const Formatted = "formatted"

// Formats returns the valid values of Options.Format.
func Formats() []string {
	return []string{"json", "yaml", "nested", "highstate", "txt", "raw", "pprint", "newline_values_only", "quiet"}
}

// known returns the format that is used for a format name of Salt. It returns an unknown name unchanged.
func known(format string) string {
	switch format {
	case "":
		return "nested"
	case "no_out", "no_out_quiet":
		return "quiet"
	case "no_return", "key", "table", "profile", "progress", "virt_query", "overstatestage", "grains":
		return "nested" // formats for answers of salt and salt-key, or of functions that produce data for them
	}
	return format
}

// Known reports whether a format can be written.
func Known(format string) bool { return slices.Contains(Formats(), known(format)) }

// Write writes an answer.
func Write(w io.Writer, answer any, o Options) error {
	text, err := Text(answer, o)
	if err != nil {
		return err
	}
	_, err = io.WriteString(w, text)
	return err
}

// Text returns an answer as text that ends with a newline.
func Text(answer any, o Options) (string, error) {
	answer = printer{quoteBytes: o.Format == "json", typed: o.Format == "yaml"}.value(answer)
	if known(o.Format) == "nested" {
		redact.Each(&answer, unicodeLines)
	}
	switch known(o.Format) {
	case "nested", "highstate", "txt", "newline_values_only", Formatted:
		redact.Each(&answer, redact.Controls) // the other forms escape what is not printable
	}
	switch known(o.Format) {
	case "json":
		text, err := value.Dumps(value.NewMap(host, answer), value.JSONOptions{Indent: o.indent()})
		return redact.JSON(text) + "\n", err
	case "raw", "pprint":
		return value.Repr(value.NewMap(host, answer)) + "\n", nil
	case "newline_values_only":
		return values(answer), nil
	case "quiet":
		return "", nil
	case Formatted:
		return strings.TrimSuffix(value.Str(answer), "\n") + "\n", nil
	case "yaml":
		return dumped(value.NewMap(host, answer)), nil
	case "txt":
		return lines(answer), nil
	case "highstate":
		return paint{on: o.Color}.highstate(answer, o), nil
	case "nested":
		return paint{o.Color, o.Ordered}.answer(answer), nil
	}
	err := fmt.Errorf("there is no output %q", o.Format)
	if hint := diag.DidYouMean(o.Format, Formats()); hint != "" {
		return "", diag.Usage.Hint(err, "%s", hint)
	}
	return "", diag.Usage.Hint(err, "there are %s", strings.Join(Formats(), ", "))
}

// unicodeLines replaces the line breaks of Unicode, at which nested begins a line as Salt does.
func unicodeLines(text string) string {
	return strings.NewReplacer("\u2028", "\n", "\u2029", "\n", "\u0085", "\n").Replace(text)
}

// dumped returns YAML without characters that a terminal interprets. If one of them is printable in YAML, such as those
// that reorder text, everything beyond ASCII is escaped.
func dumped(v any) string {
	text := yaml.Dump(v, yaml.DumpOptions{Collections: yaml.Block, Sort: yaml.SortPlain})
	if redact.Controls(text) == text {
		return text
	}
	return yaml.Dump(v, yaml.DumpOptions{Collections: yaml.Block, Sort: yaml.SortPlain, ASCII: true})
}

// indent returns the indentation of json.
func (o Options) indent() string {
	switch {
	case o.Indent == 0:
		return "    "
	case o.Indent < 0:
		return ""
	}
	return strings.Repeat(" ", o.Indent)
}

// values returns the newline_values_only form: each item of a list in a line, and any other answer in one.
func values(v any) string {
	items := []any{v}
	if list, ok := v.(*value.List); ok {
		items = list.Items
	}
	var b strings.Builder
	for _, item := range items {
		b.WriteString(value.Str(item) + "\n")
	}
	return b.String()
}

// lines returns the txt form: each line of a text after the host, and any other value in the notation of Python.
func lines(answer any) string {
	text, ok := answer.(string)
	if !ok {
		return host + ": " + value.Str(answer) + "\n"
	}
	var b strings.Builder
	for _, line := range value.SplitLines(text, false) {
		b.WriteString(host + ": " + line + "\n")
	}
	return b.String()
}

// printer converts values to values that all formats can write.
type printer struct {
	quoteBytes bool // bytes are written in the notation of Python, and not as text
	typed      bool // the format has bytes and dates
}

// value converts a value. Values that only templates can have, such as functions, become strings in the notation of
// Python.
func (p printer) value(v any) any {
	switch v := v.(type) {
	case *value.Map:
		if v == nil {
			return nil
		}
		m := value.NewMap()
		if v.IsPlain() {
			m.Plain()
		}
		for key, item := range v.All() {
			if _, err := value.JSONKey(key); err != nil {
				key = value.Repr(key)
			}
			_ = m.SetKey(key, p.value(item)) // a key of a mapping is a valid key
		}
		return m
	case *value.List:
		return &value.List{Items: p.values(v.Items)}
	case value.Tuple:
		return value.Tuple(p.values(v))
	case []byte:
		switch {
		case p.typed:
			return v
		case p.quoteBytes:
			return value.Repr(v)
		}
		return string(v)
	case value.Object:
		if p.typed && yaml.IsDate(v) {
			return v
		}
		return value.Repr(v)
	}
	return v
}

func (p printer) values(items []any) []any {
	all := make([]any, len(items))
	for i, item := range items {
		all[i] = p.value(item)
	}
	return all
}
