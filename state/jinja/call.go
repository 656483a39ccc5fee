package jinja

import (
	"github.com/corpus-agent/corpus-agent/state/diag"
	"github.com/corpus-agent/corpus-agent/state/value"
)

// Param is a parameter of a Filter, a Test or a method.
type Param struct {
	name     string
	fallback any
	kind     paramKind
}

type paramKind uint8

const (
	required paramKind = iota
	optional
	rest
)

// Arg returns a parameter that must be given.
func Arg(name string) Param { return Param{name: name} }

// Opt returns a parameter with a default.
func Opt(name string, fallback any) Param { return Param{name, fallback, optional} }

// Rest returns a parameter for all remaining positional arguments, as a tuple. It must be the last one.
func Rest(name string) Param { return Param{name: name, kind: rest} }

// Define returns a Filter that calls fn with the arguments in the order of the parameters, with defaults filled in.
// Kwargs is nil then. Name is for messages.
//
// It is not inlined: tables call it hundreds of times, and each would have its own copy of the function in it.
//
//go:noinline
func Define(name string, fn func(c *Call) (any, error), params ...Param) Filter {
	return func(c *Call) (any, error) {
		if err := c.bind(name, params); err != nil {
			return nil, err
		}
		return fn(c)
	}
}

// DefineTest does the same as Define for a Test.
//
//go:noinline
func DefineTest(name string, fn func(c *Call) (bool, error), params ...Param) Test {
	return func(c *Call) (bool, error) {
		if err := c.bind(name, params); err != nil {
			return false, err
		}
		return fn(c)
	}
}

func (c *Call) bind(name string, params []Param) error {
	bound := make([]any, len(params))
	used := 0
	for i := range params {
		p := &params[i]
		v, named := c.Kwargs.Get(p.name)
		switch {
		case p.kind == rest:
			bound[i] = value.Tuple(c.Args[min(i, len(c.Args)):])
			c.Args = c.Args[:min(i, len(c.Args))]
		case i < len(c.Args) && named:
			return typeError(name + "() got multiple values for argument '" + p.name + "'")
		case i < len(c.Args):
			bound[i] = c.Args[i]
		case named:
			bound[i] = v
			used++
		case p.kind == optional:
			bound[i] = p.fallback
		default:
			return typeError(name + "() missing a required argument: '" + p.name + "'")
		}
	}
	if len(c.Args) > len(params) {
		return typeError(name + "() takes " + itoa(len(params)) + " arguments but " + itoa(len(c.Args)) + " were given")
	}
	if c.Kwargs.Len() > used {
		return c.unexpected(name, params)
	}
	c.Args, c.Kwargs = bound, nil
	return nil
}

func (c *Call) unexpected(name string, params []Param) error {
	var known []string
	for _, p := range params {
		known = append(known, p.name)
	}
	for _, k := range c.Kwargs.Names() {
		err := typeError(name + "() got an unexpected keyword argument '" + k + "'")
		found := false
		for _, p := range known {
			found = found || p == k
		}
		if !found {
			return withHint(err, diag.DidYouMean(k, known))
		}
	}
	return typeError(name + "() got an unexpected keyword argument")
}

// Function returns a Go function as an object that templates can call.
func Function(name string, call func(c *Call) (any, error)) Callable { return &builtin{name, call} }

// Str returns Python's str of an argument. An undefined argument is an error.
func (c *Call) Str(i int) (string, error) { return value.ToStr(c.Args[i]) }

// Text returns an argument that must be a string.
func (c *Call) Text(i int) (string, error) {
	if s, ok := c.Args[i].(string); ok {
		return s, nil
	}
	if err := refused(c.Args[i]); err != nil {
		return "", err
	}
	return "", typeError("expected a string, not " + value.TypeName(c.Args[i]))
}

// Int returns an argument that must be an int.
func (c *Call) Int(i int) (int, error) {
	if err := refused(c.Args[i]); err != nil {
		return 0, err
	}
	return value.AsIndex(c.Args[i])
}

// With returns the same call with one other argument, to apply the methods of Call to any value.
func (c *Call) With(v any) *Call { return &Call{Args: []any{v}, f: c.f, at: c.at} }

// Bool returns the truth of an argument.
func (c *Call) Bool(i int) (bool, error) { return truth(c.Args[i]) }

// Items returns the items of an argument, as Python's list does.
func (c *Call) Items(i int) ([]any, error) { return c.f.listOf(c.Args[i]) }

// Length returns the length of an argument, as Python's len does.
func (c *Call) Length(i int) (int, error) { return lengthOf(c.Args[i]) }

// Work counts steps of a long computation, and returns an error if there were too many.
func (c *Call) Work(steps int) error { return c.f.r.step(steps) }

// Equal reports whether two values are equal, as Python's == does.
func (c *Call) Equal(a, b any) (bool, error) { return c.f.equal(a, b) }

// Contains reports whether a container contains an item, as Python's in does.
func (c *Call) Contains(container, item any) (bool, error) { return c.f.contains(container, item) }

// GetItem evaluates Jinja2's v[key]; a missing item is undefined.
func (c *Call) GetItem(v, key any) (any, error) { return c.f.getitem(v, key) }

// GetAttr evaluates Jinja2's v.name; a missing attribute is undefined.
func (c *Call) GetAttr(v any, name string) (any, error) { return c.f.getattr(v, name) }

// Invoke calls callee, which may be any value that templates can call.
func (c *Call) Invoke(callee any, args []any, kwargs *value.Map) (any, error) {
	return c.f.call(callee, args, kwargs, c.at)
}

// Undefined returns an undefined value with a message.
func (c *Call) Undefined(message string) any { return c.f.undefinedBecause(message, "") }

// Generator returns an object that templates can iterate over once.
func (c *Call) Generator(next func() (any, bool, error)) any { return newIterator("generator", next) }

// Iterate iterates over an argument as a loop does.
func (c *Call) Iterate(i int) (func() (any, bool, error), error) { return iterate(c.Args[i]) }

// Plain converts a value that only templates have to a plain one: a range to a list, a module to its text.
func (c *Call) Plain(i int) (any, error) { return c.f.plain(textOf(c.Args[i])) }

// Variables returns all variables of the template at the position of the call.
func (c *Call) Variables() map[string]any { return c.f.scope.all() }

// call calls a value. It returns a TypeError if the value cannot be called.
func (f *frame) call(callee any, args []any, kwargs *value.Map, at int) (any, error) {
	if err := f.r.step(1); err != nil {
		return nil, err
	}
	c := &Call{Args: args, Kwargs: kwargs, f: f, at: at}
	if _, ours := callee.(*macro); !ours { // the operations in a macro are weighed when they run
		if err := f.weighCall(args, kwargs); err != nil {
			return nil, err
		}
	}
	switch o := callee.(type) {
	case *Undefined:
		return nil, o.err()
	case *builtin:
		return o.call(c)
	case *boundMethod:
		if err := f.weighMethod(o.self, args, kwargs); err != nil {
			return nil, err
		}
		return o.method.invoke(c, o.self, o.name)
	case *macro:
		return o.call(c)
	case *loopContext:
		return o.recurse(c)
	case *blockReference:
		return o.call(c)
	case Callable:
		return c.callObject(o)
	}
	return nil, typeError("'" + value.TypeName(callee) + "' object is not callable")
}

// callObject calls an object of another package, which receives plain values.
func (c *Call) callObject(o Callable) (any, error) {
	for i := range c.Args {
		v, err := c.f.plain(c.Args[i])
		if err != nil {
			return nil, err
		}
		c.Args[i] = v
	}
	for k, v := range c.Kwargs.All() {
		v, err := c.f.plain(v)
		if err != nil {
			return nil, err
		}
		c.Kwargs.Set(k.(string), v)
	}
	return o.Call(c)
}

// arguments holds the arguments of a call, a filter or a test.
type arguments struct {
	args      []expr
	names     []string
	kwargs    []expr
	dynArgs   expr // may be nil
	dynKwargs expr // may be nil
}

// eval evaluates the arguments and appends them to first.
func (a *arguments) eval(f *frame, first ...any) ([]any, *value.Map, error) {
	args := make([]any, len(first), len(first)+len(a.args))
	copy(args, first)
	for _, e := range a.args {
		v, err := e.eval(f)
		if err != nil {
			return nil, nil, err
		}
		args = append(args, v)
	}
	if len(a.kwargs) == 0 && a.dynArgs == nil && a.dynKwargs == nil {
		return args, nil, nil
	}
	return a.evalRest(f, args)
}

func (a *arguments) evalRest(f *frame, args []any) ([]any, *value.Map, error) {
	kwargs := value.MakeMap(len(a.kwargs))
	for i, e := range a.kwargs {
		v, err := e.eval(f)
		if err != nil {
			return nil, nil, err
		}
		kwargs.Set(a.names[i], v)
	}
	if a.dynArgs != nil {
		v, err := a.dynArgs.eval(f)
		if err != nil {
			return nil, nil, err
		}
		items, err := f.listOf(v)
		if err != nil {
			return nil, nil, err
		}
		args = append(args, items...)
	}
	if a.dynKwargs != nil {
		v, err := a.dynKwargs.eval(f)
		if err != nil {
			return nil, nil, err
		}
		if err := addKwargs(kwargs, v); err != nil {
			return nil, nil, err
		}
	}
	return args, kwargs, nil
}

func addKwargs(kwargs *value.Map, v any) error {
	if err := refused(v); err != nil {
		return err
	}
	m, ok := v.(*value.Map)
	if !ok {
		return typeError("argument after ** must be a mapping, not " + value.TypeName(v))
	}
	for k, item := range m.All() {
		name, ok := k.(string)
		if !ok {
			return typeError("keywords must be strings")
		}
		if kwargs.Has(name) {
			return typeError("got multiple values for keyword argument '" + name + "'")
		}
		kwargs.Set(name, item)
	}
	return nil
}
