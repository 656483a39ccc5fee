package yaml_test

import (
	"fmt"
	"math/big"
	"strconv"

	"github.com/corpus-agent/corpus-agent/state/value"
)

// typed returns a value with its type in the notation of testdata/yaml.
func typed(v any) []any {
	switch v := v.(type) {
	case nil:
		return []any{"null"}
	case bool:
		return []any{"bool", v}
	case int:
		return []any{"int", strconv.Itoa(v)}
	case *big.Int:
		return []any{"int", v.String()}
	case float64:
		return []any{"float", value.Repr(v)}
	case string:
		return []any{"str", v}
	case []byte:
		return []any{"bytes", fmt.Sprintf("%x", v)}
	case *value.List:
		return []any{"list", typedItems(v.Items)}
	case value.Tuple:
		return []any{"list", typedItems(v)}
	case *value.Map:
		pairs := []any{}
		for k, item := range v.All() {
			pairs = append(pairs, []any{typed(k), typed(item)})
		}
		return []any{"map", pairs}
	}
	return []any{fmt.Sprintf("%T", v)}
}

func typedItems(items []any) []any {
	out := []any{}
	for _, item := range items {
		out = append(out, typed(item))
	}
	return out
}

// sameTyped compares a result of typed with one that was decoded from JSON. A set in the latter is a mapping of nulls
// in the former.
func sameTyped(got, want []any) bool {
	if want[0] == "set" || want[0] == "other" {
		return got[0] == "map"
	}
	if got[0] != want[0] || len(got) != len(want) {
		return false
	}
	if len(got) == 1 {
		return true
	}
	wantItems, ok := want[1].([]any)
	if !ok {
		return got[1] == want[1]
	}
	gotItems, ok := got[1].([]any)
	if !ok || len(gotItems) != len(wantItems) {
		return false
	}
	for i := range gotItems {
		if !samePart(got[0] == "map", gotItems[i].([]any), wantItems[i].([]any)) {
			return false
		}
	}
	return true
}

func samePart(pair bool, got, want []any) bool {
	if !pair {
		return sameTyped(got, want)
	}
	return sameTyped(got[0].([]any), want[0].([]any)) && sameTyped(got[1].([]any), want[1].([]any))
}
