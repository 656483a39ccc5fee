package value

import (
	"math"
	"math/big"
	"strconv"
	"strings"
	"unicode"
)

// IsNumber reports whether v is a bool, int or float.
func IsNumber(v any) bool {
	switch v.(type) {
	case bool, int, *big.Int, float64:
		return true
	}
	return false
}

// AsIndex converts an int or a bool to a Go int, for an index or a count of Python.
func AsIndex(v any) (int, error) {
	if n, ok := AsInt(v); ok {
		return n, nil
	}
	if _, ok := v.(*big.Int); ok {
		return 0, Raise("OverflowError", "Python int too large to convert to C ssize_t")
	}
	return 0, typeError("'%s' object cannot be interpreted as an integer", TypeName(v))
}

// ToInt implements Python's int(v): it truncates a float, and parses a string as a decimal number.
func ToInt(v any) (any, error) {
	switch v := v.(type) {
	case int, *big.Int:
		return v, nil
	case bool:
		n, _ := AsInt(v)
		return n, nil
	case float64:
		return truncate(v)
	case string:
		return ParseInt(v, 10)
	case []byte:
		return ParseInt(string(v), 10)
	}
	return nil, typeError("int() argument must be a string, a bytes-like object or a real number, not '%s'", TypeName(v))
}

func truncate(f float64) (any, error) {
	switch {
	case math.IsInf(f, 0):
		return nil, Raise("OverflowError", "cannot convert float infinity to integer")
	case math.IsNaN(f):
		return nil, valueError("cannot convert float NaN to integer")
	case math.Abs(f) < 1<<62:
		return int(f), nil
	}
	n, _ := big.NewFloat(f).Int(nil)
	return n, nil
}

// ToFloat implements Python's float(v).
func ToFloat(v any) (float64, error) {
	if f, ok, err := asFloat(v); ok {
		return f, err
	}
	switch v := v.(type) {
	case string:
		return ParseFloat(v)
	case []byte:
		return ParseFloat(string(v))
	}
	return 0, typeError("float() argument must be a string or a real number, not '%s'", TypeName(v))
}

// ParseInt implements Python's int(s, base): it allows spaces around the number, a sign, underscores between digits,
// and for base 0, 2, 8 and 16 the prefixes 0b, 0o and 0x.
func ParseInt(s string, base int) (any, error) {
	if base != 0 && (base < 2 || base > 36) {
		return nil, valueError("int() base must be >= 2 and <= 36, or 0")
	}
	bad := valueError("invalid literal for int() with base %d: %s", base, Repr(s))
	digits := asciiDigits(Strip(s))
	negative := strings.HasPrefix(digits, "-")
	if negative || strings.HasPrefix(digits, "+") {
		digits = digits[1:]
	}
	digits, base, ok := cutBasePrefix(digits, base)
	if !ok || !underscoresBetweenDigits(digits) {
		return nil, bad
	}
	digits = strings.ReplaceAll(digits, "_", "")
	if len(digits) > maxIntBits/4 {
		return nil, valueError("Exceeds the limit (%d digits) for integer string conversion", maxIntBits/4)
	}
	n, ok := new(big.Int).SetString(digits, base)
	if !ok || digits[0] == '-' || digits[0] == '+' {
		return nil, bad
	}
	if negative {
		n.Neg(n)
	}
	return whole(n)
}

// asciiDigits converts the decimal digits of other scripts to ASCII, as Python does.
func asciiDigits(s string) string {
	return strings.Map(func(r rune) rune {
		if r < 0x80 {
			return r
		}
		if d := digitValue(r); d >= 0 {
			return '0' + rune(d)
		}
		return r
	}, s)
}

// digitValue returns the value of a decimal digit of any script, or -1. Unicode puts the ten digits of a script side by
// side, and some scripts next to one another.
func digitValue(r rune) int {
	if !unicode.Is(unicode.Nd, r) {
		return -1
	}
	first := r
	for unicode.Is(unicode.Nd, first-1) {
		first--
	}
	return int(r-first) % 10
}

// cutBasePrefix removes 0x, 0o or 0b if the base allows it; one underscore may follow.
func cutBasePrefix(digits string, base int) (rest string, realBase int, ok bool) {
	if len(digits) > 1 && digits[0] == '0' {
		prefixBase := map[byte]int{'x': 16, 'o': 8, 'b': 2}[digits[1]|0x20]
		if prefixBase != 0 && (base == 0 || base == prefixBase) {
			return strings.TrimPrefix(digits[2:], "_"), prefixBase, true
		}
	}
	if base != 0 {
		return digits, base, true
	}
	zeros := strings.Trim(digits, "0_") == ""
	return digits, 10, zeros || !strings.HasPrefix(digits, "0")
}

func underscoresBetweenDigits(s string) bool {
	return s != "" && s[0] != '_' && s[len(s)-1] != '_' && !strings.Contains(s, "__")
}

// ParseFloat implements Python's float(s).
func ParseFloat(s string) (float64, error) {
	bad := valueError("could not convert string to float: %s", Repr(s))
	text := asciiDigits(Strip(s))
	switch strings.ToLower(strings.TrimLeft(text, "+-")) {
	case "inf", "infinity", "nan":
		if strings.Count(text, "+")+strings.Count(text, "-") > 1 {
			return 0, bad
		}
	default:
		if text == "" || strings.ContainsAny(text, "xXpPiInN") || !floatUnderscores(text) {
			return 0, bad
		}
	}
	f, err := strconv.ParseFloat(strings.ReplaceAll(text, "_", ""), 64)
	if err != nil && !math.IsInf(f, 0) { // too large a number is inf, not an error
		return 0, bad
	}
	return f, nil
}

func floatUnderscores(s string) bool {
	digit := func(i int) bool { return i >= 0 && i < len(s) && s[i] >= '0' && s[i] <= '9' }
	for i := range len(s) {
		if s[i] == '_' && (!digit(i-1) || !digit(i+1)) {
			return false
		}
	}
	return true
}

// Round implements Python's round(v, digits): it rounds half to even, and an int stays an int.
func Round(v any, digits int) (any, error) {
	if n, ok := asBig(v); ok {
		if digits >= 0 {
			return whole(n)
		}
		return whole(roundInt(n, -digits))
	}
	f, ok := v.(float64)
	switch {
	case !ok:
		return nil, typeError("type %s doesn't define __round__ method", TypeName(v))
	case math.IsInf(f, 0) || math.IsNaN(f) || digits > 323:
		return f, nil
	case digits < -308:
		return math.Copysign(0, f), nil
	case digits >= 0:
		rounded, err := strconv.ParseFloat(strconv.FormatFloat(f, 'f', digits, 64), 64)
		if err != nil {
			return nil, Raise("OverflowError", "rounded value too large to represent")
		}
		return rounded, nil
	}
	return roundTens(f, -digits), nil
}

// roundInt rounds to a multiple of ten to the given power, half to even.
func roundInt(n *big.Int, power int) *big.Int {
	if power > n.BitLen() {
		return new(big.Int)
	}
	unit := new(big.Int).Exp(big.NewInt(10), big.NewInt(int64(power)), nil)
	q, m := floorDivMod(n, unit)
	switch c := new(big.Int).Lsh(m, 1).Cmp(unit); {
	case c > 0, c == 0 && q.Bit(0) == 1:
		q.Add(q, big.NewInt(1))
	}
	return q.Mul(q, unit)
}

// roundTens rounds a float as roundInt does. The digits after the point only break a tie, so one digit can stand for
// them.
func roundTens(f float64, power int) float64 {
	whole, _ := big.NewFloat(math.Trunc(f)).Int(nil)
	whole.Mul(whole, big.NewInt(10))
	if f != math.Trunc(f) {
		whole.Add(whole, big.NewInt(int64(math.Copysign(1, f))))
	}
	rounded, _ := new(big.Float).SetInt(roundInt(whole, power+1)).Float64()
	return math.Copysign(rounded/10, f)
}
