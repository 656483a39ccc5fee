package value

import "strings"

// Lookup follows a path such as a:b:0 through mappings and lists, as pillar.get, grains.get and the
// traverse filter do.
//
// In a list, a name finds the first mapping in it that has this key, and a number finds such a key or else an item, a
// negative one from the end. In a mapping, a step that equals no key is tried again as its YAML value: 1 finds the key
// 1, and yes the key True.
func Lookup(v any, path, separator string) (any, bool) {
	for step := range strings.SplitSeq(path, separator) {
		next, ok := into(v, step)
		if !ok {
			return nil, false
		}
		v = next
	}
	return v, true
}

// Follow does the same as Lookup with separate steps, each a string or a number.
func Follow(v any, steps ...any) (any, bool) {
	for _, step := range steps {
		next, ok := into(v, step)
		if !ok {
			return nil, false
		}
		v = next
	}
	return v, true
}

func into(v, step any) (any, bool) {
	switch v := v.(type) {
	case *Map:
		return intoMap(v, step)
	case *List:
		return intoList(v, step)
	case Tuple:
		if n, ok := step.(int); ok {
			item, err := At(v, n)
			return item, err == nil
		}
	}
	return nil, false
}

func intoMap(m *Map, step any) (any, bool) {
	found, ok, err := m.GetKey(step)
	if ok || err != nil {
		return found, ok
	}
	name, ok := step.(string)
	if !ok {
		return nil, false
	}
	if key, typed := plainKey(strings.TrimSpace(name)); typed {
		found, ok, _ = m.GetKey(key)
		return found, ok
	}
	return nil, false
}

// plainKey returns the YAML value of a word, if that is not a string.
func plainKey(word string) (key any, typed bool) {
	switch strings.ToLower(word) {
	case "true", "yes", "on":
		return true, true
	case "false", "no", "off":
		return false, true
	case "null", "none", "~":
		return nil, true
	}
	if !maybeNumber(word) {
		return nil, false
	}
	if n, err := ParseInt(word, 0); err == nil {
		return n, true
	}
	if n, err := ParseInt(word, 10); err == nil {
		return n, true
	}
	if strings.Contains(word, ".") {
		if f, err := ParseFloat(word); err == nil {
			return f, true
		}
	}
	return nil, false
}

func intoList(l *List, step any) (any, bool) {
	index, isIndex := indexOf(step)
	if isIndex {
		step = index
	}
	for _, item := range l.Items {
		if m, ok := item.(*Map); ok {
			if found, ok, _ := m.GetKey(step); ok {
				return found, true
			}
		}
	}
	if !isIndex {
		return nil, false
	}
	item, err := At(l, index)
	return item, err == nil
}

// indexOf reads a step as a number, as int() does.
func indexOf(step any) (int, bool) {
	if s, ok := step.(string); ok && !maybeNumber(StripLeft(s)) {
		return 0, false
	}
	n, err := ToInt(step)
	index, ok := n.(int)
	return index, ok && err == nil
}

// maybeNumber reports whether a word may be a number, so that most words are not parsed.
func maybeNumber(word string) bool {
	return word != "" && strings.IndexByte("0123456789+-.", word[0]) >= 0
}
