// Package function defines execution functions, which templates call as salt['grains.filter_by'](...), and which
// module.run and `corpus-agent call` call. The functions of one Salt module are in the package with its name below this
// one, such as state/function/file; state/function/table lists them all.
//
// A template reads and does not change the host. It is rendered before it is known whether the run will change
// anything, in dry runs too, and sometimes twice. So each package has two tables: Functions, which templates may call,
// reads grains, pillar, files, accounts and the package database; Acting, which only module.run may call, changes the
// host. The exception is cmd.run and its variants, which templates could not do without. They go through state/host
// like every command, are written to the log, and are refused below a plain root.
//
// Names, parameters and results are those of Salt 3006, since their callers were written for it. A Function is a plain
// Go function with the signature that Salt documents. This package handles Python's rules for calls: positions and
// names, defaults, *args and **kwargs, None, and the truth of values. Calls of functions that Salt has and this engine
// does not return an error with the reason and an alternative.
package function

import (
	"context"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"sync"

	"github.com/corpus-agent/corpus-agent/state/diag"
	"github.com/corpus-agent/corpus-agent/state/host"
	"github.com/corpus-agent/corpus-agent/state/value"
)

// Table holds functions by their full names, such as grains.filter_by.
type Table map[string]*Function

// Call calls a function with the arguments of a template. Errors begin with the function's name; an error with the
// class TypeError concerns the arguments.
func (t Table) Call(ctx context.Context, name string, args []any, kwargs *value.Map) (any, error) {
	f, ok := t[name]
	if !ok || f.absent() != nil {
		return nil, t.Unknown(name)
	}
	v, err := f.Call(ctx, args, kwargs)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	return v, nil
}

// Has reports whether a function exists on this host.
func (t Table) Has(name string) bool { return t[name] != nil && t[name].absent() == nil }

// Names returns the names of the functions that exist on this host, sorted.
func (t Table) Names() []string {
	names := slices.Sorted(maps.Keys(t))
	return slices.DeleteFunc(names, func(name string) bool { return t[name].absent() != nil })
}

// Needing makes all functions of a table depend on a program: they exist only if it is installed. This is checked at
// each lookup, since an earlier state may have installed the program.
func (t Table) Needing(h *host.Host, program, pkg string) Table {
	for _, f := range t {
		f.needs = func() error {
			if h == nil || h.Files == nil {
				return nil
			}
			if _, ok := h.Which(program); ok {
				return nil
			}
			return diag.Program.Hint(fmt.Errorf("the program %s is not installed", program),
				"on Debian it is in the package %s; templates can test with `'MODULE.FUNCTION' in salt`", pkg)
		}
	}
	return t
}

// Add adds the functions of other tables.
func (t Table) Add(tables ...Table) Table {
	for _, other := range tables {
		maps.Copy(t, other)
	}
	return t
}

// Function is a Go function with the signature it has in Salt.
type Function struct {
	signature string
	do        reflect.Value
	needs     func() error // returns why it does not exist on this host; nil for a function that always exists

	once       sync.Once // signatures are parsed when first needed, since a run calls few of the functions
	parameters []Parameter
	err        error
}

// Of returns a function. Its signature is written as in Python,
//
//	path, follow_symlinks=True, *args, **kwargs
//
// and do is a Go function with a Go parameter for each of these, in this order, and perhaps a
// context before them. A parameter of type any receives the argument unchanged, and bool its truth. For string, int,
// float64, []string, *value.List and *value.Map the argument is converted, or refused if it cannot be. None becomes the
// zero value if None is the default; for *string and *int it becomes nil. *args is []any or []string and **kwargs a
// *value.Map. A function whose only parameter is Arguments gets all of them by name.
//
// do returns a value, or a value and an error.
//
// It is not inlined: tables call it hundreds of times, and each would have its own copy of it.
//
//go:noinline
func Of(signature string, do any) *Function {
	return &Function{signature: signature, do: reflect.ValueOf(do)}
}

// absent returns why the function does not exist on this host, as Salt's __virtual__ does; nil if it exists.
func (f *Function) absent() error {
	if f.needs == nil {
		return nil
	}
	return f.needs()
}

// Signature returns the function's signature as Python would write it.
func (f *Function) Signature() string { return f.signature }

// Parameters returns the parameters of the signature. It returns an error if the Go function does not match it.
func (f *Function) Parameters() ([]Parameter, error) {
	f.once.Do(func() {
		f.parameters, f.err = ParseSignature(f.signature)
		if f.err == nil {
			f.err = f.fits()
		}
	})
	return f.parameters, f.err
}

// Arguments has all arguments of a call under the names of their parameters, including defaults.
type Arguments struct{ *value.Map }

// Call binds the arguments and calls the Go function.
func (f *Function) Call(ctx context.Context, args []any, kwargs *value.Map) (any, error) {
	parameters, err := f.Parameters()
	if err != nil {
		return nil, err
	}
	bound, err := bind(parameters, args, kwargs)
	if err != nil {
		return nil, err
	}
	in, err := f.arguments(ctx, parameters, bound)
	if err != nil {
		return nil, err
	}
	out := f.do.Call(in)
	if len(out) == 2 && !out[1].IsNil() {
		return nil, out[1].Interface().(error)
	}
	return Result(out[0].Interface()), nil
}
