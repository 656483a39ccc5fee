package value

import (
	"math"
	"math/big"
	"math/bits"
	"slices"
	"strings"
)

// arithmetic is one of Python's operators on numbers. If the result for two ints does not fit an int, it is computed
// again with big ones.
type arithmetic struct {
	sign  string
	small func(x, y int) (result int, fits bool)
	big   func(x, y *big.Int) (any, error)
	float func(x, y float64) (any, error)
}

// apply reports with ok whether both values are numbers.
func (a *arithmetic) apply(x, y any) (result any, ok bool, err error) {
	if i, isInt := AsInt(x); isInt {
		if j, isInt := AsInt(y); isInt {
			if n, fits := a.small(i, j); fits {
				return n, true, nil
			}
		}
	}
	bx, okX := asBig(x)
	by, okY := asBig(y)
	if okX && okY {
		result, err = a.big(bx, by)
		return result, true, err
	}
	fx, okX, errX := asFloat(x)
	fy, okY, errY := asFloat(y)
	switch {
	case !okX || !okY:
		return nil, false, nil
	case errX != nil:
		return nil, true, errX
	case errY != nil:
		return nil, true, errY
	}
	result, err = a.float(fx, fy)
	return result, true, err
}

func unsupported(sign string, x, y any) error {
	return typeError("unsupported operand type(s) for %s: '%s' and '%s'", sign, TypeName(x), TypeName(y))
}

// whole returns n as an int if it fits. It returns an error if n exceeds the limit for big ones.
func whole(n *big.Int) (any, error) {
	if n.IsInt64() {
		return int(n.Int64()), nil
	}
	if n.BitLen() > maxIntBits {
		return nil, Raise("OverflowError", "an int of %d bits is too big; the limit is %d", n.BitLen(), maxIntBits)
	}
	return n, nil
}

func asBig(v any) (*big.Int, bool) {
	switch v := v.(type) {
	case int:
		return big.NewInt(int64(v)), true
	case bool:
		n, _ := AsInt(v)
		return big.NewInt(int64(n)), true
	case *big.Int:
		return v, true
	}
	return nil, false
}

func asFloat(v any) (f float64, ok bool, err error) {
	switch v := v.(type) {
	case float64:
		return v, true, nil
	case int:
		return float64(v), true, nil
	case bool:
		n, _ := AsInt(v)
		return float64(n), true, nil
	case *big.Int:
		f, _ := new(big.Float).SetInt(v).Float64()
		if math.IsInf(f, 0) {
			err = Raise("OverflowError", "int too large to convert to float")
		}
		return f, true, err
	}
	return 0, false, nil
}

var addition = arithmetic{
	sign: "+",
	small: func(x, y int) (int, bool) {
		s := x + y
		return s, (s > x) == (y > 0)
	},
	big:   func(x, y *big.Int) (any, error) { return whole(new(big.Int).Add(x, y)) },
	float: func(x, y float64) (any, error) { return x + y, nil },
}

// Add implements Python's +: it adds numbers, or joins two strings, lists, tuples or bytes.
func Add(a, b any) (any, error) {
	switch x := a.(type) {
	case string:
		if y, ok := b.(string); ok {
			return x + y, checkText(len(x) + len(y))
		}
		return nil, typeError("can only concatenate str (not %q) to str", TypeName(b))
	case *List:
		if y, ok := b.(*List); ok {
			return &List{Items: slices.Concat(x.Items, y.Items)}, checkItems(len(x.Items) + len(y.Items))
		}
		return nil, typeError("can only concatenate list (not %q) to list", TypeName(b))
	case Tuple:
		if y, ok := b.(Tuple); ok {
			return slices.Concat(x, y), checkItems(len(x) + len(y))
		}
		return nil, typeError("can only concatenate tuple (not %q) to tuple", TypeName(b))
	case []byte:
		if y, ok := b.([]byte); ok {
			return slices.Concat(x, y), checkText(len(x) + len(y))
		}
		return nil, typeError("can't concat %s to bytes", TypeName(b))
	}
	return numbers(&addition, a, b)
}

// numbers applies an operator that is defined only for numbers.
func numbers(op *arithmetic, a, b any) (any, error) {
	result, ok, err := op.apply(a, b)
	if !ok {
		return nil, unsupported(op.sign, a, b)
	}
	return result, err
}

var subtraction = arithmetic{
	sign: "-",
	small: func(x, y int) (int, bool) {
		d := x - y
		return d, (d < x) == (y > 0)
	},
	big:   func(x, y *big.Int) (any, error) { return whole(new(big.Int).Sub(x, y)) },
	float: func(x, y float64) (any, error) { return x - y, nil },
}

// Sub implements Python's - for two numbers.
func Sub(a, b any) (any, error) { return numbers(&subtraction, a, b) }

var multiplication = arithmetic{
	sign: "*",
	small: func(x, y int) (int, bool) {
		hi, lo := bits.Mul64(magnitude(x), magnitude(y))
		return x * y, hi == 0 && lo <= math.MaxInt64
	},
	big: func(x, y *big.Int) (any, error) {
		if x.BitLen()+y.BitLen() > maxIntBits+1 {
			return nil, Raise("OverflowError", "the product has too many digits; the limit is %d bits", maxIntBits)
		}
		return whole(new(big.Int).Mul(x, y))
	},
	float: func(x, y float64) (any, error) { return x * y, nil },
}

func magnitude(x int) uint64 {
	if x < 0 {
		return -uint64(x)
	}
	return uint64(x)
}

// Mul implements Python's *: it multiplies two numbers, or repeats a string, list, tuple or bytes.
func Mul(a, b any) (any, error) {
	if n, ok := AsInt(b); ok {
		if result, ok, err := repeat(a, n); ok {
			return result, err
		}
	}
	if n, ok := AsInt(a); ok {
		if result, ok, err := repeat(b, n); ok {
			return result, err
		}
	}
	return numbers(&multiplication, a, b)
}

func repeat(v any, n int) (result any, ok bool, err error) {
	switch v := v.(type) {
	case string:
		n, err := repeated(len(v), n, checkText)
		if err != nil {
			return nil, true, err
		}
		return strings.Repeat(v, n), true, nil
	case *List:
		items, err := repeatItems(v.Items, n)
		return &List{Items: items}, true, err
	case Tuple:
		items, err := repeatItems(v, n)
		return Tuple(items), true, err
	case []byte:
		n, err := repeated(len(v), n, checkText)
		if err != nil {
			return nil, true, err
		}
		return slices.Repeat(v, n), true, nil
	}
	return nil, false, nil
}

func repeatItems(items []any, n int) ([]any, error) {
	n, err := repeated(len(items), n, checkItems)
	if err != nil {
		return nil, err
	}
	return slices.Repeat(items, n), nil
}

// Neg implements Python's unary minus.
func Neg(v any) (any, error) {
	switch v := v.(type) {
	case float64:
		return -v, nil
	case int, bool, *big.Int:
		return Sub(0, v)
	}
	return nil, typeError("bad operand type for unary -: '%s'", TypeName(v))
}

// Pos implements Python's unary plus.
func Pos(v any) (any, error) {
	switch v := v.(type) {
	case float64, int, *big.Int:
		return v, nil
	case bool:
		n, _ := AsInt(v)
		return n, nil
	}
	return nil, typeError("bad operand type for unary +: '%s'", TypeName(v))
}
