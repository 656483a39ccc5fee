package jinja

import (
	"fmt"
	"math/big"
	"slices"

	"github.com/corpus-agent/corpus-agent/state/diag"
	"github.com/corpus-agent/corpus-agent/state/value"
)

// Undefined is the value of a name, an attribute or an item that does not exist. Tests and defaults accept it; any
// other use is an error, unless the Env is lenient.
type Undefined struct {
	lenient bool
	message string // the message; "" to compose it from the other fields
	object  any    // the object that lacks the name, or missing
	name    any    // the name that was looked up
	kind    string // class of the error; "" is UndefinedError
	scope   *scope // in which the name was looked up, or nil
	methods *methods
	dotted  bool   // it was looked up as an attribute: object.name
	whole   string // the name of the variable with the object, such as pillar, or ""
}

// PyType returns StrictUndefined or Undefined.
func (u *Undefined) PyType() string {
	if u.lenient {
		return "Undefined"
	}
	return "StrictUndefined"
}

// PyRepr returns Undefined.
func (u *Undefined) PyRepr() string { return "Undefined" }

// PyTruth returns false.
func (u *Undefined) PyTruth() bool { return false }

// PyStr returns "" if the value is lenient, and an error otherwise.
func (u *Undefined) PyStr() (string, error) {
	if u.lenient {
		return "", nil
	}
	return "", u.err()
}

// err returns the error for a use of the value.
func (u *Undefined) err() error {
	e := &Failure{Class: "UndefinedError", Message: u.text(), Hint: u.hint()}
	if why := u.explained(); why != nil {
		e.Message, e.Hint, e.hostOnly, e.cause = why.Error(), diag.HintOf(why), diag.IsHostOnly(why), diag.CauseOf(why)
	}
	if u.kind != "" {
		e.Class = u.kind
	}
	return e
}

// explained returns the error of the object for the missing name, or nil.
func (u *Undefined) explained() error {
	if o, ok := u.object.(Explainer); ok && u.message == "" {
		return o.Explain(u.name)
	}
	return nil
}

func (u *Undefined) text() string {
	if u.message != "" {
		return u.message
	}
	if u.object == any(missing) {
		return value.Repr(u.name) + " is undefined"
	}
	if name, ok := u.name.(string); ok {
		return "'" + describeObject(u.object) + "' has no attribute " + value.Repr(name)
	}
	return describeObject(u.object) + " has no element " + value.Repr(u.name)
}

func (u *Undefined) hint() string {
	name, ok := u.name.(string)
	if !ok || u.message != "" {
		return ""
	}
	if hint := uncalled(u.object); hint != "" {
		return hint
	}
	if m, ok := u.object.(*value.Map); ok {
		return u.noKey(m, name)
	}
	if hint := diag.DidYouMean(name, append(u.scope.names(), u.names()...)); hint != "" {
		return hint
	}
	if u.object == any(missing) {
		return "set it, or give a default: {{ " + name + " | default('...') }}"
	}
	return "if it may be missing, use .get(" + value.Repr(name) + ", ...) or | default(...)"
}

// lackOf records in an undefined value the name of the variable in which it was looked up, for a hint. It returns v.
func lackOf(v any, object expr) any {
	if u, ok := v.(*Undefined); ok && u.whole == "" {
		if name, ok := object.(*nameExpr); ok && u.object != any(missing) {
			u.whole = name.name
		}
	}
	return v
}

// noKey returns the hint for a mapping that lacks a key. It suggests a method only for a misspelled one that was
// written as an attribute, since short keys such as port are similar to pop.
func (u *Undefined) noKey(m *value.Map, key string) string {
	if hint := diag.DidYouMean(key, m.Names()); hint != "" {
		return hint
	}
	if u.dotted {
		var methods []string
		for name := range u.methods.of(m) {
			methods = append(methods, name)
		}
		slices.Sort(methods)
		if meant := diag.Misspelling(key, methods); meant != "" {
			return fmt.Sprintf("did you mean %q?", meant)
		}
	}
	hint := "if it may be missing, use .get(" + value.Repr(key) + ", ...) or | default(...)"
	switch u.whole {
	case "pillar":
		return "the pillar of this host has no key " + key + " (`corpus-agent pillar` shows it); " + hint
	case "grains":
		return "this host has no grain " + key + " (`corpus-agent grains` shows all); " + hint
	}
	return hint
}

// names returns the attributes and keys of the object, for a hint.
func (u *Undefined) names() []string {
	var names []string
	for name := range u.methods.of(u.object) {
		names = append(names, name)
	}
	switch o := u.object.(type) {
	case *value.Map:
		return append(o.Names(), names...)
	case Namer:
		return append(o.Names(), names...)
	}
	return names
}

// describeObject returns Jinja2's name of a value in messages.
func describeObject(v any) string {
	if v == nil {
		return "None"
	}
	return value.TypeName(v) + " object"
}

// isUndefined reports whether v is undefined.
func isUndefined(v any) bool {
	_, ok := v.(*Undefined)
	return ok
}

// strict returns the error for an undefined value, or nil for anything else and for a lenient one.
func strict(v any) error {
	if u, ok := v.(*Undefined); ok && !u.lenient {
		return u.err()
	}
	return nil
}

// refused returns the error for any undefined value, lenient or not.
func refused(v any) error {
	if u, ok := v.(*Undefined); ok {
		return u.err()
	}
	return nil
}

func (f *frame) undefinedName(name string) *Undefined {
	return &Undefined{lenient: f.r.env.options.Lenient, object: missing, name: name, scope: f.scope}
}

func (f *frame) undefinedOf(object, name any) *Undefined {
	return &Undefined{lenient: f.r.env.options.Lenient, object: object, name: name, methods: f.r.env.methods}
}

func (f *frame) undefinedBecause(message string, name string) *Undefined {
	return &Undefined{lenient: f.r.env.options.Lenient, object: missing, name: name, message: message}
}

// unsafeAttribute returns the value of an attribute that a template must not see.
func (f *frame) unsafeAttribute(object any, name string) *Undefined {
	u := f.undefinedOf(object, name)
	u.kind = "SecurityError"
	u.message = "access to attribute " + value.Repr(name) + " of '" + value.TypeName(object) + "' object is unsafe."
	return u
}

// truth returns the truth of a value, as Python's bool(v) does.
func truth(v any) (bool, error) {
	switch v := v.(type) {
	case bool:
		return v, nil
	case string:
		return v != "", nil
	case *Undefined:
		return false, strict(v)
	}
	return value.Truth(v), nil
}

// isInt reports whether v is an int that is not a bool.
func isInt(v any) bool {
	switch v.(type) {
	case int, *big.Int:
		return true
	}
	return false
}
