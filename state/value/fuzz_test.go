package value_test

import (
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/corpus-agent/corpus-agent/state/value"
)

// FuzzRegexp compiles patterns of Python's re and searches for them. The result must be a match inside of the text or
// an error, within the time limit.
func FuzzRegexp(f *testing.F) {
	for _, pattern := range []string{`(a+)+$`, `(?P<n>a)(?P=n)`, `(?<=a)b(?!c)`, `\bweb-(\d{2,3})\Z`, `[^]a-z]`,
		`(?i)ä|\w*?`, `a{,3}`, `(?#x)\A.`, `(`, `[`, `\`, `a**`, `(?<n`, `\8`, `{`} {
		f.Add(pattern, "aaaaaaaaaaaaaaaaaaaaab web-01", true)
		f.Add(pattern, "", false)
	}
	f.Fuzz(func(t *testing.T, pattern, text string, flag bool) {
		if !utf8.ValidString(pattern) || !utf8.ValidString(text) || len(pattern) > 200 || len(text) > 2000 {
			t.Skip("templates are UTF-8")
		}
		r, err := value.CompileRegexp(pattern, value.RegexpFlags{IgnoreCase: flag, Multiline: flag, DotAll: !flag})
		if err != nil {
			return
		}
		for _, search := range []func(string) (*value.Match, error){r.Search, r.MatchStart, r.MatchAll} {
			if found, err := search(text); err == nil && found != nil &&
				(found.Start < 0 || found.End < found.Start || found.End > len(text)) {
				t.Fatalf("%q in %q: %+v", pattern, text, found)
			}
		}
		if replaced, err := r.Replace(text, `<\g<0>>`); err == nil && len(replaced) < len(text) {
			t.Fatalf("%q in %q: replaced to %q", pattern, text, replaced)
		}
	})
}

// FuzzFormat formats values with str.format and with the operator %.
func FuzzFormat(f *testing.F) {
	for _, format := range []string{"%s|%5.2f|%-5d|%x|%%", "%(a)s %(b)r", "{} {0!r:>10} {a[b]}", "{:{}}", "{{}}", "%*d",
		"{0.x}", "%.3s", "{:,.2f}", "{:+#x}", "%", "{", "{:99999999999}"} {
		f.Add(format, "text", 7, 2.5)
	}
	f.Fuzz(func(t *testing.T, format, text string, n int, x float64) {
		args := value.Tuple{text, n, x}
		named := value.NewMap("a", text, "b", n, "c", value.NewList(x))
		for _, v := range []any{args, named, text, n, nil} {
			if out, err := value.Percent(format, v); err == nil && len(out) > 1<<28 {
				t.Fatalf("%q makes %d bytes", format, len(out))
			}
		}
		for _, v := range []any{text, n, x, true, nil} {
			if out, err := value.FormatValue(v, format); err == nil && len(out) > 1<<28 {
				t.Fatalf("%q makes %d bytes", format, len(out))
			}
		}
	})
}

// FuzzJSON parses documents, and checks that the value stays the same when it is written and parsed again.
func FuzzJSON(f *testing.F) {
	for _, text := range []string{`{"a": [1, 2.5, null, true, "é"], "b": {}}`, `123456789012345678901234567890`, `1e400`,
		`-0`, `"\ud800"`, `[`, strings.Repeat("[", 1200), `{"a":1,"a":2}`} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		v, err := value.FromJSON([]byte(text))
		if err != nil {
			return
		}
		again, err := value.Dumps(v, value.JSONOptions{ASCII: true})
		if err != nil {
			return // nested more deeply than Python writes
		}
		w, err := value.FromJSON([]byte(again))
		if err != nil || !value.Equal(v, w) {
			t.Fatalf("%q became %q: %v", text, again, err)
		}
	})
}
