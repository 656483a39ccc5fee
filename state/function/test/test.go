// Package test implements test.*: functions for trying out calls and arguments.
package test

import (
	"context"
	"errors"
	"fmt"
	"math/big"
	"strings"
	"time"

	"github.com/corpus-agent/corpus-agent/state/function"
	"github.com/corpus-agent/corpus-agent/state/value"
)

// SaltVersion is the version of Salt whose language the engine implements, as in test.version and the grain
// saltversion.
const SaltVersion = "3006.0"

type test struct {
	*function.Facts
	all function.Table // the table these functions are in
}

// Functions returns the functions of test that templates may call.
func Functions(f *function.Facts, all function.Table) function.Table {
	t := test{f, all}
	return function.Table{
		"test.ping":            function.Of("", func() bool { return true }),
		"test.true":            function.Of("", func() bool { return true }),
		"test.true_":           function.Of("", func() bool { return true }),
		"test.false":           function.Of("", func() bool { return false }),
		"test.false_":          function.Of("", func() bool { return false }),
		"test.echo":            function.Of("text", func(v any) any { return v }),
		"test.outputter":       function.Of("data", func(v any) any { return v }),
		"test.arg":             function.Of("*args, **kwargs", t.arg),
		"test.arg_clean":       function.Of("*args, **kwargs", t.argClean),
		"test.arg_repr":        function.Of("*args, **kwargs", t.argRepr),
		"test.arg_type":        function.Of("*args, **kwargs", t.argType),
		"test.kwarg":           function.Of("**kwargs", func(kwargs *value.Map) *value.Map { return kwargs }),
		"test.sleep":           function.Of("length", t.sleep),
		"test.retcode":         function.Of("code=42", func(any) bool { return true }),
		"test.get_opts":        function.Of("", func() *value.Map { return f.Options }),
		"test.conf_test":       function.Of("", t.confTest),
		"test.provider":        function.Of("module", t.provider),
		"test.providers":       function.Of("", t.providers),
		"test.version":         function.Of("", func() string { return SaltVersion }),
		"test.versions_report": function.Of("", t.versions),
		"test.versions":        function.Of("", t.versions),
		"test.rand_str":        function.Of("size=9999999999, hash_type=None", t.randomHash),
		"test.random_hash":     function.Of("size=9999999999, hash_type=None", t.randomHash),
		"test.exception": function.Of("message='Test Exception'", func(message any) (any, error) {
			return nil, errors.New(value.Str(message))
		}),
		"test.assertion":  function.Of("assertion", t.assertion),
		"test.try":        function.Of("module, return_try_exception=False, **kwargs", t.try),
		"test.cross_test": function.Of("func, args=None", t.cross),
		"test.fib":        function.Of("num", t.fibonacci),
		"test.not_loaded": function.Of("", func() *value.List { return value.NewList() }),
		"test.attr_call":  function.Of("", func() *value.Map { return f.Grains.Clone() }),
		"test.raise_exception": function.Of("name, *args, **kwargs",
			func(name string, args []string, _ *value.Map) (any, error) {
				return nil, value.Raise(name, "%s", strings.Join(args, ", "))
			}),
	}
}

func (t test) versions() string {
	return "Agent:\n  corpus-agent: " + t.Version + "\n\nSalt Version, whose language it reads:\n  Salt: " + SaltVersion
}

func (test) arg(args []any, kwargs *value.Map) *value.Map {
	return value.NewMap("args", value.Tuple(args), "kwargs", kwargs)
}

// argClean returns the arguments without those that concern the call itself.
func (t test) argClean(args []any, kwargs *value.Map) *value.Map {
	clean := value.NewMap()
	for name, v := range kwargs.All() {
		if !strings.HasPrefix(value.Str(name), "__") {
			clean.Set(value.Str(name), v)
		}
	}
	return t.arg(args, clean)
}

func (test) argRepr(args []any, kwargs *value.Map) *value.Map {
	return value.NewMap("args", value.Repr(value.Tuple(args)), "kwargs", value.Repr(kwargs))
}

func (test) argType(args []any, kwargs *value.Map) *value.Map {
	types, named := value.NewList(), value.NewMap()
	for _, v := range args {
		types.Append(class(v))
	}
	for name, v := range kwargs.All() {
		named.Set(value.Str(name), class(v))
	}
	return value.NewMap("args", types, "kwargs", named)
}

func class(v any) string { return "<class '" + value.TypeName(v) + "'>" }

// longestSleep limits how long a template may sleep.
const longestSleep = 5 * time.Minute

func (test) sleep(ctx context.Context, seconds int) (bool, error) {
	wait := time.Duration(seconds) * time.Second
	if seconds < 0 || wait > longestSleep {
		return false, fmt.Errorf("a template sleeps from 0 to %s, not %d seconds", longestSleep, seconds)
	}
	select {
	case <-ctx.Done():
		return false, ctx.Err()
	case <-time.After(wait):
		return true, nil
	}
}

func (t test) confTest() any {
	v, _ := function.FirstSetting("test.foo", append(t.SettingSources(true, true, true, true), function.BuiltInSettings()))
	return v
}

// provider returns the provider of a module: the module itself, since there is only one here.
func (t test) provider(module string) string {
	for name := range t.all {
		if own, _, _ := strings.Cut(name, "."); own == module {
			return module
		}
	}
	return ""
}

func (t test) providers() *value.Map {
	m := value.NewMap()
	for _, name := range t.all.Names() {
		own, _, _ := strings.Cut(name, ".")
		m.Set(own, own)
	}
	return m
}

func (t test) randomHash(size int, form string) (string, error) {
	r, err := value.NewRandom(nil)
	if err != nil {
		return "", err
	}
	n, err := r.Between(0, size)
	if err != nil {
		return "", err
	}
	if form == "" {
		form, _ = t.Options.Value("hash_type").(string)
	}
	if form == "" {
		form = "sha256"
	}
	return function.HexDigest(form, []byte(value.Str(n)))
}

func (test) assertion(holds bool) (any, error) {
	if !holds {
		return nil, value.Raise("AssertionError", "the assertion does not hold")
	}
	return nil, nil
}

// try calls a function. If it fails, try returns None, or with errorText the text of the error.
func (t test) try(ctx context.Context, name string, errorText bool, kwargs *value.Map) any {
	v, err := t.all.Call(ctx, name, nil, kwargs)
	switch {
	case err == nil:
		return v
	case errorText:
		return err.Error()
	}
	return nil
}

func (t test) cross(ctx context.Context, name string, args *value.List) (any, error) {
	if args == nil {
		args = value.NewList()
	}
	return t.all.Call(ctx, name, args.Items, nil)
}

// fibonacci returns a Fibonacci number and the seconds that it took to compute.
func (test) fibonacci(n int) (any, error) {
	const most = 10_000
	if n < 0 || n > most {
		return nil, fmt.Errorf("the argument must be from 0 to %d, not %d", most, n)
	}
	started := time.Now()
	a, b := big.NewInt(0), big.NewInt(1)
	for range n {
		a.Add(a, b)
		a, b = b, a
	}
	var v any = a
	if a.IsInt64() {
		v = int(a.Int64())
	}
	return value.Tuple{v, time.Since(started).Seconds()}, nil
}
