package salt

import (
	"maps"
	"slices"

	"github.com/corpus-agent/corpus-agent/state/jinja"
	"github.com/corpus-agent/corpus-agent/state/value"
)

func raise(c *jinja.Call) (any, error) {
	if len(c.Args) != 1 {
		return nil, typeError("raise() takes one argument, the message")
	}
	message, err := c.Str(0)
	if err != nil {
		return nil, err
	}
	return nil, &jinja.Failure{Class: "TemplateError", Message: message}
}

// odict returns an ordered dict of a mapping or pairs, and of keyword arguments.
func odict(c *jinja.Call) (any, error) {
	m := value.NewMap()
	update, err := c.GetAttr(m, "update")
	if err != nil {
		return nil, err
	}
	_, err = c.Invoke(update, c.Args, c.Kwargs)
	return m, err
}

// showFullContext returns all variables of the template; values that are not plain are converted to text.
func showFullContext(c *jinja.Call) (any, error) {
	all := c.Variables()
	m := value.NewMap()
	for _, name := range slices.Sorted(maps.Keys(all)) {
		v := all[name]
		if o, ok := v.(value.Object); ok {
			v = o.PyRepr()
		}
		m.Set(name, v)
	}
	return m, nil
}

func typeError(message string) error  { return &jinja.Failure{Class: "TypeError", Message: message} }
func valueError(message string) error { return &jinja.Failure{Class: "ValueError", Message: message} }
