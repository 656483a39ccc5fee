package function

import (
	"strings"

	"github.com/corpus-agent/corpus-agent/state/value"
)

// Find looks up a key such as a:b:0 in data. A key may also be a number, or a list of steps.
func Find(data any, key any, delimiter string) (any, bool) {
	switch key := key.(type) {
	case string:
		return value.Lookup(data, key, delimiter)
	case *value.List:
		return value.Follow(data, key.Items...)
	case value.Tuple:
		return value.Follow(data, key...)
	}
	return value.Follow(data, key)
}

// Traverse is like Find, but returns fallback if there is no value.
func Traverse(data any, key, fallback any, delimiter string) any {
	if found, ok := Find(data, key, delimiter); ok {
		return found
	}
	return fallback
}

// Pick returns several keys at once, as grains.item and pillar.item do.
func Pick(data *value.Map, keys []any, options *value.Map) (*value.Map, error) {
	fallback, ok := options.Get("default")
	if !ok {
		fallback = ""
	}
	delimiter, ok := options.Value("delimiter").(string)
	if !ok {
		delimiter = ":"
	}
	picked := value.NewMap()
	for _, key := range keys {
		if err := picked.SetKey(key, Traverse(data, key, fallback, delimiter)); err != nil {
			return nil, err
		}
	}
	return picked, nil
}

// IsTrue reports whether a switch is on by Salt's rules: a number above zero, or the word true.
func IsTrue(v any) bool {
	if f, err := value.ToFloat(v); err == nil {
		return f > 0
	}
	if s, ok := v.(string); ok {
		return strings.EqualFold(s, "true")
	}
	return value.Truth(v)
}
