package jinja_test

import (
	"context"
	"strings"
	"testing"

	"github.com/corpus-agent/corpus-agent/state/jinja"
	"github.com/corpus-agent/corpus-agent/state/value"
)

// TestStepLimitCountsSizes repeats each operation on a large text or list sixty times. Each must exceed the limit of
// steps, although sixty steps of one are far below it.
func TestStepLimitCountsSizes(t *testing.T) {
	big := strings.Repeat("abcdefgh", 32<<10) // 256 KiB
	list := value.NewList()
	for range 512 {
		list.Append(strings.Repeat("x", 512))
	}
	for _, operation := range []string{
		"big == other", "big != other", "big < other", "big >= other", "'zz' in big", "big not in [other]", "list == same",
		"big is eq other",
		"big is lower", "big ~ 'x'", "list ~ 'x'", "big + 'x'", "big % ()", "'%s' % (list,)", "big|upper", "big|length",
		"big|replace('zz', 'y')",
		"list|join", "list|tojson", "list|sort", "list|string", "list|unique|list", "big.upper()", "big.find('zz')",
		"'-'.join(list)", "big.startswith(other)",
		"big|wordcount", "big|trim", "digest(big)", "digest(list)", "[big]|map('upper')|list",
		"[big]|select('eq', other)|list", "list|pprint", "big in {other: 1}",
		"big|urlencode|length", "big.count('zz')", "list.count(big) or list == same", "big|list|length",
	} {
		t.Run(operation, func(t *testing.T) {
			digest := jinja.Function("digest", func(*jinja.Call) (any, error) { return "0", nil })
			env := jinja.New(jinja.Options{Limits: jinja.Limits{Steps: 20_000}})
			template, err := env.Parse(jinja.Source{Name: "t", Text: "{% for i in range(60) %}{% set x = " + operation +
				" %}{% endfor %}"})
			if err != nil {
				t.Fatal(err)
			}
			_, err = template.Render(context.Background(), value.NewMap("big", big, "other", big[:len(big)-1]+"y", "list", list,
				"same", value.NewList(list.Items...), "digest", digest))
			if err == nil || !strings.Contains(err.Error(), "steps") {
				t.Errorf("60 times %s is within 20,000 steps: %v", operation, err)
			}
		})
	}
}
