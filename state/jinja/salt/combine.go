package salt

import (
	"github.com/corpus-agent/corpus-agent/state/jinja"
	"github.com/corpus-agent/corpus-agent/state/value"
)

// indexed returns a generator of tuples, each with the items at indexes. any_ says whether there is a first tuple; next
// changes indexes in place and reports whether there is another one.
func indexed(c *jinja.Call, items []any, indexes []int, any_ bool, next func([]int) bool) any {
	started := false
	return c.Generator(func() (any, bool, error) {
		if !any_ || started && !next(indexes) {
			any_ = false
			return nil, false, nil
		}
		started = true
		row := make(value.Tuple, len(indexes))
		for i, n := range indexes {
			row[i] = items[n]
		}
		return row, true, c.Work(1 + len(row)/8)
	})
}

// sizeArgument returns the second argument, the number of items of each tuple, or otherwise if it is None.
func sizeArgument(c *jinja.Call, otherwise int) (int, error) {
	if c.Args[1] == nil {
		return otherwise, nil
	}
	r, err := c.Int(1)
	if err == nil && r < 0 {
		err = valueError("r must be non-negative")
	}
	const longest = 1 << 16
	if err == nil && r > longest {
		err = valueError("r is too big")
	}
	return r, err
}

func combinations(repeat bool) func(c *jinja.Call) (any, error) {
	return func(c *jinja.Call) (any, error) {
		items, err := c.Items(0)
		if err != nil {
			return nil, err
		}
		r, err := sizeArgument(c, len(items))
		if err != nil {
			return nil, err
		}
		indexes := make([]int, r)
		for i := range indexes {
			if !repeat {
				indexes[i] = i
			}
		}
		possible := r <= len(items) || repeat && len(items) > 0
		return indexed(c, items, indexes, possible, func(at []int) bool {
			for i := len(at) - 1; i >= 0; i-- {
				last := len(items) - 1
				if !repeat {
					last = len(items) - len(at) + i
				}
				if at[i] == last {
					continue
				}
				at[i]++
				for j := i + 1; j < len(at); j++ {
					at[j] = at[i]
					if !repeat {
						at[j] = at[j-1] + 1
					}
				}
				return true
			}
			return false
		}), nil
	}
}

func permutations(c *jinja.Call) (any, error) {
	items, err := c.Items(0)
	if err != nil {
		return nil, err
	}
	r, err := sizeArgument(c, len(items))
	if err != nil {
		return nil, err
	}
	indexes := make([]int, r)
	used := make([]bool, max(len(items), r))
	for i := range indexes {
		indexes[i], used[i] = i, true
	}
	return indexed(c, items, indexes, r <= len(items), func(at []int) bool {
		for i := len(at) - 1; i >= 0; i-- {
			used[at[i]] = false
			if n := free(used, at[i]+1, len(items)); n >= 0 {
				at[i], used[n] = n, true
				for j := i + 1; j < len(at); j++ {
					at[j] = free(used, 0, len(items))
					used[at[j]] = true
				}
				return true
			}
		}
		return false
	}), nil
}

// free returns the first unused index, starting at from, or -1.
func free(used []bool, from, n int) int {
	for i := from; i < n; i++ {
		if !used[i] {
			return i
		}
	}
	return -1
}

func product(c *jinja.Call) (any, error) {
	repeat := 1
	if v, ok := c.Kwargs.Get("repeat"); ok {
		n, err := value.AsIndex(v)
		if err != nil {
			return nil, err
		}
		const most = 64
		if repeat = n; n < 0 || n > most {
			return nil, valueError("repeat argument cannot be negative or so big")
		}
	}
	var lists [][]any
	for range repeat {
		for i := range c.Args {
			items, err := c.Items(i)
			if err != nil {
				return nil, err
			}
			lists = append(lists, items)
		}
	}
	at := make([]int, len(lists))
	done := false
	for _, l := range lists {
		done = done || len(l) == 0
	}
	return c.Generator(func() (any, bool, error) {
		if done {
			return nil, false, nil
		}
		row := make(value.Tuple, len(lists))
		for i, l := range lists {
			row[i] = l[at[i]]
		}
		done = !count(at, lists)
		return row, true, c.Work(1 + len(row)/8)
	}), nil
}

// count advances the positions in lists as the digits of a number. It returns false after the last.
func count(at []int, lists [][]any) bool {
	for i := len(at) - 1; i >= 0; i-- {
		if at[i]++; at[i] < len(lists[i]) {
			return true
		}
		at[i] = 0
	}
	return false
}
