package value_test

import (
	"testing"

	"github.com/corpus-agent/corpus-agent/state/value"
)

func TestReplaceSome(t *testing.T) {
	lines := value.RegexpFlags{Multiline: true}
	for _, c := range []struct {
		pattern string
		flags   value.RegexpFlags
		in      string
		with    string
		limit   int
		want    string
		n       int
	}{
		{`x`, lines, "x x x", "y", 2, "y y x", 2},
		{`x`, lines, "x x x", "y", 0, "y y y", 3},
		{`^a=.*$`, lines, "a=1\nb\na=2\n", "c", 1, "c\nb\na=2\n", 1},
		{`a.b`, value.RegexpFlags{DotAll: true}, "a\nb", "z", 0, "z", 1},
		{`a.b`, lines, "a\nb", "z", 0, "a\nb", 0},
		{`(?=b)(\w)`, lines, "ab ab", `<\1>`, 1, "a<b> ab", 1},
		{`(?<=a)(.)`, lines, "a\xe9 a\xe8", `[\1]`, 0, "a[\xe9] a[\xe8]", 2}, // bytes that are not UTF-8 are kept
	} {
		r, err := value.CompileRegexp(c.pattern, c.flags)
		if err != nil {
			t.Fatal(err)
		}
		got, n, err := r.ReplaceSome(c.in, c.with, c.limit)
		if got != c.want || n != c.n || err != nil {
			t.Errorf("replacing %s in %q by %s at most %d times gives %q, %d, %v; want %q, %d", c.pattern, c.in, c.with, c.limit,
				got, n, err, c.want, c.n)
		}
	}
}
