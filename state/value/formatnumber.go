package value

import (
	"math"
	"math/big"
	"strconv"
	"strings"
	"unicode/utf8"
)

func (s *formatSpec) signOf(negative bool) string {
	switch {
	case negative:
		return "-"
	case s.sign == '+' || s.sign == ' ':
		return string(s.sign)
	}
	return ""
}

func (s *formatSpec) formatInt(n *big.Int, typeName string) (string, error) {
	switch s.verb {
	case 0, 'b', 'c', 'd', 'n', 'o', 'x', 'X':
	case 'e', 'E', 'f', 'F', 'g', 'G', '%':
		f, _, err := asFloat(n)
		if err != nil {
			return "", err
		}
		return s.formatFloat(f)
	default:
		return "", s.unknown(typeName)
	}
	switch {
	case s.precision >= 0:
		return "", valueError("Precision not allowed in integer format specifier")
	case s.group == ',' && s.verb != 0 && s.verb != 'd', s.group != 0 && (s.verb == 'c' || s.verb == 'n'):
		return "", valueError("Cannot specify '%c' with '%c'.", s.group, s.verb)
	case s.verb != 'c':
		return s.intText(n)
	case s.sign != 0:
		return "", valueError("Sign not allowed with integer format specifier 'c'")
	case !n.IsInt64() || n.Sign() < 0 || n.Int64() > utf8.MaxRune:
		return "", Raise("OverflowError", "%%c arg not in range(0x110000)")
	}
	if s.align == 0 {
		s.align = '<'
	}
	return s.text(string(rune(n.Int64())))
}

func (s *formatSpec) intText(n *big.Int) (string, error) {
	prefix, digits := s.digits(n)
	return s.number(s.signOf(n.Sign() < 0)+prefix, digits)
}

// digits returns the absolute value of n in the base of the verb, and the prefix of the alternate form.
func (s *formatSpec) digits(n *big.Int) (prefix, digits string) {
	base := map[byte]int{'b': 2, 'o': 8, 'x': 16, 'X': 16}[s.verb]
	if base == 0 {
		base = 10
	} else if s.alternate {
		prefix = "0" + string(s.verb)
	}
	digits = new(big.Int).Abs(n).Text(base)
	if s.verb == 'X' {
		digits = strings.ToUpper(digits)
	}
	return prefix, digits
}

// number joins sign, prefix, padding and digits. Digits may end in a point and decimals.
func (s *formatSpec) number(prefix, digits string) (string, error) {
	whole, decimals := digits, ""
	if i := strings.IndexAny(digits, ".e%"); i >= 0 && s.verb != 'x' && s.verb != 'X' {
		whole, decimals = digits[:i], digits[i:]
	}
	align := s.align
	fill := s.fillRune()
	if s.zero && s.fill == 0 && (align == 0 || align == '=' || align == '>') && isDigits(whole) {
		align, fill = '=', '0'
	}
	if align == 0 {
		align = '>'
	}
	if s.group != 0 {
		whole = s.grouped(whole, s.groupWidth(align, fill)-len(prefix)-len(decimals))
	}
	if align == '=' {
		padded, err := Pad(whole+decimals, s.width-len(prefix), fill, '>')
		return prefix + padded, err
	}
	return Pad(prefix+whole+decimals, s.width, fill, align)
}

func isDigits(s string) bool {
	return s != "inf" && s != "nan" && s != "INF" && s != "NAN"
}

// groupWidth returns the width to fill with zeros, which are grouped like the digits.
func (s *formatSpec) groupWidth(align byte, fill rune) int {
	if align == '=' && fill == '0' {
		return s.width
	}
	return 0
}

func (s *formatSpec) grouped(digits string, width int) string {
	size := 3
	if s.verb == 'b' || s.verb == 'o' || s.verb == 'x' || s.verb == 'X' {
		size = 4
	}
	if !isDigits(digits) {
		return digits
	}
	for grouped := len(digits) + (len(digits)-1)/size; grouped < width; grouped = len(digits) + (len(digits)-1)/size {
		digits = "0" + digits
	}
	var b strings.Builder
	for i := range len(digits) {
		if i > 0 && (len(digits)-i)%size == 0 {
			b.WriteByte(s.group)
		}
		b.WriteByte(digits[i])
	}
	return b.String()
}

func (s *formatSpec) formatFloat(f float64) (string, error) {
	switch s.verb {
	case 0, 'e', 'E', 'f', 'F', 'g', 'G', 'n', '%':
		return s.floatText(f)
	}
	return "", s.unknown("float")
}

func (s *formatSpec) floatText(f float64) (string, error) {
	negative := math.Signbit(f) && f == f
	text := s.magnitude(math.Abs(f))
	if s.noNegZero && strings.Trim(text, "0.%") == "" {
		negative = false
	}
	return s.number(s.signOf(negative), text)
}

func (s *formatSpec) magnitude(f float64) string {
	upper := s.verb == 'E' || s.verb == 'F' || s.verb == 'G'
	verb := s.verb | 0x20
	percent := ""
	if s.verb == '%' {
		f, verb, percent = f*100, 'f', "%"
	}
	text := "nan"
	switch {
	case math.IsInf(f, 0):
		text = "inf"
	case f != f:
	case s.verb == 0 && s.precision < 0:
		text = floatRepr(f)
	case verb == 'e' || verb == 'f':
		precision := s.precision
		if precision < 0 {
			precision = 6
		}
		text = strconv.FormatFloat(f, verb, precision, 64)
		if s.alternate && precision == 0 {
			text = withPoint(text)
		}
	default:
		text = s.general(f)
	}
	if upper {
		text = strings.ToUpper(text)
	}
	return text + percent
}

func withPoint(text string) string {
	if i := strings.IndexByte(text, 'e'); i >= 0 {
		return text[:i] + "." + text[i:]
	}
	return text + "."
}

// general formats a float with the g format: the exponent form for very large and very small numbers, and no zeros at
// the end. Without a type, a number in plain form keeps one decimal.
func (s *formatSpec) general(f float64) string {
	precision := s.precision
	if precision < 0 {
		precision = 6
	}
	precision = max(1, precision)
	scientific := strconv.FormatFloat(f, 'e', precision-1, 64)
	mantissa, exponent, _ := strings.Cut(scientific, "e")
	exp, _ := strconv.Atoi(exponent)
	limit := precision
	if s.verb == 0 {
		limit = max(1, precision-1)
	}
	if exp < -4 || exp >= limit && f != 0 {
		if !s.alternate {
			mantissa = trimZeros(mantissa)
		}
		return mantissa + "e" + exponent
	}
	text := strconv.FormatFloat(f, 'f', max(0, precision-1-exp), 64)
	if !s.alternate {
		text = trimZeros(text)
	}
	if s.verb == 0 && !strings.Contains(text, ".") {
		text += ".0"
	}
	return text
}

func trimZeros(s string) string {
	if !strings.Contains(s, ".") {
		return s
	}
	return strings.TrimRight(strings.TrimRight(s, "0"), ".")
}
