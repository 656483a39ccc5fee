package jinja

import (
	"strings"

	"github.com/corpus-agent/corpus-agent/state/value"
)

// mapping returns an argument that must be a dict.
func (c *Call) mapping(i int) (*value.Map, error) {
	if m, ok := c.Args[i].(*value.Map); ok {
		return m, nil
	}
	if err := refused(c.Args[i]); err != nil {
		return nil, err
	}
	return nil, raise("AttributeError", "'"+value.TypeName(c.Args[i])+"' object has no attribute 'items'")
}

func dictSortFilter(c *Call) (any, error) {
	by, _ := c.Args[2].(string)
	if by != "key" && by != "value" {
		return nil, raise("FilterArgumentError", `You can only sort by either "key" or "value"`)
	}
	m, err := c.mapping(0)
	if err != nil {
		return nil, err
	}
	ignoreCase, err := c.caseIgnored(1)
	if err != nil {
		return nil, err
	}
	reverse, err := c.Bool(3)
	if err != nil {
		return nil, err
	}
	items := itemsOf(m).items()
	err = c.sort(items, func(item any) (any, error) {
		v := item.(value.Tuple)[0]
		if by == "value" {
			v = item.(value.Tuple)[1]
		}
		if ignoreCase {
			v = withoutCase(v)
		}
		return v, nil
	}, reverse)
	return value.NewList(items...), err
}

func sortFilter(c *Call) (any, error) {
	items, err := c.Items(0)
	if err != nil {
		return nil, err
	}
	reverse, err := c.Bool(1)
	if err != nil {
		return nil, err
	}
	ignoreCase, err := c.caseIgnored(2)
	if err != nil {
		return nil, err
	}
	err = c.sort(items, c.attributes(c.Args[3], ignoreCase), reverse)
	return &value.List{Items: items}, err
}

// attributes returns a getter for several attributes that are separated by commas.
func (c *Call) attributes(attr any, ignoreCase bool) getter {
	var getters []getter
	if name, ok := attr.(string); ok {
		for part := range strings.SplitSeq(name, ",") {
			getters = append(getters, c.attribute(part, nil, ignoreCase))
		}
	} else {
		getters = append(getters, c.attribute(attr, nil, ignoreCase))
	}
	return func(item any) (any, error) {
		keys := make([]any, len(getters))
		for i, get := range getters {
			var err error
			if keys[i], err = get(item); err != nil {
				return nil, err
			}
		}
		return &value.List{Items: keys}, nil
	}
}

func groupByFilter(c *Call) (any, error) {
	items, err := c.Items(0)
	if err != nil {
		return nil, err
	}
	ignoreCase, err := c.caseIgnored(3)
	if err != nil {
		return nil, err
	}
	sortKey := c.attribute(c.Args[1], c.Args[2], ignoreCase)
	shownKey := c.attribute(c.Args[1], c.Args[2], false)
	if err := c.sort(items, sortKey, false); err != nil {
		return nil, err
	}
	groups := value.NewList()
	var group *value.List
	var last any
	for i, item := range items {
		key, err := sortKey(item)
		if err != nil {
			return nil, err
		}
		same, err := c.f.equal(key, last)
		if err != nil {
			return nil, err
		}
		if i == 0 || !same {
			shown, err := shownKey(item)
			if err != nil {
				return nil, err
			}
			group = value.NewList()
			groups.Append(&namedTuple{value.Tuple{shown, group}, []string{"grouper", "list"}})
		}
		last = key
		group.Append(item)
	}
	return groups, nil
}

func itemsFilter(c *Call) (any, error) {
	source := c.Args[0]
	var next func() (any, bool, error)
	return c.Generator(func() (any, bool, error) {
		if next == nil {
			m, ok := source.(*value.Map)
			switch {
			case isUndefined(source):
				return nil, false, nil
			case !ok:
				return nil, false, typeError("Can only get item pairs from a mapping.")
			}
			next = itemsOf(m).Iterate()
		}
		return next()
	}), nil
}
