package function

import (
	"math"
	"strings"
	"time"

	"github.com/corpus-agent/corpus-agent/state/value"
)

// CommaList returns the items of a list, or of a text that is separated by commas.
func CommaList(v any) []string {
	switch v := v.(type) {
	case nil:
		return nil
	case *value.List:
		items, _ := Texts(v)
		return items
	}
	parts := strings.Split(value.Str(v), ",")
	for i := range parts {
		parts[i] = strings.TrimSpace(parts[i])
	}
	return parts
}

// OptionalText returns a value as text; "" for None.
func OptionalText(v any) string {
	if v == nil {
		return ""
	}
	return value.Str(v)
}

// Timeout converts a number of seconds; None means no limit.
func Timeout(v any) (time.Duration, error) {
	if !value.Truth(v) {
		return 0, nil
	}
	f, err := value.ToFloat(v)
	if _, isText := v.(string); isText || err != nil || f < 0 || f > math.MaxInt32 {
		return 0, TypeError("argument timeout: a number of seconds was expected")
	}
	return time.Duration(f * float64(time.Second)), nil
}
