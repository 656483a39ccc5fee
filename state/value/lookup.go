package value

import (
	"strconv"
	"strings"
)

// Lookup follows a path such as a:b:0 through mappings and lists, as pillar.get and grains.get do:
// a key that itself holds the separator wins over the step, and a number steps into a list. Where a
// list meets a name, the first mapping in the list that has it is taken.
func Lookup(v any, path, separator string) (any, bool) {
	if m, ok := v.(*Map); ok {
		if found, ok := m.Get(path); ok {
			return found, true
		}
	}
	for step := range strings.SplitSeq(path, separator) {
		next, ok := into(v, step)
		if !ok {
			return nil, false
		}
		v = next
	}
	return v, true
}

func into(v any, step string) (any, bool) {
	switch v := v.(type) {
	case *Map:
		if found, ok := v.Get(step); ok {
			return found, true
		}
		if n, err := strconv.Atoi(step); err == nil {
			found, ok, _ := v.GetKey(n)
			return found, ok
		}
	case *List:
		return intoList(v, step)
	}
	return nil, false
}

func intoList(l *List, step string) (any, bool) {
	for _, item := range l.Items {
		if m, ok := item.(*Map); ok {
			if found, ok := m.Get(step); ok {
				return found, true
			}
		}
	}
	if n, err := strconv.Atoi(step); err == nil && n >= 0 && n < len(l.Items) {
		return l.Items[n], true
	}
	return nil, false
}
