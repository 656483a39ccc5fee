package cloud

import (
	"strings"

	"github.com/corpus-agent/corpus-agent/state/value"
)

// AttributeText returns the value of an attribute as the text that AWS takes. A mapping or list, such as a policy,
// becomes JSON.
func AttributeText(v any) (string, error) {
	switch v := v.(type) {
	case *value.Map, *value.List:
		return value.Dumps(v, value.JSONOptions{})
	case bool:
		if v {
			return "true", nil
		}
		return "false", nil
	case nil:
		return "", nil
	}
	return value.Str(v), nil
}

// SameText reports whether two texts mean the same. Objects in JSON are compared as policies, and other texts without
// regard to case.
func SameText(a, b string) bool {
	if a == b {
		return true
	}
	if !strings.HasPrefix(strings.TrimSpace(a), "{") {
		return strings.EqualFold(a, b)
	}
	x, err := value.FromJSON([]byte(a))
	y, other := value.FromJSON([]byte(b))
	return err == nil && other == nil && SamePolicy(x, y)
}

// SamePolicy reports whether two policies mean the same: AWS writes a list of one text as that text, and lists of
// actions and resources have no order.
func SamePolicy(a, b any) bool { return value.Equal(plainPolicy(a), plainPolicy(b)) }

func plainPolicy(v any) any {
	switch v := v.(type) {
	case *value.Map:
		m := value.NewMap()
		for key, item := range v.All() {
			m.Set(value.Str(key), plainPolicy(item))
		}
		return m
	case *value.List:
		if len(v.Items) == 1 {
			return plainPolicy(v.Items[0])
		}
		all, words := value.NewList(), true
		for _, item := range v.Items {
			all.Append(plainPolicy(item))
			_, is := item.(string)
			words = words && is
		}
		if words {
			return Sorted(Texts(v))
		}
		return all
	case bool: // AWS returns the values of conditions as text
		if v {
			return "true"
		}
		return "false"
	case int, float64:
		return value.Str(v)
	}
	return v
}
