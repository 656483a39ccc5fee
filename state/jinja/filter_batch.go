package jinja

import (
	"slices"

	"github.com/corpus-agent/corpus-agent/state/value"
)

// lazily returns a generator whose items step computes from those of an argument. It does nothing, and cannot fail,
// before the first item is read.
func (c *Call) lazily(i int, step func(next func() (any, bool, error)) (any, bool, error)) any {
	var next func() (any, bool, error)
	source := c.Args[i]
	return c.Generator(func() (any, bool, error) {
		if next == nil {
			var err error
			if next, err = iterate(source); err != nil {
				return nil, false, err
			}
		}
		return step(next)
	})
}

func batchFilter(c *Call) (any, error) {
	size, err := c.Int(1)
	if err != nil {
		return nil, err
	}
	fill := c.Args[2]
	var waiting []any
	return c.lazily(0, func(next func() (any, bool, error)) (any, bool, error) {
		for {
			item, ok, err := next()
			if err != nil {
				return nil, false, err
			}
			if !ok {
				break
			}
			full := len(waiting) == size
			batch := waiting
			if full {
				waiting = nil
			}
			waiting = append(waiting, item)
			if err := c.Work(1); err != nil {
				return nil, false, err
			}
			if full {
				return &value.List{Items: batch}, true, nil
			}
		}
		if len(waiting) == 0 {
			return nil, false, nil
		}
		batch := waiting
		waiting = nil
		for fill != nil && len(batch) < size {
			batch = append(batch, fill)
			if err := c.f.r.charge(16); err != nil {
				return nil, false, err
			}
		}
		return &value.List{Items: batch}, true, nil
	}), nil
}

func sliceFilter(c *Call) (any, error) {
	slicesWanted, err := c.Int(1)
	if err != nil {
		return nil, err
	}
	source, fill := c.Args[0], c.Args[2]
	var items []any
	number, offset := 0, 0
	return c.Generator(func() (any, bool, error) {
		if number == 0 {
			if items, err = c.f.listOf(source); err != nil {
				return nil, false, err
			}
			if slicesWanted == 0 {
				return nil, false, value.Raise("ZeroDivisionError", "integer division or modulo by zero")
			}
		}
		if number >= slicesWanted {
			return nil, false, nil
		}
		size, extra := len(items)/slicesWanted, len(items)%slicesWanted
		start := offset + number*size
		if number < extra {
			offset++
		}
		number++
		part := slices.Clone(items[start : offset+number*size])
		if fill != nil && number > extra {
			part = append(part, fill)
		}
		return &value.List{Items: part}, true, c.Work(1)
	}), nil
}
