package value

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/big"
	"strconv"
)

// MarshalJSON writes the mapping in its own order. Keys that are not strings are written as
// Python's json module writes them.
func (m *Map) MarshalJSON() ([]byte, error) {
	var b bytes.Buffer
	b.WriteByte('{')
	first := true
	for k, v := range m.All() {
		if !first {
			b.WriteByte(',')
		}
		first = false
		if err := writeMember(&b, k, v); err != nil {
			return nil, err
		}
	}
	b.WriteByte('}')
	return b.Bytes(), nil
}

// UnmarshalJSON reads an object, keeping the order of its members.
func (m *Map) UnmarshalJSON(data []byte) error {
	v, err := FromJSON(data)
	if err != nil {
		return err
	}
	object, ok := v.(*Map)
	if v != nil && !ok {
		return fmt.Errorf("an object was expected, not a %s", TypeName(v))
	}
	if object != nil {
		*m = *object
	}
	return nil
}

func writeMember(b *bytes.Buffer, k, v any) error {
	name, err := JSONKey(k)
	if err != nil {
		return err
	}
	if err := encode(b, name); err != nil {
		return err
	}
	b.WriteByte(':')
	return encode(b, v)
}

// encode writes v as JSON. It does not escape <, > and &, since the output is not part of HTML.
func encode(b *bytes.Buffer, v any) error {
	e := json.NewEncoder(b)
	e.SetEscapeHTML(false)
	if err := e.Encode(v); err != nil {
		return err
	}
	b.Truncate(b.Len() - 1) // the encoder ends with a newline
	return nil
}

// JSONKey returns the member name that Python's json module writes for a key.
func JSONKey(k any) (string, error) {
	switch k := k.(type) {
	case string:
		return k, nil
	case nil:
		return "null", nil
	case bool:
		return strconv.FormatBool(k), nil
	case int, float64, *big.Int:
		return Repr(k), nil
	}
	return "", fmt.Errorf("keys must be str, int, float, bool or None, not %s", TypeName(k))
}

// MarshalJSON writes the items.
func (l *List) MarshalJSON() ([]byte, error) { return Tuple(l.Items).MarshalJSON() }

// MarshalJSON writes the items.
func (t Tuple) MarshalJSON() ([]byte, error) {
	var b bytes.Buffer
	b.WriteByte('[')
	for i, item := range t {
		if i > 0 {
			b.WriteByte(',')
		}
		if err := encode(&b, item); err != nil {
			return nil, err
		}
	}
	b.WriteByte(']')
	return b.Bytes(), nil
}

// jsonDepth is the maximum nesting of a JSON document, about the same as Python's.
const jsonDepth = 1000

// FromJSON reads one JSON document, keeping the order of members. Anything after the document is
// an error, and so is one that is nested more than 1000 deep.
func FromJSON(data []byte) (any, error) {
	d := json.NewDecoder(bytes.NewReader(data))
	d.UseNumber()
	v, err := readJSON(d, 0)
	if err != nil {
		return nil, err
	}
	if _, err := d.Token(); !errors.Is(err, io.EOF) {
		return nil, fmt.Errorf("more data after the JSON document at offset %d", d.InputOffset())
	}
	return v, nil
}

func readJSON(d *json.Decoder, depth int) (any, error) {
	token, err := d.Token()
	if err != nil {
		if errors.Is(err, io.EOF) {
			return nil, io.ErrUnexpectedEOF
		}
		return nil, err
	}
	switch t := token.(type) {
	case json.Delim:
		if depth == jsonDepth {
			return nil, fmt.Errorf("the document is nested more than %d levels deep, at offset %d", jsonDepth, d.InputOffset())
		}
		if t == '{' {
			return readObject(d, depth+1)
		}
		return readArray(d, depth+1)
	case json.Number:
		return number(t.String())
	}
	return token, nil
}

func readObject(d *json.Decoder, depth int) (any, error) {
	m := NewMap()
	for d.More() {
		key, err := d.Token()
		if err != nil {
			return nil, err
		}
		v, err := readJSON(d, depth)
		if err != nil {
			return nil, err
		}
		m.Set(key.(string), v)
	}
	_, err := d.Token()
	return m, err
}

func readArray(d *json.Decoder, depth int) (any, error) {
	l := NewList()
	for d.More() {
		v, err := readJSON(d, depth)
		if err != nil {
			return nil, err
		}
		l.Append(v)
	}
	_, err := d.Token()
	return l, err
}

func number(s string) (any, error) {
	if n, err := strconv.Atoi(s); err == nil {
		return n, nil
	}
	if n, ok := new(big.Int).SetString(s, 10); ok {
		return n, nil
	}
	return strconv.ParseFloat(s, 64)
}
