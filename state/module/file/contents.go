package file

import (
	"errors"
	"fmt"
	"strings"
	"unicode/utf8"

	"github.com/corpus-agent/corpus-agent/state/diag"
	"github.com/corpus-agent/corpus-agent/state/value"
)

// written holds the arguments that give content directly or name it in the pillar or the grains.
type written struct {
	Contents          any    `sls:"contents"`
	ContentsPillar    any    `sls:"contents_pillar"`
	ContentsGrains    any    `sls:"contents_grains"`
	ContentsNewline   bool   `sls:"contents_newline"`
	ContentsDelimiter string `sls:"contents_delimiter"`
	AllowEmpty        bool   `sls:"allow_empty"`
}

// count returns how many of the arguments are set.
func (w written) count() int {
	n := 0
	for _, v := range []any{w.Contents, w.ContentsPillar, w.ContentsGrains} {
		if v != nil {
			n++
		}
	}
	return n
}

// text returns the content as lines that each end in a newline. binary reports content that is not UTF-8, which
// is returned unchanged. given is false if there is no content.
func (w written) text(f *family) (text []byte, given, binary bool, err error) {
	v, err := w.find(f)
	if err != nil || v == nil {
		return nil, false, false, err
	}
	if !w.AllowEmpty && !value.Truth(v) {
		return nil, false, false, diag.Argument.Hint(errors.New("there is nothing to put into the file"),
			"set allow_empty: True if it may be empty")
	}
	if b, ok := v.([]byte); ok && !utf8.Valid(b) {
		return b, true, true, nil
	}
	parts := parts(v)
	if len(parts) == 0 {
		return nil, false, false, diag.Argument.Hint(errors.New("the contents are an empty list"),
			"write a string or a list of lines")
	}
	var b strings.Builder
	for _, part := range parts {
		for _, line := range value.SplitLines(part, false) {
			b.WriteString(line)
			b.WriteByte('\n')
		}
	}
	joined := b.String()
	if !w.ContentsNewline {
		joined = strings.TrimRight(strings.TrimRight(joined, "\n"), "\r")
	}
	return []byte(joined), true, false, nil
}

func (w written) find(f *family) (any, error) {
	switch {
	case w.ContentsPillar != nil:
		return lookUp(f.Pillar, "pillar key", w.ContentsPillar, w.ContentsDelimiter)
	case w.ContentsGrains != nil:
		return lookUp(f.Grains, "grain", w.ContentsGrains, w.ContentsDelimiter)
	}
	return w.Contents, nil
}

// lookUp returns the value at a path. For a list of paths it returns their values, joined as lines.
func lookUp(find Lookup, what string, paths any, delimiter string) (any, error) {
	list, ok := paths.(*value.List)
	if !ok {
		v, ok := find(value.Str(paths), delimiter)
		if !ok {
			return nil, diag.Pillar.Hint(fmt.Errorf("there is no %s %s", what, value.Str(paths)),
				"see `corpus-agent pillar` and `corpus-agent grains`")
		}
		return v, nil
	}
	var lines []string
	for _, p := range list.Items {
		v, err := lookUp(find, what, value.Str(p), delimiter)
		if err != nil {
			return nil, err
		}
		lines = append(lines, value.Str(v))
	}
	return strings.Join(lines, "\n"), nil
}

// parts returns the items of a list as strings, or any other value as a single string.
func parts(v any) []string {
	var items []any
	switch v := v.(type) {
	case []byte:
		return []string{string(v)}
	case *value.List:
		items = v.Items
	case value.Tuple:
		items = v
	default:
		return []string{value.Str(v)}
	}
	out := make([]string, len(items))
	for i, item := range items {
		out[i] = value.Str(item)
	}
	return out
}
