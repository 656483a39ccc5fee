package value

import (
	"iter"
	"sync"
)

// SetLater sets a string key to a value that is expensive to compute: work runs once, when the value is read, by its
// key or by iteration. Clone, Update, Copy, Keys and Has do not run it.
func (m *Map) SetLater(key string, work func() any) { m.Set(key, &later{work: work}) }

// HasKey does the same as Has for a key of any type. For a list or mapping as key, the error is a *KeyError.
func (m *Map) HasKey(key any) (bool, error) {
	norm, err := normal(key)
	return err == nil && m.find(norm) >= 0, err
}

// later is a value that is computed when it is first read.
type later struct {
	once sync.Once
	work func() any
	v    any
}

func (l *later) value() any {
	l.once.Do(func() { l.v = l.work() })
	return l.v
}

// known returns the value of the entry, and computes it first if it is deferred.
func (e *entry) known() any {
	if l, ok := e.value.(*later); ok {
		return l.value()
	}
	return e.value
}

// live yields the entries without computing deferred values.
func (m *Map) live() iter.Seq2[int, entry] {
	return func(yield func(int, entry) bool) {
		if m == nil {
			return
		}
		for i := range m.entries {
			if e := m.entries[i]; !e.dead() && !yield(i, e) {
				return
			}
		}
	}
}
