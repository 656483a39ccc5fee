package salt

import (
	"github.com/corpus-agent/corpus-agent/state/jinja"
	"github.com/corpus-agent/corpus-agent/state/value"
)

// uniqueItems keeps the first of equal items.
func uniqueItems(c *jinja.Call, items []any) (any, error) {
	seen := value.NewMap()
	out := value.NewList()
	for i, item := range items {
		if taken, err := seen.Insert(item, nil); err == nil {
			if !taken {
				out.Append(item)
			}
			continue
		}
		if err := c.Work(1 + i/16); err != nil { // lists and mappings have to be compared one by one
			return nil, err
		}
		found, err := c.Contains(out, item)
		if err != nil {
			return nil, err
		}
		if !found {
			out.Append(item)
		}
	}
	return out, nil
}

func unique(c *jinja.Call) (any, error) {
	items, err := c.Items(0)
	if err != nil {
		return nil, err
	}
	return uniqueItems(c, items)
}

// both returns the items of the first two arguments.
func both(c *jinja.Call) (a, b []any, err error) {
	if a, err = c.Items(0); err == nil {
		b, err = c.Items(1)
	}
	return a, b, err
}

func union(c *jinja.Call) (any, error) {
	a, b, err := both(c)
	if err != nil {
		return nil, err
	}
	return uniqueItems(c, append(a, b...))
}

// chosen returns the items that another list contains, or does not contain if have is false.
func chosen(c *jinja.Call, items []any, other any, have bool) ([]any, error) {
	var kept []any
	for _, item := range items {
		found, err := c.Contains(other, item)
		if err != nil {
			return nil, err
		}
		if found == have {
			kept = append(kept, item)
		}
	}
	return kept, nil
}

func intersect(c *jinja.Call) (any, error) { return chosenUnique(c, true) }

func difference(c *jinja.Call) (any, error) { return chosenUnique(c, false) }

func chosenUnique(c *jinja.Call, have bool) (any, error) {
	a, err := c.Items(0)
	if err != nil {
		return nil, err
	}
	if a, err = chosen(c, a, c.Args[1], have); err != nil {
		return nil, err
	}
	return uniqueItems(c, a)
}

func symmetricDifference(c *jinja.Call) (any, error) {
	a, b, err := both(c)
	if err != nil {
		return nil, err
	}
	onlyA, err := chosen(c, a, value.NewList(b...), false)
	if err != nil {
		return nil, err
	}
	onlyB, err := chosen(c, b, value.NewList(a...), false)
	if err != nil {
		return nil, err
	}
	return uniqueItems(c, append(onlyA, onlyB...))
}
