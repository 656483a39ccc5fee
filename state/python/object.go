package python

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"github.com/corpus-agent/corpus-agent/state/jinja"
	"github.com/corpus-agent/corpus-agent/state/value"
)

// Object is a value of Python that SLS files do not have, such as a set, a date or an iterator. It prints as in Python,
// and becomes the same object when it is passed back to Python. The worker that has it is asked for its attributes and
// items, and for the results of operators. Another process than the one that made it gets an equal value of a set, a
// date and the like, and, for any other object, a stand-in that prints alike.
type Object struct {
	worker     *Worker
	id         int
	pickled    string // from which Python makes an equal value; "" for an object that is more than a value
	kind       string
	repr, text string
	truth      bool
	items      *value.List // nil if it cannot be iterated over
}

// Collection is an object whose items a template can look at.
type Collection struct{ *Object }

// Function is an object that can be called, such as a method of an object.
type Function struct{ *Object }

// newObject returns an *Object, *Collection or *Function made of the fields of a message: number, type, repr, str,
// truth, items, pickled value, and whether it can be called.
func newObject(fields []any, w *Worker) (any, error) {
	o := &Object{worker: w}
	if len(fields) != 8 {
		return nil, errors.New("a message has an incomplete object")
	}
	var ok [7]bool
	o.id, ok[0] = fields[0].(int)
	o.kind, ok[1] = fields[1].(string)
	repr, err := untag(fields[2], w)
	if err != nil {
		return nil, err
	}
	text, err := untag(fields[3], w)
	if err != nil {
		return nil, err
	}
	o.repr, ok[2] = repr.(string)
	o.text, ok[3] = text.(string)
	o.truth, ok[4] = fields[4].(bool)
	o.pickled, ok[5] = fields[6].(string)
	callable, isBool := fields[7].(bool)
	ok[6] = isBool
	if items, is := fields[5].(*value.List); is {
		o.items = items
		if err := untagItems(items.Items, w); err != nil {
			return nil, err
		}
	}
	for _, fits := range ok {
		if !fits {
			return nil, errors.New("a message has a malformed object")
		}
	}
	if callable {
		return &Function{o}, nil
	}
	if o.items != nil {
		return &Collection{o}, nil
	}
	return o, nil
}

// operate asks the worker for the result of an operation. The answer is a list: it is empty if there is no such
// attribute or item. Objects of a worker that is closed, such as those of grain modules, only print.
func (o *Object) operate(ctx context.Context, sign string, args []any, kwargs *value.Map) (any, bool, error) {
	if o.worker.closed.Load() {
		return o.printed(sign)
	}
	if kwargs == nil {
		kwargs = value.NewMap()
	}
	answer, err := o.worker.Do(ctx, "operate", value.NewMap("sign", sign, "args", value.NewList(args...),
		"kwargs", kwargs.Clone().Plain()))
	if err != nil {
		return nil, false, fmt.Errorf("%s: %w", o.kind, err)
	}
	if l, ok := answer.(*value.List); ok && l.Len() > 0 {
		return l.Items[0], true, nil
	}
	return nil, false, nil
}

// printed returns the result of an operation with an object that only prints.
func (o *Object) printed(sign string) (any, bool, error) {
	switch sign {
	case ".", "[]":
		return nil, false, nil
	case "==", "!=":
		return sign == "!=", true, nil
	}
	return nil, false, value.Raise("TypeError", "the process of Python that made this '%s' object has ended, so %s is "+
		"not supported", o.kind, sign)
}

// GetAttr returns an attribute. As in the sandbox that Salt's templates run in, those that begin with an underscore do
// not exist.
func (o *Object) GetAttr(ctx context.Context, name string) (any, bool, error) {
	if strings.HasPrefix(name, "_") {
		return nil, false, nil
	}
	return o.operate(ctx, ".", []any{o, name}, nil)
}

// GetItem returns an item.
func (o *Object) GetItem(ctx context.Context, key any) (any, bool, error) {
	return o.operate(ctx, "[]", []any{o, key}, nil)
}

// Operate returns the result of an operator.
func (o *Object) Operate(ctx context.Context, sign string, a, b any) (any, error) {
	v, _, err := o.operate(ctx, sign, []any{a, b}, nil)
	return v, err
}

// Call calls the object.
func (f *Function) Call(c *jinja.Call) (any, error) {
	v, _, err := f.operate(c.Context(), "()", append([]any{f}, c.Args...), c.Kwargs)
	return v, err
}

// PyType returns the name of the object's class.
func (o *Object) PyType() string { return o.kind }

// PyRepr returns what repr() returned.
func (o *Object) PyRepr() string { return o.repr }

// PyTruth reports whether the object is true in a condition.
func (o *Object) PyTruth() bool { return o.truth }

// PyStr returns what str() returned; the error is always nil.
func (o *Object) PyStr() (string, error) { return o.text, nil }

// Len returns the number of items.
func (c *Collection) Len() int { return c.items.Len() }

// Iterate yields the items.
func (c *Collection) Iterate() func() (item any, ok bool, err error) {
	i := -1
	items := c.items.Items
	return func() (any, bool, error) {
		if i++; i < len(items) {
			return items[i], true, nil
		}
		return nil, false, nil
	}
}

// Contains reports whether one of the items equals the given one, as Python's in does.
func (c *Collection) Contains(item any) (bool, error) {
	for _, have := range c.items.Items {
		if value.Equal(have, item) {
			return true, nil
		}
	}
	return false, nil
}

// message returns what Python makes the object of again.
func (o *Object) message() *value.List { return value.NewList(o.id, o.repr, o.text, o.pickled) }

// MarshalJSON writes the repr, as Salt does for a value that JSON does not have.
func (o *Object) MarshalJSON() ([]byte, error) { return json.Marshal(o.repr) }
