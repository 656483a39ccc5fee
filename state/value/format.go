package value

import (
	"strconv"
	"strings"
)

// FormatArgs holds the arguments of a format string.
type FormatArgs struct {
	Args   []any
	Kwargs *Map
	Attr   func(v any, name string) (any, error) // {0.name}
	Item   func(v any, key any) (any, error)     // {0[key]}
}

// Format implements Python's format.format(...).
func Format(format string, args FormatArgs) (string, error) {
	x := formatter{args: args}
	return x.expand(format, 2)
}

type formatter struct {
	args   FormatArgs
	next   int  // the number of the next {}
	auto   bool // a {} was seen
	manual bool // a {0} was seen
}

// expand replaces the fields of a format string. Depth is the remaining nesting of fields.
func (x *formatter) expand(format string, depth int) (string, error) {
	if depth < 0 {
		return "", valueError("Max string recursion exceeded")
	}
	var out strings.Builder
	for rest := format; rest != ""; {
		i := strings.IndexAny(rest, "{}")
		if i < 0 {
			out.WriteString(rest)
			break
		}
		out.WriteString(rest[:i])
		if i+1 < len(rest) && rest[i+1] == rest[i] {
			out.WriteByte(rest[i])
			rest = rest[i+2:]
			continue
		}
		if rest[i] == '}' {
			return "", valueError("Single '}' encountered in format string")
		}
		field, after, err := cutField(rest[i+1:])
		if err != nil {
			return "", err
		}
		text, err := x.field(field, depth)
		if err != nil {
			return "", err
		}
		out.WriteString(text)
		if err := checkText(out.Len()); err != nil {
			return "", err
		}
		rest = after
	}
	return out.String(), nil
}

// cutField splits s at the brace that closes the field. Braces inside brackets have no meaning.
func cutField(s string) (field, rest string, err error) {
	if s == "" {
		return "", "", valueError("Single '{' encountered in format string")
	}
	depth, bracket := 1, false
	for i := range len(s) {
		switch {
		case bracket:
			bracket = s[i] != ']'
		case s[i] == '[':
			bracket = depth == 1 && !strings.ContainsAny(s[:i], "!:")
		case s[i] == '{':
			depth++
		case s[i] == '}':
			if depth--; depth == 0 {
				return s[:i], s[i+1:], nil
			}
		}
	}
	return "", "", valueError("expected '}' before end of string")
}

// field formats one field, name!conversion:spec.
func (x *formatter) field(field string, depth int) (string, error) {
	name, conversion, spec, err := splitField(field)
	if err != nil {
		return "", err
	}
	v, err := x.lookup(name)
	if err != nil {
		return "", err
	}
	if conversion != 0 {
		if v, err = convert(v, conversion); err != nil {
			return "", err
		}
	}
	if strings.ContainsAny(spec, "{}") {
		if spec, err = x.expand(spec, depth-1); err != nil {
			return "", err
		}
	}
	return FormatValue(v, spec)
}

func splitField(field string) (name string, conversion byte, spec string, err error) {
	end := len(field)
	bracket := false
	for i := range len(field) {
		if bracket {
			bracket = field[i] != ']'
			continue
		}
		bracket = field[i] == '['
		if field[i] == '!' || field[i] == ':' {
			end = i
			break
		}
	}
	name, rest := field[:end], field[end:]
	if strings.ContainsAny(name, "{") {
		return "", 0, "", valueError("unexpected '{' in field name")
	}
	if strings.HasPrefix(rest, "!") {
		switch {
		case len(rest) == 1:
			return "", 0, "", valueError("end of string while looking for conversion specifier")
		case len(rest) > 2 && rest[2] != ':':
			return "", 0, "", valueError("expected ':' after conversion specifier")
		}
		conversion, rest = rest[1], rest[2:]
	}
	return name, conversion, strings.TrimPrefix(rest, ":"), nil
}

// convert implements !s, !r and !a.
func convert(v any, conversion byte) (string, error) {
	switch conversion {
	case 's':
		return ToStr(v)
	case 'r':
		return Repr(v), nil
	case 'a':
		return ascii(Repr(v)), nil
	}
	return "", valueError("Unknown conversion specifier '%c'", conversion)
}

// ascii escapes the same characters as Python's ascii().
func ascii(s string) string {
	quoted := strconv.QuoteToASCII(s)
	quoted = quoted[1 : len(quoted)-1]
	return strings.NewReplacer(`\"`, `"`, `\\`, `\`).Replace(quoted)
}

// lookup returns the value of a field name such as name.attribute[item].
func (x *formatter) lookup(name string) (any, error) {
	end := strings.IndexAny(name, ".[")
	if end < 0 {
		end = len(name)
	}
	v, err := x.first(name[:end])
	if err != nil {
		return nil, err
	}
	for rest := name[end:]; rest != ""; {
		if rest[0] == '[' {
			key, after, found := strings.Cut(rest[1:], "]")
			if !found {
				return nil, valueError("Missing ']' in format string")
			}
			if key == "" {
				return nil, valueError("Empty attribute in format string")
			}
			if v, err = x.args.Item(v, indexOrName(key)); err != nil {
				return nil, err
			}
			rest = after
			if rest != "" && rest[0] != '.' && rest[0] != '[' {
				return nil, valueError("Only '.' or '[' may follow ']' in format field specifier")
			}
			continue
		}
		attr := rest[1:]
		if i := strings.IndexAny(attr, ".["); i >= 0 {
			attr = attr[:i]
		}
		if attr == "" {
			return nil, valueError("Empty attribute in format string")
		}
		if v, err = x.args.Attr(v, attr); err != nil {
			return nil, err
		}
		rest = rest[1+len(attr):]
	}
	return v, nil
}

func indexOrName(key string) any {
	if n, err := strconv.Atoi(key); err == nil && key[0] >= '0' && key[0] <= '9' {
		return n
	}
	return key
}

func (x *formatter) first(name string) (any, error) {
	index, isIndex := indexOrName(name).(int)
	if name == "" {
		index, isIndex = x.next, true
		x.next++
		x.auto = true
	} else if isIndex {
		x.manual = true
	}
	if x.auto && x.manual {
		return nil, valueError("cannot switch between manual field specification and automatic field numbering")
	}
	if isIndex {
		if index >= len(x.args.Args) {
			return nil, Raise("IndexError", "Replacement index %d out of range for positional args tuple", index)
		}
		return x.args.Args[index], nil
	}
	if v, ok := x.args.Kwargs.Get(name); ok {
		return v, nil
	}
	return nil, Raise("KeyError", "%s", Repr(name))
}
