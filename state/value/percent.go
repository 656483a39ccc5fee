package value

import (
	"math/big"
	"strings"
	"unicode/utf8"
)

// Percent implements Python's format % args. A tuple gives several arguments, a mapping the named ones of %(name)s, and
// anything else is the only argument.
func Percent(format string, args any) (string, error) {
	p := percent{rest: format, args: []any{args}}
	if t, ok := args.(Tuple); ok {
		p.args = t
	}
	p.named, _ = args.(*Map)
	for p.rest != "" {
		literal, after, found := strings.Cut(p.rest, "%")
		p.out.WriteString(literal)
		if !found {
			break
		}
		p.rest = after
		if err := p.directive(); err != nil {
			return "", err
		}
		if err := checkText(p.out.Len()); err != nil {
			return "", err
		}
	}
	if p.used < len(p.args) && !hasItems(args) {
		return "", typeError("not all arguments converted during string formatting")
	}
	return p.out.String(), nil
}

// hasItems reports whether a value can have items for %(name)s. For such a value, unused arguments are no error.
func hasItems(v any) bool {
	switch v := v.(type) {
	case *Map, *List, []byte:
		return true
	case Object:
		return v.PyType() == "StrictUndefined" || v.PyType() == "Undefined" || v.PyType() == "range"
	}
	return false
}

type percent struct {
	out   strings.Builder
	rest  string
	args  []any
	used  int
	named *Map
}

// directive formats the directive after a percent sign.
func (p *percent) directive() error {
	var spec formatSpec
	var arg any
	named := strings.HasPrefix(p.rest, "(")
	if named {
		var err error
		if arg, err = p.key(); err != nil {
			return err
		}
	}
	p.flags(&spec)
	if err := p.size(&spec); err != nil {
		return err
	}
	p.rest = strings.TrimLeft(p.rest, "hlL")
	verb, size := utf8.DecodeRuneInString(p.rest)
	if size == 0 {
		return valueError("incomplete format")
	}
	p.rest = p.rest[size:]
	if verb == '%' {
		p.out.WriteByte('%')
		return nil
	}
	if !strings.ContainsRune("diouxXeEfFgGcrsa", verb) {
		return valueError("unsupported format character '%c' (0x%x)", verb, verb)
	}
	if !named {
		var err error
		if arg, err = p.next(); err != nil {
			return err
		}
	}
	text, err := percentValue(arg, byte(verb), &spec)
	p.out.WriteString(text)
	return err
}

func (p *percent) key() (any, error) {
	if p.named == nil {
		return nil, typeError("format requires a mapping")
	}
	depth := 0
	for i := range len(p.rest) {
		switch p.rest[i] {
		case '(':
			depth++
		case ')':
			if depth--; depth == 0 {
				name := p.rest[1:i]
				p.rest = p.rest[i+1:]
				if v, ok := p.named.Get(name); ok {
					return v, nil
				}
				return nil, Raise("KeyError", "%s", Repr(name))
			}
		}
	}
	return nil, valueError("incomplete format key")
}

func (p *percent) next() (any, error) {
	if p.used >= len(p.args) {
		return nil, typeError("not enough arguments for format string")
	}
	p.used++
	return p.args[p.used-1], nil
}

func (p *percent) flags(spec *formatSpec) {
	for ; p.rest != ""; p.rest = p.rest[1:] {
		switch p.rest[0] {
		case '-':
			spec.align = '<'
		case '+':
			spec.sign = '+'
		case ' ':
			if spec.sign == 0 {
				spec.sign = ' '
			}
		case '#':
			spec.alternate = true
		case '0':
			spec.zero = true
		default:
			return
		}
	}
}

func (p *percent) size(spec *formatSpec) (err error) {
	if spec.width, err = p.number(); err != nil {
		return err
	}
	if spec.width < 0 {
		spec.width, spec.align = -spec.width, '<'
	}
	spec.precision = -1
	if strings.HasPrefix(p.rest, ".") {
		p.rest = p.rest[1:]
		spec.precision, err = p.number()
		spec.precision = max(0, spec.precision)
	}
	return err
}

// number parses digits, or returns the next argument for a star.
func (p *percent) number() (int, error) {
	if strings.HasPrefix(p.rest, "*") {
		p.rest = p.rest[1:]
		arg, err := p.next()
		if err != nil {
			return 0, err
		}
		n, ok := AsInt(arg)
		if !ok {
			return 0, typeError("* wants int")
		}
		return n, checkText(max(n, -n))
	}
	n, rest, err := leadingNumber(p.rest)
	p.rest = rest
	return n, err
}

func percentValue(v any, verb byte, spec *formatSpec) (string, error) {
	if spec.align == 0 {
		spec.align = '>'
	}
	switch verb {
	case 's', 'r', 'a':
		return percentText(v, verb, spec)
	case 'c':
		return percentChar(v, spec)
	case 'd', 'i', 'u', 'o', 'x', 'X':
		return percentInt(v, verb, spec)
	}
	f, ok, err := asFloat(v)
	if !ok {
		return "", typeError("must be real number, not %s", TypeName(v))
	}
	if err != nil {
		return "", err
	}
	spec.verb = verb
	return spec.floatText(f)
}

func percentText(v any, verb byte, spec *formatSpec) (string, error) {
	text, err := convert(v, verb)
	if err != nil {
		return "", err
	}
	spec.zero = false
	return spec.text(text)
}

func percentChar(v any, spec *formatSpec) (string, error) {
	text, ok := v.(string)
	if n, isInt := AsInt(v); isInt {
		if n < 0 || n > utf8.MaxRune {
			return "", Raise("OverflowError", "%%c arg not in range(0x110000)")
		}
		text, ok = string(rune(n)), true
	}
	if !ok || utf8.RuneCountInString(text) != 1 {
		return "", typeError("%%c requires int or char")
	}
	spec.zero, spec.precision = false, -1
	return spec.text(text)
}

func percentInt(v any, verb byte, spec *formatSpec) (string, error) {
	decimal := strings.IndexByte("diu", verb) >= 0
	if f, ok := v.(float64); ok && decimal {
		whole, err := truncate(f)
		if err != nil {
			return "", err
		}
		v = whole
	}
	n, ok := asBig(v)
	if !ok && decimal {
		return "", typeError("%%%c format: a real number is required, not %s", verb, TypeName(v))
	}
	if !ok {
		return "", typeError("%%%c format: an integer is required, not %s", verb, TypeName(v))
	}
	spec.verb = verb
	if decimal {
		spec.verb = 'd'
	}
	return spec.intDigits(n)
}

// intDigits formats an int for a percent directive, in which the precision is the minimum number of digits.
func (s *formatSpec) intDigits(n *big.Int) (string, error) {
	least := s.precision
	s.precision = -1
	if least < 0 {
		return s.intText(n)
	}
	if err := checkText(least); err != nil {
		return "", err
	}
	prefix, digits := s.digits(n)
	digits = strings.Repeat("0", max(0, least-len(digits))) + digits
	return s.number(s.signOf(n.Sign() < 0)+prefix, digits)
}
