package function

import (
	"strings"

	"github.com/corpus-agent/corpus-agent/state/value"
)

// find follows a key such as a:b:0 through data. A key may also be a number, or a list of steps.
func find(data any, key any, delimiter string) (any, bool) {
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

// traverse is find with something to fall back on.
func traverse(data any, key, fallback any, delimiter string) any {
	if found, ok := find(data, key, delimiter); ok {
		return found
	}
	return fallback
}

// pick gives several keys at once, as grains.item and pillar.item do.
func pick(data *value.Map, keys []any, options *value.Map) (*value.Map, error) {
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
		if err := picked.SetKey(key, traverse(data, key, fallback, delimiter)); err != nil {
			return nil, err
		}
	}
	return picked, nil
}

// isTrue reads a switch as Salt does: a number above zero, or the word true.
func isTrue(v any) bool {
	if f, err := value.ToFloat(v); err == nil {
		return f > 0
	}
	if s, ok := v.(string); ok {
		return strings.EqualFold(s, "true")
	}
	return value.Truth(v)
}
