package jinja

import (
	"slices"

	"github.com/corpus-agent/corpus-agent/state/value"
)

func listMethod(fn func(c *Call, l *value.List) (any, error), params ...Param) *method {
	return &method{params: params, call: func(c *Call, self any) (any, error) { return fn(c, self.(*value.List)) }}
}

func listMethods() map[string]*method {
	return map[string]*method{
		"append": listMethod(listAppend, Arg("object")),
		"clear":  listMethod(func(_ *Call, l *value.List) (any, error) { l.Items = nil; return nil, nil }),
		"copy": listMethod(func(_ *Call, l *value.List) (any, error) {
			return value.NewList(slices.Clone(l.Items)...), nil
		}),
		"count":  listMethod(func(c *Call, l *value.List) (any, error) { return c.count(l.Items) }, Arg("value")),
		"extend": listMethod(listExtend, Arg("iterable")),
		"index": listMethod(func(c *Call, l *value.List) (any, error) {
			return c.index(l.Items, "list")
		}, Arg("value"), Opt("start", 0), Opt("stop", nil)),
		"insert":  listMethod(listInsert, Arg("index"), Arg("object")),
		"pop":     listMethod(listPop, Opt("index", -1)),
		"remove":  listMethod(listRemove, Arg("value")),
		"reverse": listMethod(func(_ *Call, l *value.List) (any, error) { slices.Reverse(l.Items); return nil, nil }),
		"sort":    listMethod(listSort, Opt("key", nil), Opt("reverse", false)),
	}
}

func listAppend(c *Call, l *value.List) (any, error) {
	l.Append(c.Args[0])
	return nil, c.f.r.charge(16)
}

func listExtend(c *Call, l *value.List) (any, error) {
	items, err := c.Items(0)
	if err != nil {
		return nil, err
	}
	l.Items = append(l.Items, items...)
	return nil, c.f.r.charge(16 * len(items))
}

// clampedIndex returns argument i as an index of a list of n items, limited as for list.insert.
func (c *Call) clampedIndex(i, n int) (int, error) {
	at, err := c.Int(i)
	if at < 0 {
		at += n
	}
	return max(0, min(at, n)), err
}

func listInsert(c *Call, l *value.List) (any, error) {
	at, err := c.clampedIndex(0, len(l.Items))
	if err != nil {
		return nil, err
	}
	l.Items = slices.Insert(l.Items, at, c.Args[1])
	return nil, c.f.r.charge(16)
}

func listPop(c *Call, l *value.List) (any, error) {
	at, err := c.Int(0)
	if err != nil {
		return nil, err
	}
	if len(l.Items) == 0 {
		return nil, value.Raise("IndexError", "pop from empty list")
	}
	if at < 0 {
		at += len(l.Items)
	}
	if at < 0 || at >= len(l.Items) {
		return nil, value.Raise("IndexError", "pop index out of range")
	}
	v := l.Items[at]
	l.Items = slices.Delete(l.Items, at, at+1)
	return v, nil
}

func (c *Call) count(items []any) (any, error) {
	n := 0
	for _, item := range items {
		found, err := c.f.same(item, c.Args[0])
		if err != nil {
			return nil, err
		}
		if found {
			n++
		}
	}
	return n, nil
}

func (c *Call) index(items []any, typeName string) (any, error) {
	start, err := c.clampedIndex(1, len(items))
	if err != nil {
		return nil, err
	}
	stop := len(items)
	if c.Args[2] != nil {
		if stop, err = c.clampedIndex(2, len(items)); err != nil {
			return nil, err
		}
	}
	for i := start; i < stop; i++ {
		if found, err := c.f.same(items[i], c.Args[0]); found || err != nil {
			return i, err
		}
	}
	return nil, value.Raise("ValueError", "%s is not in %s", value.Repr(c.Args[0]), typeName)
}

func listRemove(c *Call, l *value.List) (any, error) {
	for i, item := range l.Items {
		found, err := c.f.same(item, c.Args[0])
		if err != nil {
			return nil, err
		}
		if found {
			l.Items = slices.Delete(l.Items, i, i+1)
			return nil, nil
		}
	}
	return nil, value.Raise("ValueError", "list.remove(x): x not in list")
}

func listSort(c *Call, l *value.List) (any, error) {
	reverse, err := c.Bool(1)
	if err != nil {
		return nil, err
	}
	key := func(v any) (any, error) { return v, nil }
	if callee := c.Args[0]; callee != nil {
		key = func(v any) (any, error) { return c.Invoke(callee, []any{v}, nil) }
	}
	return nil, c.sort(l.Items, key, reverse)
}

// keyed is an item with its sort key.
type keyed struct{ key, item any }

// sort sorts items in place by the results of key.
func (c *Call) sort(items []any, key func(any) (any, error), reverse bool) error {
	if err := c.Work(len(items)); err != nil {
		return err
	}
	pairs := make([]any, len(items))
	for i, item := range items {
		k, err := key(item)
		if err == nil {
			err = refusedInside(k)
		}
		if err != nil && len(items) > 1 {
			return err
		}
		pairs[i] = &keyed{plainTuple(k), item}
	}
	if err := c.weighSort(pairs); err != nil {
		return err
	}
	if err := value.SortBy(pairs, func(p any) any { return p.(*keyed).key }, reverse); err != nil {
		return err
	}
	for i, p := range pairs {
		items[i] = p.(*keyed).item
	}
	return nil
}

// refusedInside returns the error for an undefined value, or for one inside a list of keys.
func refusedInside(v any) error {
	if l, ok := v.(*value.List); ok {
		for _, item := range l.Items {
			if err := refused(item); err != nil {
				return err
			}
		}
	}
	return refused(v)
}

func tupleMethods() map[string]*method {
	return map[string]*method{
		"count": {params: []Param{Arg("value")}, call: func(c *Call, self any) (any, error) {
			return c.count(plainTuple(self).(value.Tuple))
		}},
		"index": {params: []Param{Arg("value"), Opt("start", 0), Opt("stop", nil)},
			call: func(c *Call, self any) (any, error) {
				return c.index(plainTuple(self).(value.Tuple), "tuple")
			}},
	}
}
