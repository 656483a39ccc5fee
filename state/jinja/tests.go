package jinja

import (
	"strings"
	"unicode"

	"github.com/corpus-agent/corpus-agent/state/value"
)

// is returns a test of one value. Like Define, it is not inlined.
//
//go:noinline
func is(name string, test func(v any) bool) Test {
	return DefineTest(name, func(c *Call) (bool, error) { return test(c.Args[0]), nil }, Arg("value"))
}

// compare returns a test of two values. Like Define, it is not inlined.
//
//go:noinline
func compare(name string, op comparison) Test {
	return DefineTest(name, func(c *Call) (bool, error) { return op(c.f, c.Args[0], c.Args[1]) }, Arg("a"), Arg("b"))
}

// builtinTests returns the tests of Jinja2.
func builtinTests() map[string]Test {
	t := map[string]Test{
		"boolean":   is("boolean", func(v any) bool { _, ok := v.(bool); return ok }),
		"callable":  is("callable", isCallable),
		"defined":   is("defined", func(v any) bool { return !isUndefined(v) }),
		"escaped":   is("escaped", func(any) bool { return false }),
		"false":     is("false", func(v any) bool { return v == false }),
		"float":     is("float", func(v any) bool { _, ok := v.(float64); return ok }),
		"integer":   is("integer", isInt),
		"mapping":   is("mapping", func(v any) bool { _, ok := v.(*value.Map); return ok }),
		"none":      is("none", func(v any) bool { return v == nil }),
		"number":    is("number", value.IsNumber),
		"sequence":  is("sequence", isSequence),
		"string":    is("string", func(v any) bool { _, ok := v.(string); return ok }),
		"true":      is("true", func(v any) bool { return v == true }),
		"undefined": is("undefined", isUndefined),

		"divisibleby": DefineTest("divisibleby", func(c *Call) (bool, error) {
			return c.remainderIs(c.Args[1], 0)
		}, Arg("value"), Arg("num")),
		"even": DefineTest("even", func(c *Call) (bool, error) { return c.remainderIs(2, 0) }, Arg("value")),
		"odd":  DefineTest("odd", func(c *Call) (bool, error) { return c.remainderIs(2, 1) }, Arg("value")),

		"filter": DefineTest("filter", func(c *Call) (bool, error) { return known(c, c.f.r.env.filters) }, Arg("value")),
		"test":   DefineTest("test", func(c *Call) (bool, error) { return known(c, c.f.r.env.tests) }, Arg("value")),
		"in": DefineTest("in", func(c *Call) (bool, error) { return c.f.contains(c.Args[1], c.Args[0]) }, Arg("value"),
			Arg("seq")),
		"iterable": DefineTest("iterable", func(c *Call) (bool, error) { return isIterable(c.Args[0]) }, Arg("value")),
		"lower": DefineTest("lower", func(c *Call) (bool, error) {
			return hasCase(c, unicode.IsLower, unicode.IsUpper)
		}, Arg("value")),
		"upper": DefineTest("upper", func(c *Call) (bool, error) { return hasCase(c, unicode.IsUpper, unicode.IsLower) },
			Arg("value")),
		"sameas": DefineTest("sameas", func(c *Call) (bool, error) {
			return sameObject(c.Args[0], c.Args[1]), nil
		}, Arg("value"), Arg("other")),

		"==": compare("eq", comparisons["=="]),
		"!=": compare("ne", comparisons["!="]),
		">":  compare("gt", comparisons[">"]),
		">=": compare("ge", comparisons[">="]),
		"<":  compare("lt", comparisons["<"]),
		"<=": compare("le", comparisons["<="]),
	}
	t["eq"], t["equalto"], t["ne"] = t["=="], t["=="], t["!="]
	t["gt"], t["greaterthan"], t["ge"] = t[">"], t[">"], t[">="]
	t["lt"], t["lessthan"], t["le"] = t["<"], t["<"], t["<="]
	return t
}

func isCallable(v any) bool {
	switch v.(type) {
	case *Undefined, *builtin, *boundMethod, *macro, *loopContext, *blockReference, Callable:
		return true
	}
	return false
}

func isSequence(v any) bool {
	switch v := v.(type) {
	case string, []byte, *value.List, value.Tuple, *value.Map, *rangeObject, *namedTuple:
		return true
	case Operand:
		return false
	case ItemGetter:
		_, sized := v.(Sized)
		return sized
	}
	return false
}

func isIterable(v any) (bool, error) {
	if err := strict(v); err != nil {
		return false, err
	}
	_, err := iterate(v)
	return err == nil, nil
}

func (c *Call) remainderIs(n, want any) (bool, error) {
	m, err := c.f.arithmetic(value.Mod, c.Args[0], n)
	return value.Equal(m, want), err
}

func known[T any](c *Call, names map[string]T) (bool, error) {
	if err := strict(c.Args[0]); err != nil {
		return false, err
	}
	switch v := c.Args[0].(type) {
	case *value.Map, *value.List:
		return false, typeError("unhashable type: '" + value.TypeName(v) + "'")
	}
	name, _ := c.Args[0].(string)
	_, ok := names[name]
	return ok, nil
}

func hasCase(c *Call, is, other func(rune) bool) (bool, error) {
	s, err := c.Str(0)
	return isCase(s, is, other), err
}

// sameObject implements Python's is. In Python, equal numbers and strings need not be the same object, but small ones
// and those of a template are.
func sameObject(a, b any) bool {
	switch x := a.(type) {
	case value.Tuple:
		y, ok := b.(value.Tuple)
		return ok && len(x) == len(y) && (len(x) == 0 || &x[0] == &y[0])
	case []byte:
		return false
	case string:
		y, ok := b.(string)
		return ok && strings.Compare(x, y) == 0
	}
	switch b.(type) {
	case value.Tuple, []byte:
		return false
	}
	return a == b
}
