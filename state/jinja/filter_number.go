package jinja

import (
	"fmt"
	"math"
	"math/big"
	"strconv"
	"strings"

	"github.com/corpus-agent/corpus-agent/state/value"
)

func absFilter(c *Call) (any, error) {
	v := c.Args[0]
	if err := refused(v); err != nil {
		return nil, typeError("bad operand type for abs(): 'StrictUndefined'")
	}
	switch n := v.(type) {
	case float64:
		return math.Abs(n), nil
	case int, bool, *big.Int:
		if negative, err := value.Compare(n, 0); err != nil || negative >= 0 {
			return value.Pos(n)
		}
		return value.Neg(n)
	}
	return nil, typeError("bad operand type for abs(): '" + value.TypeName(v) + "'")
}

func fileSizeFilter(c *Call) (any, error) {
	if err := refused(c.Args[0]); err != nil {
		return nil, err
	}
	size, err := value.ToFloat(c.Args[0])
	if err != nil {
		return nil, err
	}
	binary, err := c.Bool(1)
	if err != nil {
		return nil, err
	}
	base, prefixes := 1000.0, []string{"kB", "MB", "GB", "TB", "PB", "EB", "ZB", "YB"}
	if binary {
		base, prefixes = 1024, []string{"KiB", "MiB", "GiB", "TiB", "PiB", "EiB", "ZiB", "YiB"}
	}
	switch {
	case size == 1:
		return "1 Byte", nil
	case size < base:
		return fmt.Sprintf("%d Bytes", int(size)), nil
	}
	unit := base
	for i, prefix := range prefixes {
		if unit *= base; size < unit || i == len(prefixes)-1 {
			return fmt.Sprintf("%.1f %s", base*size/unit, prefix), nil
		}
	}
	return "", nil
}

// failsToConvert reports whether err is one for which the filters int and float return their default.
func failsToConvert(err error) bool { return isKind(err, "TypeError", "ValueError") }

func intFilter(c *Call) (any, error) {
	v := c.Args[0]
	if err := refused(v); err != nil {
		return nil, err
	}
	base, err := c.Int(2)
	if err != nil {
		return nil, err
	}
	var n any
	if s, ok := v.(string); ok {
		n, err = value.ParseInt(s, base)
	} else {
		n, err = value.ToInt(v)
	}
	if err == nil || !failsToConvert(err) {
		return n, err
	}
	f, err := value.ToFloat(v)
	if err == nil {
		n, err = value.ToInt(f)
	}
	if failsToConvert(err) {
		return c.Args[1], nil
	}
	return n, err
}

func floatFilter(c *Call) (any, error) {
	if err := refused(c.Args[0]); err != nil {
		return nil, err
	}
	f, err := value.ToFloat(c.Args[0])
	if failsToConvert(err) {
		return c.Args[1], nil
	}
	return f, err
}

func roundFilter(c *Call) (any, error) {
	method, _ := c.Args[2].(string)
	if method != "common" && method != "ceil" && method != "floor" {
		return nil, raise("FilterArgumentError", "method must be common, ceil or floor")
	}
	v := c.Args[0]
	if method == "common" && c.Args[1] != nil {
		precision, err := c.Int(1)
		if err != nil {
			return nil, err
		}
		if isUndefined(v) {
			return nil, typeError("type StrictUndefined doesn't define __round__ method")
		}
		return value.Round(v, precision)
	}
	if err := refused(v); err != nil {
		return nil, err
	}
	power, err := value.Pow(10, c.Args[1])
	if err != nil {
		return nil, err
	}
	scaled, err := value.Mul(v, power)
	if err != nil {
		return nil, err
	}
	f, err := value.ToFloat(scaled)
	if _, text := scaled.(string); err != nil || text {
		return nil, typeError("must be real number, not " + value.TypeName(scaled))
	}
	if method == "ceil" {
		f = math.Ceil(f)
	} else {
		f = math.Floor(f)
	}
	whole, err := value.ToInt(f)
	if err != nil {
		return nil, err
	}
	return value.Div(whole, power)
}

// hexFloat formats a float as Python's float.hex does; its exponent has no leading zero.
func hexFloat(f float64) string {
	s := strconv.FormatFloat(f, 'x', 13, 64)
	if f == 0 {
		return strings.Replace(s, "0x0.0000000000000p+00", "0x0.0p+0", 1)
	}
	for _, sign := range []string{"p+0", "p-0"} {
		s = strings.Replace(s, sign, sign[:2], 1)
	}
	return s
}
