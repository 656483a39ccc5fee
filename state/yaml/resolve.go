package yaml

import (
	"math"
	"math/big"
	"strconv"
	"strings"

	"github.com/corpus-agent/corpus-agent/state/value"
)

// implicit converts an unquoted scalar to its YAML 1.1 type, with Salt's two changes: digits after a leading zero are
// decimal, and a date stays text. Typed is false for a string.
func implicit(text string) (v any, typed bool) {
	if text == "" {
		return nil, true
	}
	switch c := text[0]; {
	case c >= '0' && c <= '9' || c == '-' || c == '+' || c == '.':
		return number(text)
	case c == '~' && len(text) == 1:
		return nil, true
	case len(text) <= 5 && strings.IndexByte("yYnNtTfFoO", c) >= 0:
		return word(text)
	}
	return nil, false
}

// specialOf returns the special meaning of a word as a key.
func specialOf(text string) special {
	switch text {
	case "<<":
		return mergeKey
	case "=":
		return valueKey
	}
	return ordinary
}

// word returns the value of a word that is not a string.
func word(text string) (v any, typed bool) {
	switch text {
	case "yes", "Yes", "YES", "true", "True", "TRUE", "on", "On", "ON":
		return true, true
	case "no", "No", "NO", "false", "False", "FALSE", "off", "Off", "OFF":
		return false, true
	case "null", "Null", "NULL":
		return nil, true
	}
	return nil, false
}

// number reads an int or a float.
func number(text string) (any, bool) {
	if v, ok := decimal(text); ok {
		return v, true
	}
	if !numberBytes(text) {
		return nil, false
	}
	sign, body := "", text
	if body[0] == '+' || body[0] == '-' {
		sign, body = body[:1], body[1:]
	}
	switch {
	case body == "":
		return nil, false
	case isInt(body):
		v, err := parseInt(text)
		return v, err == nil
	case isFloat(sign, body):
		v, err := parseFloat(text)
		return v, err == nil
	}
	return nil, false
}

// decimal reads a short decimal integer, on a fast path.
func decimal(text string) (any, bool) {
	if len(text) > 15 || text[0] == '0' && len(text) > 1 {
		return nil, false
	}
	n := 0
	for i := range len(text) {
		if text[i] < '0' || text[i] > '9' {
			return nil, false
		}
		n = n*10 + int(text[i]-'0')
	}
	return n, true
}

// numberBytes reports whether all bytes of a text can be part of a number. It excludes most texts that only start like
// one.
func numberBytes(text string) bool {
	for i := range len(text) {
		c := text[i]
		ok := c >= '0' && c <= '9' || c >= 'a' && c <= 'f' || c >= 'A' && c <= 'F' ||
			strings.IndexByte("+-._:xinIN", c) >= 0
		if !ok {
			return false
		}
	}
	return true
}

// isInt reports whether text without a sign is an int.
func isInt(s string) bool {
	switch {
	case strings.HasPrefix(s, "0b"):
		return len(s) > 2 && only(s[2:], "01_")
	case strings.HasPrefix(s, "0x"):
		return len(s) > 2 && only(s[2:], "0123456789abcdefABCDEF_")
	case s[0] == '0':
		return only(s[1:], "01234567_")
	case s[0] < '1' || s[0] > '9':
		return false
	}
	head, rest, sexagesimal := strings.Cut(s, ":")
	if !only(head, "0123456789_") {
		return false
	}
	return !sexagesimal || isSixties(rest)
}

// isSixties reports whether s is a number in base sixty: numbers below sixty with colons between.
func isSixties(s string) bool {
	for part := range strings.SplitSeq(s, ":") {
		if part == "" || len(part) > 2 || !only(part, "0123456789") || len(part) == 2 && part[0] > '5' {
			return false
		}
	}
	return true
}

func only(s, bytes string) bool {
	for i := range len(s) {
		if strings.IndexByte(bytes, s[i]) < 0 {
			return false
		}
	}
	return true
}

func isFloat(sign, s string) bool {
	switch s {
	case ".inf", ".Inf", ".INF":
		return true
	case ".nan", ".NaN", ".NAN":
		return sign == ""
	}
	whole, fraction, point := strings.Cut(s, ".")
	if !point {
		return false
	}
	if head, rest, sexagesimal := strings.Cut(whole, ":"); sexagesimal {
		return isDigits(head) && isSixties(rest) && only(fraction, "0123456789_")
	}
	mantissa := fraction
	if i := strings.IndexAny(fraction, "eE"); i >= 0 {
		exponent := fraction[i+1:]
		if len(exponent) < 2 || exponent[0] != '+' && exponent[0] != '-' || !only(exponent[1:], "0123456789") {
			return false
		}
		mantissa = fraction[:i]
	}
	if whole == "" {
		return sign == "" && isDigits(mantissa)
	}
	return isDigits(whole) && only(mantissa, "0123456789_")
}

// isDigits reports whether s is a digit, and digits and underscores after it.
func isDigits(s string) bool {
	return s != "" && s[0] >= '0' && s[0] <= '9' && only(s, "0123456789_")
}

// parseInt parses an int, or text with the tag !!int.
func parseInt(text string) (any, error) {
	if text != "0" && strings.HasPrefix(text, "0") && !strings.HasPrefix(text, "0b") && !strings.HasPrefix(text, "0x") {
		if text = strings.TrimLeft(text, "0"); text == "" { // 0644 is a file mode: keep its digits
			text = "0"
		}
	}
	return parsePlainInt(text)
}

// parsePlainInt parses an int by the rules of YAML 1.1: digits after a leading zero are octal.
func parsePlainInt(text string) (any, error) {
	text = strings.ReplaceAll(text, "_", "")
	negative := strings.HasPrefix(text, "-")
	body := strings.TrimPrefix(strings.TrimPrefix(text, "-"), "+")
	var v any
	var err error
	switch {
	case body == "0":
		return 0, nil
	case strings.HasPrefix(body, "0b"):
		v, err = value.ParseInt(body[2:], 2)
	case strings.HasPrefix(body, "0x"):
		v, err = value.ParseInt(body[2:], 16)
	case strings.HasPrefix(body, "0"):
		v, err = value.ParseInt(body, 8)
	case strings.Contains(body, ":"):
		v, err = sixtiesInt(body)
	default:
		v, err = value.ParseInt(body, 10)
	}
	if err == nil && negative {
		return value.Neg(v)
	}
	return v, err
}

func sixtiesInt(s string) (any, error) {
	n := new(big.Int)
	for part := range strings.SplitSeq(s, ":") {
		digit, err := strconv.Atoi(part)
		if err != nil {
			return nil, err
		}
		n.Mul(n, big.NewInt(60)).Add(n, big.NewInt(int64(digit)))
	}
	if n.IsInt64() {
		return int(n.Int64()), nil
	}
	return n, nil
}

// parseFloat parses a float, or text with the tag !!float.
func parseFloat(text string) (any, error) {
	text = strings.ToLower(strings.ReplaceAll(text, "_", ""))
	sign := 1.0
	if strings.HasPrefix(text, "-") {
		sign = -1
	}
	body := text
	if strings.HasPrefix(text, "-") || strings.HasPrefix(text, "+") {
		body = text[1:]
	}
	switch {
	case body == ".inf":
		return math.Inf(int(sign)), nil
	case body == ".nan":
		return math.NaN(), nil
	case !strings.Contains(body, ":"):
		f, err := value.ParseFloat(body)
		return sign * f, err
	}
	total := 0.0
	for part := range strings.SplitSeq(body, ":") {
		f, err := value.ParseFloat(part)
		if err != nil {
			return nil, err
		}
		total = total*60 + f
	}
	return sign * total, nil
}
