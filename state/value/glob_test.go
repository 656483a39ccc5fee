package value_test

import (
	"testing"

	"github.com/corpus-agent/corpus-agent/state/value"
)

func TestGlob(t *testing.T) {
	for _, c := range []struct {
		pattern, name string
		want          bool
	}{
		{"web*", "web1", true}, {"web*", "db", false}, {"*", "", true}, {"a*b*c", "aXbYbZc", true}, {"a*b*c", "aXbY", false},
		{"?", "é", true}, {"[é-ü]x", "öx", true}, {"[!a]", "b", true}, {"[!a]", "a", false}, {"[]]", "]", true},
		{"[a", "[a", true},
		{"a/*", "a/b/c", true}, {"Web", "web", false}, {"é*", "élan", true}, {"*é", "café", true}, {"w[eé]b", "wéb", true},
	} {
		if got := value.Glob(c.pattern, c.name); got != c.want {
			t.Errorf("Glob(%q, %q) = %v, want %v", c.pattern, c.name, got, c.want)
		}
	}
}
