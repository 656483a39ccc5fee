package jinja

import (
	"context"
	"fmt"

	"github.com/corpus-agent/corpus-agent/state/value"
)

// maxRange is the maximum length of a range, as in Jinja2's sandbox.
const maxRange = 100_000

// builtinGlobals returns the functions that every template has.
func builtinGlobals() map[string]any {
	return map[string]any{
		"range":     &builtin{"range", rangeGlobal},
		"dict":      &builtin{"dict", dictGlobal},
		"lipsum":    &builtin{"lipsum", lipsumGlobal},
		"cycler":    &builtin{"cycler", cyclerGlobal},
		"joiner":    &builtin{"joiner", joinerGlobal},
		"namespace": &builtin{"namespace", namespaceGlobal},
	}
}

func rangeGlobal(c *Call) (any, error) {
	if c.Kwargs.Len() > 0 {
		return nil, typeError("range() takes no keyword arguments")
	}
	if len(c.Args) < 1 || len(c.Args) > 3 {
		return nil, typeError("range expected 1 to 3 arguments, got " + itoa(len(c.Args)))
	}
	n := [3]int{0, 0, 1}
	for i := range c.Args {
		v, err := c.Int(i)
		if err != nil {
			return nil, err
		}
		n[i] = v
	}
	if len(c.Args) == 1 {
		n[0], n[1] = 0, n[0]
	}
	r, err := newRange(n[0], n[1], n[2])
	if err != nil {
		return nil, err
	}
	if r.count > maxRange || r.count < 0 {
		return nil, raise("OverflowError", fmt.Sprintf("Range too big. The sandbox blocks ranges larger than MAX_RANGE (%d).",
			maxRange))
	}
	return r, nil
}

// newDict implements Python's dict(...).
func (c *Call) newDict(name string) (*value.Map, error) {
	if len(c.Args) > 1 {
		return nil, typeError(name + " expected at most 1 argument, got " + itoa(len(c.Args)))
	}
	m := value.NewMap().Plain()
	if len(c.Args) == 1 {
		if err := c.f.updateMap(m, c.Args[0]); err != nil {
			return nil, err
		}
	}
	m.Update(c.Kwargs)
	return m, c.f.r.charge(32 * m.Len())
}

func dictGlobal(c *Call) (any, error) { return c.newDict("dict") }

func namespaceGlobal(c *Call) (any, error) {
	m, err := c.newDict("dict")
	return &namespace{m}, err
}

func lipsumGlobal(*Call) (any, error) {
	return nil, templateError("lipsum() is not supported: states are no place for random text")
}

// cycler returns its items in turn, repeatedly.
type cycler struct {
	object
	items []any
	at    int
}

func cyclerGlobal(c *Call) (any, error) {
	if len(c.Args) == 0 {
		return nil, raise("RuntimeError", "at least one item has to be provided")
	}
	return &cycler{object{"jinja2.utils.Cycler"}, c.Args, 0}, nil
}

// GetAttr returns an attribute: current, items or pos.
func (y *cycler) GetAttr(_ context.Context, name string) (any, bool, error) {
	switch name {
	case "current":
		return y.items[y.at], true, nil
	case "items":
		return value.Tuple(y.items), true, nil
	case "pos":
		return y.at, true, nil
	}
	return nil, false, nil
}

func cyclerMethods() map[string]*method {
	return map[string]*method{
		"next": {call: func(_ *Call, self any) (any, error) {
			y := self.(*cycler)
			v := y.items[y.at]
			y.at = (y.at + 1) % len(y.items)
			return v, nil
		}},
		"reset": {call: func(_ *Call, self any) (any, error) {
			self.(*cycler).at = 0
			return nil, nil
		}},
	}
}

// joiner returns nothing on the first call, and a separator on later ones.
type joiner struct {
	object
	sep  any
	used bool
}

func joinerGlobal(c *Call) (any, error) {
	if err := c.bind("joiner", []Param{Opt("sep", ", ")}); err != nil {
		return nil, err
	}
	return &joiner{object: object{"jinja2.utils.Joiner"}, sep: c.Args[0]}, nil
}

// Call returns the separator.
func (j *joiner) Call(c *Call) (any, error) {
	if err := c.bind("joiner", nil); err != nil {
		return nil, err
	}
	if !j.used {
		j.used = true
		return "", nil
	}
	return j.sep, nil
}
