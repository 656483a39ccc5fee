package value_test

import (
	"strings"
	"testing"

	"github.com/corpus-agent/corpus-agent/state/value"
)

// deep returns n nested lists in JSON.
func deep(n int) string { return strings.Repeat("[", n) + strings.Repeat("]", n) }

func TestJSONNestingIsLimited(t *testing.T) {
	if _, err := value.FromJSON([]byte(deep(1000))); err != nil {
		t.Errorf("1000 levels: %v", err)
	}
	for _, text := range []string{deep(1001), strings.Repeat("[", 5_000_000), strings.Repeat(`{"a":`, 1_000_000)} {
		_, err := value.FromJSON([]byte(text))
		if err == nil || !strings.Contains(err.Error(), "nested more than 1000 levels deep") {
			t.Errorf("%.20s of %d bytes: %v", text, len(text), err)
		}
	}
}

// doubling returns a list that contains its innermost list 2 to the power of n times.
func doubling(n int) any {
	var v any = value.NewList(1)
	for range n {
		v = value.NewList(v, v)
	}
	return v
}

func TestSharedPartsAreComparedOnce(t *testing.T) {
	if !value.Equal(doubling(60), doubling(60)) {
		t.Error("equal lists differ")
	}
	if value.Equal(doubling(60), doubling(59)) {
		t.Error("lists of different depth are equal")
	}
}

func TestLaterValuesAreEvaluatedOnce(t *testing.T) {
	calls := 0
	m := value.NewMap("a", 1)
	m.SetLater("b", func() any { calls++; return value.NewList("x") })
	other := value.NewMap()
	other.Update(m)
	copied := value.Copy(m.Clone()).(*value.Map)
	if keys := m.Names(); calls != 0 || len(keys) != 2 || !copied.Has("b") || other.Len() != 2 {
		t.Fatalf("computed %d times for the keys %q", calls, keys)
	}
	for _, holder := range []*value.Map{m, other, copied, m.Clone()} {
		if got := value.Repr(holder); got != "{'a': 1, 'b': ['x']}" {
			t.Errorf("printed as %s", got)
		}
		if v, ok := value.Lookup(holder, "b:0", ":"); !ok || v != "x" {
			t.Errorf("b:0 is %v", v)
		}
	}
	if calls != 1 {
		t.Errorf("computed %d times, want once", calls)
	}
}
