package session

import (
	"testing"

	"github.com/corpus-agent/corpus-agent/state/value"
)

func TestParseArguments(t *testing.T) {
	for word, want := range map[string]any{
		"web":          "web",
		"3":            3,
		"1_000":        "1_000",
		"1.5":          1.5,
		"True":         true,
		"yes":          true,
		"None":         nil,
		"null":         nil,
		"":             "",
		"  ":           "  ",
		"---":          "---",
		"|":            "|",
		"a: b":         "a: b",
		"- a":          "- a",
		"[a, 1]":       value.NewList("a", 1),
		"{a: 1}":       value.NewMap("a", 1),
		"[section] x":  "[section] x",
		"# no comment": "# no comment",
		"a # b":        "a # b",
		"3 # three":    3,
		"a\tb":         "a\tb",
		"2020-01-02":   "2020-01-02",
		"*":            "*",
		"a==b":         "a==b",
	} {
		args, kwargs := ParseArguments([]string{word})
		if len(args) != 1 || kwargs.Len() > 0 || !value.Equal(args[0], want) ||
			value.TypeName(args[0]) != value.TypeName(want) {
			t.Errorf("%q is %s and %s, want %s", word, value.Repr(value.NewList(args...)), value.Repr(kwargs), value.Repr(want))
		}
	}
}

func TestParseKeywordArguments(t *testing.T) {
	args, kwargs := ParseArguments([]string{"a", "test=True", "name=x=y", "empty=", "pillar={a: [1]}", "a-b.c=1", "1a=2",
		"/x=2", "two\nlines", "t=two\nlines"})
	if want := value.NewList("a", "1a=2", "/x=2", "two\nlines"); !value.Equal(value.NewList(args...), want) {
		t.Errorf("arguments are %s", value.Repr(value.NewList(args...)))
	}
	want := value.NewMap("test", true, "name", "x=y", "empty", "", "pillar", value.NewMap("a", value.NewList(1)), "a-b.c",
		1, "t", "two\nlines")
	if !value.Equal(kwargs, want) {
		t.Errorf("keywords are %s", value.Repr(kwargs))
	}
}
