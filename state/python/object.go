package python

import (
	"encoding/json"
	"errors"

	"github.com/corpus-agent/corpus-agent/state/value"
)

// Object is a value of Python that SLS files do not have, such as a set, a date or an iterator. It prints as in Python,
// can be iterated over if Python's object can, and becomes the same object when it is passed back to Python. Another
// process than the one that made it gets an equal value of a set, a date and the like, and, for any other object,
// a stand-in that prints alike.
type Object struct {
	id         int
	pickled    string // from which Python makes an equal value; "" for an object that is more than a value
	kind       string
	repr, text string
	truth      bool
	items      *value.List // nil if it cannot be iterated over
}

// newObject returns an object made of the fields of a message: number, type, repr, str, truth, items and pickled value.
func newObject(fields []any, w *Worker) (*Object, error) {
	o := &Object{}
	if len(fields) != 7 {
		return nil, errors.New("a message has an incomplete object")
	}
	var ok [6]bool
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
	return o, nil
}

// PyType returns the name of the object's class.
func (o *Object) PyType() string { return o.kind }

// PyRepr returns what repr() returned.
func (o *Object) PyRepr() string { return o.repr }

// PyTruth reports whether the object is true in a condition.
func (o *Object) PyTruth() bool { return o.truth }

// PyStr returns what str() returned; the error is always nil.
func (o *Object) PyStr() (string, error) { return o.text, nil }

// Len returns the number of items, 0 if the object cannot be iterated over.
func (o *Object) Len() int { return o.list().Len() }

func (o *Object) list() *value.List {
	if o.items == nil {
		return value.NewList()
	}
	return o.items
}

// Iterate yields the items.
func (o *Object) Iterate() func() (item any, ok bool, err error) {
	i := -1
	items := o.list().Items
	return func() (any, bool, error) {
		if i++; i < len(items) {
			return items[i], true, nil
		}
		return nil, false, nil
	}
}

// Contains reports whether one of the items equals the given one, as Python's in does.
func (o *Object) Contains(item any) (bool, error) {
	for _, have := range o.list().Items {
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
