package jinja

import (
	"github.com/corpus-agent/corpus-agent/state/value"
)

// callFilter calls a filter by its name.
func (c *Call) callFilter(name any, args []any, kwargs *value.Map) (any, error) {
	text, _ := name.(string)
	f, ok := c.f.r.env.filters[text]
	if !ok {
		return nil, c.noSuch("filter", name)
	}
	return c.f.applyFilter(text, f, args, kwargs, c.at)
}

func (c *Call) callTest(name any, args []any, kwargs *value.Map) (bool, error) {
	text, _ := name.(string)
	t, ok := c.f.r.env.tests[text]
	if !ok {
		return false, c.noSuch("test", name)
	}
	if err := c.Work(1); err != nil {
		return false, err
	}
	if err := c.f.weighTexts(args); err != nil {
		return false, err
	}
	if err := c.f.weighTexts(args); err != nil {
		return false, err
	}
	return t(&Call{Args: args, Kwargs: kwargs, f: c.f, at: c.at})
}

func (c *Call) noSuch(what string, name any) error {
	message := "No " + what + " named " + value.Repr(name) + "."
	if u, ok := name.(*Undefined); ok {
		message += " (" + u.text() + "; did you forget to quote the callable name?)"
	}
	return templateError(message)
}

// withFirst puts an item before other arguments.
func withFirst(item any, rest []any) []any { return append([]any{item}, rest...) }

// copied returns a copy of keyword arguments, which a callee may change.
func copied(kwargs *value.Map) *value.Map {
	if kwargs.Len() == 0 {
		return nil
	}
	return kwargs.Clone()
}

func mapFilter(c *Call) (any, error) {
	if len(c.Args) == 0 {
		return nil, typeError("map() missing a required argument: 'value'")
	}
	args := c.Args[1:]
	var transform getter
	return c.lazilyIfTrue(func(next func() (any, bool, error)) (any, bool, error) {
		if transform == nil {
			var err error
			if transform, err = c.mapper(args); err != nil {
				return nil, false, err
			}
		}
		item, ok, err := next()
		if !ok || err != nil {
			return nil, false, err
		}
		v, err := transform(item)
		if err == nil {
			err = c.Work(1)
		}
		return v, err == nil, err
	}), nil
}

// lazilyIfTrue does the same as lazily for the first argument. If that is false, the generator has no items.
func (c *Call) lazilyIfTrue(step func(next func() (any, bool, error)) (any, bool, error)) any {
	source := c.Args[0]
	var items any
	return c.Generator(func() (any, bool, error) {
		if items == nil {
			holds, err := truth(source)
			if !holds || err != nil {
				return nil, false, err
			}
			items = c.lazily(0, step)
		}
		return items.(*iterator).next()
	})
}

// mapper returns the function that the filter map applies to every item: it looks up an attribute, or calls a filter.
func (c *Call) mapper(args []any) (getter, error) {
	if attr, ok := c.Kwargs.Get("attribute"); ok && len(args) == 0 {
		fallback := c.Kwargs.Value("default")
		for _, name := range c.Kwargs.Names() {
			if name != "attribute" && name != "default" {
				return nil, raise("FilterArgumentError", "Unexpected keyword argument "+value.Repr(name))
			}
		}
		return c.attribute(attr, fallback, false), nil
	}
	if len(args) == 0 {
		return nil, raise("FilterArgumentError", "map requires a filter argument")
	}
	return func(item any) (any, error) {
		return c.callFilter(args[0], withFirst(item, args[1:]), copied(c.Kwargs))
	}, nil
}

// selecting returns a filter that keeps the items for which a test is true, or false if keep is false.
func selecting(name string, byAttribute, keep bool) Filter {
	return func(c *Call) (any, error) {
		if len(c.Args) == 0 {
			return nil, typeError(name + "() missing a required argument: 'value'")
		}
		args := c.Args[1:]
		var test func(item any) (bool, error)
		return c.lazilyIfTrue(func(next func() (any, bool, error)) (any, bool, error) {
			if test == nil {
				var err error
				if test, err = c.selector(args, byAttribute); err != nil {
					return nil, false, err
				}
			}
			for {
				item, ok, err := next()
				if !ok || err != nil {
					return nil, false, err
				}
				holds, err := test(item)
				if err == nil {
					err = c.Work(1)
				}
				if holds == keep || err != nil {
					return item, err == nil, err
				}
			}
		}), nil
	}
}

func (c *Call) selector(args []any, byAttribute bool) (func(item any) (bool, error), error) {
	get := c.attribute(nil, nil, false)
	if byAttribute {
		if len(args) == 0 {
			return nil, raise("FilterArgumentError", "Missing parameter for attribute name")
		}
		get, args = c.attribute(args[0], nil, false), args[1:]
	}
	return func(item any) (bool, error) {
		v, err := get(item)
		switch {
		case err != nil:
			return false, err
		case len(args) == 0:
			return truth(v)
		}
		return c.callTest(args[0], withFirst(v, args[1:]), copied(c.Kwargs))
	}, nil
}
