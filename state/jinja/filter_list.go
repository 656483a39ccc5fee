package jinja

import (
	"math/rand/v2"
	"slices"

	"github.com/corpus-agent/corpus-agent/state/value"
)

func attrFilter(c *Call) (any, error) {
	name, err := c.Str(1)
	if err != nil {
		return nil, err
	}
	if err := refused(c.Args[0]); err != nil {
		return nil, err
	}
	v, found, err := c.f.attribute(c.Args[0], name)
	if err == nil && !found {
		v = c.f.undefinedOf(c.Args[0], name)
	}
	return v, err
}

func defaultFilter(c *Call) (any, error) {
	if isUndefined(c.Args[0]) {
		return c.Args[1], nil
	}
	boolean, err := c.Bool(2)
	if err != nil || !boolean {
		return c.Args[0], err
	}
	if value.Truth(c.Args[0]) {
		return c.Args[0], nil
	}
	return c.Args[1], nil
}

func lengthFilter(c *Call) (any, error) { return anyOf(c.Length(0)) }

// anyOf converts a result to any.
func anyOf[T any](v T, err error) (any, error) { return v, err }

func listFilter(c *Call) (any, error) {
	items, err := c.Items(0)
	return &value.List{Items: items}, err
}

func firstFilter(c *Call) (any, error) {
	next, err := c.Iterate(0)
	if err != nil {
		return nil, err
	}
	v, ok, err := next()
	if err == nil && !ok {
		v = c.Undefined("No first item, sequence was empty.")
	}
	return v, err
}

func lastFilter(c *Call) (any, error) {
	items, err := c.reversible(0)
	if err != nil {
		return nil, err
	}
	if len(items) == 0 {
		return c.Undefined("No last item, sequence was empty."), nil
	}
	return items[len(items)-1], nil
}

// reversible returns the items of a value that Python's reversed accepts.
func (c *Call) reversible(i int) ([]any, error) {
	switch v := c.Args[i].(type) {
	case *iterator:
		return nil, typeError("'" + v.pyType + "' object is not reversible")
	case string, *value.List, value.Tuple, *value.Map, *rangeObject, *dictView, *namedTuple, *Undefined, []byte:
		return c.Items(i)
	}
	return nil, typeError("'" + value.TypeName(c.Args[i]) + "' object is not reversible")
}

func reverseFilter(c *Call) (any, error) {
	if err := refused(c.Args[0]); err != nil {
		return nil, err
	}
	items, err := c.Items(0)
	if isKind(err, "TypeError") {
		err = raise("FilterArgumentError", "argument must be iterable")
	}
	if err != nil {
		return nil, err
	}
	slices.Reverse(items)
	switch v := c.Args[0].(type) {
	case string:
		v2, err := value.Slice(v, nil, nil, -1)
		return v2, err
	case *iterator:
		return &value.List{Items: items}, nil
	}
	return newIterator("list_reverseiterator", iterateItems(items)), nil
}

func joinFilter(c *Call) (any, error) {
	items, err := c.Items(0)
	if err != nil {
		return nil, err
	}
	sep, err := c.Str(1)
	if err != nil {
		return nil, err
	}
	get := c.attribute(c.Args[2], nil, false)
	texts := make([]string, len(items))
	for i, item := range items {
		v, err := get(item)
		if err != nil {
			return nil, err
		}
		if texts[i], err = value.ToStr(v); err != nil {
			return nil, err
		}
	}
	return c.joined(texts, sep)
}

func randomFilter(c *Call) (any, error) {
	n, err := c.Length(0)
	if err != nil {
		return nil, err
	}
	if n == 0 {
		return c.Undefined("No random item, sequence was empty."), nil
	}
	return c.GetItem(c.Args[0], rand.IntN(n))
}

func sumFilter(c *Call) (any, error) {
	items, err := c.Items(0)
	if err != nil {
		return nil, err
	}
	get := c.attribute(c.Args[1], nil, false)
	total := c.Args[2]
	if _, text := total.(string); text {
		return nil, typeError("sum() can't sum strings [use ''.join(seq) instead]")
	}
	for _, item := range items {
		v, err := get(item)
		if err != nil {
			return nil, err
		}
		if total, err = c.f.arithmetic(value.Add, total, v); err != nil {
			return nil, err
		}
	}
	return total, nil
}

func minFilter(c *Call) (any, error) {
	return c.extreme(func(a, b any) (bool, error) { return c.f.ordered(a, b, "<", isNegative) })
}

func maxFilter(c *Call) (any, error) {
	return c.extreme(func(a, b any) (bool, error) { return c.f.ordered(a, b, ">", isPositive) })
}

func isNegative(c int) bool { return c < 0 }

func isPositive(c int) bool { return c > 0 }

func (c *Call) extreme(better func(a, b any) (bool, error)) (any, error) {
	items, err := c.Items(0)
	if err != nil {
		return nil, err
	}
	if len(items) == 0 {
		return c.Undefined("No aggregated item, sequence was empty."), nil
	}
	ignoreCase, err := c.caseIgnored(1)
	if err != nil {
		return nil, err
	}
	get := c.attribute(c.Args[2], nil, ignoreCase)
	best, err := get(items[0])
	found := items[0]
	for _, item := range items[1:] {
		if err != nil {
			break
		}
		var key any
		if key, err = get(item); err == nil {
			var yes bool
			if yes, err = better(key, best); yes {
				best, found = key, item
			}
		}
	}
	return found, err
}

func uniqueFilter(c *Call) (any, error) {
	ignoreCase, err := c.caseIgnored(1)
	if err != nil {
		return nil, err
	}
	get := c.attribute(c.Args[2], nil, ignoreCase)
	seen := value.NewMap()
	return c.lazily(0, func(next func() (any, bool, error)) (any, bool, error) {
		for {
			item, ok, err := next()
			if !ok || err != nil {
				return nil, false, err
			}
			key, err := get(item)
			if err == nil {
				err = strict(key)
			}
			if err != nil {
				return nil, false, err
			}
			taken, err := seen.Insert(plainTuple(key), nil)
			if err != nil {
				return nil, false, err
			}
			if !taken {
				return item, true, c.f.r.charge(32)
			}
			if err := c.Work(1); err != nil {
				return nil, false, err
			}
		}
	}), nil
}
