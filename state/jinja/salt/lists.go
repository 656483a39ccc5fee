package salt

import (
	"strings"

	"github.com/corpus-agent/corpus-agent/state/jinja"
	"github.com/corpus-agent/corpus-agent/state/value"
)

func listFilters() map[string]jinja.Filter {
	lst := jinja.Arg("lst")
	two := []jinja.Param{jinja.Arg("lst1"), jinja.Arg("lst2")}
	return map[string]jinja.Filter{
		"avg":              jinja.Define("avg", average, lst),
		"compare_lists":    jinja.Define("compare_lists", compareLists, jinja.Opt("old", nil), jinja.Opt("new", nil)),
		"difference":       jinja.Define("difference", difference, two...),
		"exactly_n_true":   jinja.Define("exactly_n_true", exactlyTrue, jinja.Arg("iterable"), jinja.Opt("amount", 1)),
		"exactly_one_true": jinja.Define("exactly_one_true", exactlyTrue, jinja.Arg("iterable"), jinja.Opt("amount", 1)),
		"flatten": jinja.Define("flatten", flatten, jinja.Arg("data"), jinja.Opt("levels", nil),
			jinja.Opt("preserve_nulls", false)),
		"intersect": jinja.Define("intersect", intersect, two...),
		"is_iter":   jinja.Define("is_iter", isIter, jinja.Arg("thing"), jinja.Opt("ignore", nil)),
		"is_list": jinja.Define("is_list", func(c *jinja.Call) (any, error) {
			return isList(c.Args[0]), nil
		}, jinja.Arg("value")),
		"is_sorted":         jinja.Define("is_sorted", isSorted, lst),
		"max":               jinja.Define("max", extreme("max", 1), lst),
		"min":               jinja.Define("min", extreme("min", -1), lst),
		"sequence":          jinja.Define("sequence", sequence, jinja.Arg("data")),
		"sorted_ignorecase": jinja.Define("sorted_ignorecase", sortedIgnoreCase, jinja.Arg("to_sort")),
		"substring_in_list": jinja.Define("substring_in_list", substringInList, jinja.Arg("string_to_search_for"),
			jinja.Arg("list_to_search")),
		"symmetric_difference": jinja.Define("symmetric_difference", symmetricDifference, two...),
		"union":                jinja.Define("union", union, two...),
		"unique":               jinja.Define("unique", unique, jinja.Arg("values")),

		"combinations": jinja.Define("combinations", combinations(false), lst, jinja.Arg("r")),
		"combinations_with_replacement": jinja.Define("combinations_with_replacement", combinations(true), lst,
			jinja.Arg("r")),
		"compress":     jinja.Define("compress", compress, jinja.Arg("data"), jinja.Arg("selectors")),
		"permutations": jinja.Define("permutations", permutations, lst, jinja.Opt("r", nil)),
		"product":      product,
		"zip":          zip,
		"zip_longest":  zip,
	}
}

func isList(v any) bool {
	_, ok := v.(*value.List)
	return ok
}

func sequence(c *jinja.Call) (any, error) {
	switch c.Args[0].(type) {
	case *value.List, value.Tuple, *value.Map:
		return c.Args[0], nil
	}
	return value.NewList(c.Args[0]), nil
}

func isIter(c *jinja.Call) (any, error) {
	if _, text := c.Args[0].(string); text && c.Args[1] == nil {
		return false, nil
	}
	_, err := c.Iterate(0)
	return err == nil, nil
}

func average(c *jinja.Call) (any, error) {
	switch c.Args[0].(type) {
	case *value.List, *value.Map:
	default:
		f, err := value.ToFloat(c.Args[0])
		return f, err
	}
	items, err := c.Items(0)
	if err != nil {
		return nil, err
	}
	total := any(0)
	for _, item := range items {
		if total, err = value.Add(total, item); err != nil {
			return nil, err
		}
	}
	mean, err := value.Div(total, len(items))
	if err != nil {
		return nil, err
	}
	f, err := value.ToFloat(mean)
	return f, err
}

func extreme(name string, sign int) func(c *jinja.Call) (any, error) {
	return func(c *jinja.Call) (any, error) {
		items, err := c.Items(0)
		if err != nil {
			return nil, err
		}
		if len(items) == 0 {
			return nil, valueError(name + "() arg is an empty sequence")
		}
		best := items[0]
		for _, item := range items[1:] {
			order, err := value.Compare(item, best)
			if err != nil {
				return nil, err
			}
			if order*sign > 0 {
				best = item
			}
		}
		return best, nil
	}
}

func isSorted(c *jinja.Call) (any, error) {
	items, err := c.Items(0)
	if err != nil {
		return nil, err
	}
	for i := 1; i < len(items); i++ {
		if order, err := value.Compare(items[i-1], items[i]); order > 0 || err != nil {
			return false, err
		}
	}
	return true, nil
}

func sortedIgnoreCase(c *jinja.Call) (any, error) {
	items, err := c.Items(0)
	if err != nil {
		return nil, err
	}
	for _, item := range items {
		if _, ok := item.(string); !ok {
			return nil, typeError("expected strings, not " + value.TypeName(item))
		}
	}
	err = value.SortBy(items, func(v any) any { return value.Lower(v.(string)) }, false)
	return value.NewList(items...), err
}

func substringInList(c *jinja.Call) (any, error) {
	items, err := c.Items(1)
	if err != nil {
		return nil, err
	}
	for _, item := range items {
		if found, err := c.Contains(item, c.Args[0]); found || err != nil {
			return found, err
		}
	}
	return false, nil
}

// exactlyTrue reports whether exactly the given number of items are true.
func exactlyTrue(c *jinja.Call) (any, error) {
	items, err := c.Items(0)
	if err != nil {
		return nil, err
	}
	amount, err := c.Int(1)
	for _, item := range items {
		if value.Truth(item) {
			amount--
		}
	}
	return amount == 0, err
}

func compareLists(c *jinja.Call) (any, error) {
	a, b, err := both(c)
	if err != nil {
		return nil, err
	}
	added, err := chosen(c, b, c.Args[0], false)
	if err != nil {
		return nil, err
	}
	removed, err := chosen(c, a, c.Args[1], false)
	m := value.NewMap().Plain()
	if len(added) > 0 {
		m.Set("new", value.NewList(added...))
	}
	if len(removed) > 0 {
		m.Set("old", value.NewList(removed...))
	}
	return m, err
}

func flatten(c *jinja.Call) (any, error) {
	levels := -1
	if c.Args[1] != nil {
		var err error
		if levels, err = c.Int(1); err != nil {
			return nil, err
		}
	}
	keepNulls, err := c.Bool(2)
	if err != nil {
		return nil, err
	}
	out := value.NewList()
	return out, flattenInto(c, out, c.Args[0], levels, keepNulls, 0)
}

func flattenInto(c *jinja.Call, out *value.List, v any, levels int, keepNulls bool, depth int) error {
	const deepest = 500
	if depth > deepest {
		return &jinja.Failure{Class: "RecursionError", Message: "Reference cycle detected. Check input list."}
	}
	items, err := itemsOf(c, v)
	if err != nil {
		return err
	}
	for _, item := range items {
		if !keepNulls && (item == nil || item == "None" || item == "null") {
			continue
		}
		if err := c.Work(1); err != nil {
			return err
		}
		if _, text := item.(string); text || levels == 0 || !iterable(c, item) {
			out.Append(item)
			continue
		}
		if err := flattenInto(c, out, item, levels-1, keepNulls, depth+1); err != nil {
			return err
		}
	}
	return nil
}

// itemsOf returns list(v) for a value that is not an argument.
func itemsOf(c *jinja.Call, v any) ([]any, error) { return c.With(v).Items(0) }

func iterable(c *jinja.Call, v any) bool {
	_, err := c.With(v).Iterate(0)
	return err == nil
}

func compress(c *jinja.Call) (any, error) {
	data, selectors, err := both(c)
	if err != nil {
		return nil, err
	}
	kept := value.NewList()
	for i := range min(len(data), len(selectors)) {
		if value.Truth(selectors[i]) {
			kept.Append(data[i])
		}
	}
	return generate(c, kept.Items), nil
}

// generate returns a generator of existing items.
func generate(c *jinja.Call, items []any) any {
	i := 0
	return c.Generator(func() (any, bool, error) {
		if i >= len(items) {
			return nil, false, nil
		}
		i++
		return items[i-1], true, c.Work(1)
	})
}

// zip returns tuples with one item of each argument; zip_longest pads shorter arguments.
func zip(c *jinja.Call) (any, error) {
	fill, longest := c.Kwargs.Get("fillvalue")
	lists := make([][]any, len(c.Args))
	length := -1
	for i := range c.Args {
		var err error
		if lists[i], err = c.Items(i); err != nil {
			return nil, err
		}
		if n := len(lists[i]); length < 0 || longest == (n > length) {
			length = n
		}
	}
	var rows []any
	for i := range max(0, length) {
		row := make(value.Tuple, len(lists))
		for j, l := range lists {
			row[j] = fill
			if i < len(l) {
				row[j] = l[i]
			}
		}
		rows = append(rows, row)
	}
	return generate(c, rows), c.Work(len(rows) * len(lists) / 8)
}

// describe returns the name of a value's type for messages.
func describe(v any) string { return strings.TrimSpace(value.TypeName(v)) }
