package value

import (
	"math"
	"math/big"
)

var division = arithmetic{
	sign:  "/",
	small: func(int, int) (int, bool) { return 0, false },
	big: func(x, y *big.Int) (any, error) {
		if y.Sign() == 0 {
			return nil, divisionByZero("division")
		}
		f, _ := new(big.Rat).SetFrac(x, y).Float64()
		if math.IsInf(f, 0) {
			return nil, Raise("OverflowError", "integer division result too large for a float")
		}
		return f, nil
	},
	float: func(x, y float64) (any, error) {
		if y == 0 {
			return nil, divisionByZero("float division")
		}
		return x / y, nil
	},
}

func divisionByZero(what string) error { return Raise("ZeroDivisionError", "%s by zero", what) }

// Div implements Python's /, which returns a float.
func Div(a, b any) (any, error) {
	x, okX := a.(int)
	y, okY := b.(int)
	const exact = 1 << 53
	if okX && okY && y != 0 && magnitude(x) <= exact && magnitude(y) <= exact {
		return float64(x) / float64(y), nil
	}
	return numbers(&division, a, b)
}

var floorDivision = arithmetic{
	sign: "//",
	small: func(x, y int) (int, bool) {
		if y == 0 || x == math.MinInt {
			return 0, false
		}
		q := x / y
		if x%y != 0 && (x < 0) != (y < 0) {
			q--
		}
		return q, true
	},
	big: func(x, y *big.Int) (any, error) {
		if y.Sign() == 0 {
			return nil, divisionByZero("integer division or modulo")
		}
		q, _ := floorDivMod(x, y)
		return whole(q)
	},
	float: func(x, y float64) (any, error) {
		if y == 0 {
			return nil, divisionByZero("float floor division")
		}
		q, _ := floatDivMod(x, y)
		return q, nil
	},
}

// FloorDiv implements Python's //, which rounds towards minus infinity.
func FloorDiv(a, b any) (any, error) { return numbers(&floorDivision, a, b) }

var remainder = arithmetic{
	sign: "%",
	small: func(x, y int) (int, bool) {
		if y == 0 || x == math.MinInt {
			return 0, false
		}
		m := x % y
		if m != 0 && (m < 0) != (y < 0) {
			m += y
		}
		return m, true
	},
	big: func(x, y *big.Int) (any, error) {
		if y.Sign() == 0 {
			return nil, divisionByZero("integer division or modulo")
		}
		_, m := floorDivMod(x, y)
		return whole(m)
	},
	float: func(x, y float64) (any, error) {
		if y == 0 {
			return nil, divisionByZero("float modulo")
		}
		_, m := floatDivMod(x, y)
		return m, nil
	},
}

// Mod implements Python's %: the remainder, which has the sign of the divisor, or for a string the formatting that
// Percent does.
func Mod(a, b any) (any, error) {
	if s, ok := a.(string); ok {
		return Percent(s, b)
	}
	return numbers(&remainder, a, b)
}

func floorDivMod(x, y *big.Int) (q, m *big.Int) {
	q, m = new(big.Int).QuoRem(x, y, new(big.Int))
	if m.Sign() != 0 && m.Sign() != y.Sign() {
		q.Sub(q, big.NewInt(1))
		m.Add(m, y)
	}
	return q, m
}

func floatDivMod(x, y float64) (q, m float64) {
	m = math.Mod(x, y)
	q = (x - m) / y
	switch {
	case m == 0:
		m = math.Copysign(0, y)
	case (m < 0) != (y < 0):
		m += y
		q--
	}
	if q == 0 {
		return math.Copysign(0, x/y), m
	}
	floor := math.Floor(q)
	if q-floor > 0.5 {
		floor++
	}
	return floor, m
}

var power = arithmetic{
	sign:  "** or pow()",
	small: smallPower,
	big:   bigPower,
	float: floatPower,
}

// Pow implements Python's ** for two numbers.
func Pow(a, b any) (any, error) { return numbers(&power, a, b) }

func smallPower(x, y int) (int, bool) {
	if y < 0 || y > 62 {
		return 0, false
	}
	n := 1
	for range y {
		var fits bool
		if n, fits = multiplication.small(n, x); !fits {
			return 0, false
		}
	}
	return n, true
}

func bigPower(x, y *big.Int) (any, error) {
	if y.Sign() < 0 {
		fx, _, errX := asFloat(x)
		fy, _, errY := asFloat(y)
		if errX != nil || errY != nil {
			return nil, Raise("OverflowError", "int too large to convert to float")
		}
		return floatPower(fx, fy)
	}
	if x.BitLen() > 1 && (!y.IsInt64() || y.Int64() > maxIntBits/int64(x.BitLen()-1)) {
		return nil, Raise("OverflowError", "the power has too many digits; the limit is %d bits", maxIntBits)
	}
	if x.BitLen() <= 1 { // the power of -1, 0 or 1 depends only on the sign of y and on whether it is odd
		y = big.NewInt(int64(y.Bit(0)) + 2*int64(min(y.Sign(), 1)))
	}
	return whole(new(big.Int).Exp(x, y, nil))
}

func floatPower(x, y float64) (any, error) {
	if x == 0 && y < 0 {
		return nil, Raise("ZeroDivisionError", "0.0 cannot be raised to a negative power")
	}
	if x < 0 && y != math.Trunc(y) && !math.IsInf(x, 0) {
		return nil, valueError("a negative number has no fractional power that is a real number")
	}
	f := math.Pow(x, y)
	if math.IsInf(f, 0) && !math.IsInf(x, 0) && !math.IsInf(y, 0) {
		return nil, Raise("OverflowError", "(34, 'Numerical result out of range')")
	}
	return f, nil
}
