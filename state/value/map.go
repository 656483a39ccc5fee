package value

import "iter"

// Map is a Python dict: it keeps the order in which keys were added, and it is a reference. The zero Map is empty and
// ready to use; a nil *Map can be read.
//
// Almost every key is a string, and almost every Map is small. So string keys have separate methods that cannot fail,
// and the index is built only for a Map that is too large to scan.
//
// Salt has two kinds of mappings, and writes only one of them sorted as YAML: the plain dicts that templates create.
// Mappings of SLS files are of the other kind.
type Map struct {
	entries []entry
	index   map[any]int // by normal key; nil for a small Map
	dead    int         // entries that were deleted
	plain   bool
}

// entry is a key, as it was set, and its value.
type entry struct{ key, value any }

// deleted takes the place of a deleted key.
type deleted struct{}

func (e *entry) dead() bool {
	_, dead := e.key.(deleted)
	return dead
}

// scanLimit is the number of entries up to which a scan is faster than a Go map.
const scanLimit = 16

// NewMap returns a Map of alternating string keys and values.
func NewMap(pairs ...any) *Map {
	m := &Map{}
	for i := 0; i+1 < len(pairs); i += 2 {
		_ = pairs[i].(string) // any other key is a mistake of the caller
		m.set(pairs[i], pairs[i], pairs[i+1])
	}
	return m
}

// MakeMap returns an empty Map with room for n keys.
func MakeMap(n int) *Map {
	m := &Map{entries: make([]entry, 0, n)}
	if n > scanLimit {
		m.index = make(map[any]int, n)
	}
	return m
}

// Plain marks the mapping as a plain dict and returns it.
func (m *Map) Plain() *Map {
	m.plain = true
	return m
}

// IsPlain reports whether the mapping is a plain dict.
func (m *Map) IsPlain() bool { return m != nil && m.plain }

// Len returns the number of keys.
func (m *Map) Len() int {
	if m == nil {
		return 0
	}
	return len(m.entries) - m.dead
}

// Get returns the value of a string key.
func (m *Map) Get(key string) (any, bool) {
	if i := m.findName(key); i >= 0 {
		return m.entries[i].known(), true
	}
	return nil, false
}

// Value returns the value of a string key, or nil.
func (m *Map) Value(key string) any {
	v, _ := m.Get(key)
	return v
}

// Has reports whether there is such a string key.
func (m *Map) Has(key string) bool { return m.findName(key) >= 0 }

// Set sets a string key to a value; a new key is added at the end.
func (m *Map) Set(key string, v any) { m.set(key, key, v) }

// Delete removes a string key and reports whether it was there.
func (m *Map) Delete(key string) bool { return m.remove(key) }

// put sets a key of another Map, which is hashable.
func (m *Map) put(key, v any) {
	norm, _ := normal(key)
	m.set(key, norm, v)
}

func (m *Map) set(key, norm, v any) {
	if i := m.find(norm); i >= 0 {
		m.entries[i].value = v
		return
	}
	m.add(key, norm, v)
}

func (m *Map) add(key, norm, v any) {
	m.entries = append(m.entries, entry{key: key, value: v})
	if m.index != nil {
		m.index[norm] = len(m.entries) - 1
	} else if len(m.entries) > scanLimit {
		m.reindex()
	}
}

func (m *Map) remove(norm any) bool {
	i := m.find(norm)
	if i < 0 {
		return false
	}
	m.entries[i] = entry{key: deleted{}}
	delete(m.index, norm)
	if m.dead++; m.dead > scanLimit && m.dead > len(m.entries)/2 {
		m.compact()
	}
	return true
}

func (m *Map) compact() {
	live := make([]entry, 0, m.Len())
	for _, e := range m.entries {
		if !e.dead() {
			live = append(live, e)
		}
	}
	m.entries, m.dead = live, 0
	m.reindex()
}

func (m *Map) reindex() {
	m.index = nil
	if len(m.entries) <= scanLimit {
		return
	}
	m.index = make(map[any]int, 2*len(m.entries))
	for i := range m.entries {
		if norm, err := normal(m.entries[i].key); err == nil {
			m.index[norm] = i
		}
	}
}

// All yields keys and values in order. The Map may be changed meanwhile: keys that are added or deleted during the
// iteration may or may not be yielded.
func (m *Map) All() iter.Seq2[any, any] {
	return func(yield func(any, any) bool) {
		if m == nil {
			return
		}
		entries := m.entries
		for i := range entries {
			if e := &entries[i]; !e.dead() && !yield(e.key, e.known()) {
				return
			}
		}
	}
}

// Keys returns the keys in order.
func (m *Map) Keys() []any {
	keys := make([]any, 0, m.Len())
	for _, e := range m.live() {
		keys = append(keys, e.key)
	}
	return keys
}

// Names returns the string keys in order and leaves out the others.
func (m *Map) Names() []string {
	names := make([]string, 0, m.Len())
	for _, e := range m.live() {
		if s, ok := e.key.(string); ok {
			names = append(names, s)
		}
	}
	return names
}

// Clone returns a shallow copy: the same values under the same keys.
func (m *Map) Clone() *Map {
	c := &Map{plain: m.IsPlain()}
	c.Update(m)
	return c
}

// Update sets every key of from in m.
func (m *Map) Update(from *Map) {
	for _, e := range from.live() {
		m.put(e.key, e.value)
	}
}

// Clear removes every key.
func (m *Map) Clear() { *m = Map{plain: m.plain} }
