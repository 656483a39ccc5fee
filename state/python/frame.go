package python

import (
	"bytes"
	"encoding/base64"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"math/big"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/corpus-agent/corpus-agent/state/value"
)

// maxFrame is the maximum length of a message in bytes, in each direction.
const maxFrame = 64 << 20

// A frame is the length of a message in four bytes, the highest first, and the message.
const frameHead = 4

// readFrame reads one message. It allocates memory for the bytes that arrive, not for the length that the message
// claims.
func readFrame(r io.Reader) ([]byte, error) {
	var head [frameHead]byte
	if _, err := io.ReadFull(r, head[:]); err != nil {
		return nil, err
	}
	n := binary.BigEndian.Uint32(head[:])
	if n > maxFrame {
		return nil, fmt.Errorf("a message of %d bytes, and at most %d are read", n, maxFrame)
	}
	var b bytes.Buffer
	if _, err := io.CopyN(&b, r, int64(n)); err != nil {
		if errors.Is(err, io.EOF) {
			err = io.ErrUnexpectedEOF
		}
		return nil, err
	}
	return b.Bytes(), nil
}

func writeFrame(w io.Writer, message []byte) error {
	if len(message) > maxFrame {
		return fmt.Errorf("a message of %d bytes, and at most %d are sent", len(message), maxFrame)
	}
	frame := binary.BigEndian.AppendUint32(make([]byte, 0, frameHead+len(message)), uint32(len(message)))
	_, err := w.Write(append(frame, message...))
	return err
}

// A value that JSON does not have is written as an object with one key that begins with a dollar sign, such as
// {"$bytes": "..."}. A mapping that has such a key itself is written as a list of its items.
const (
	tagOrdered = "$o"      // an ordered mapping whose keys are strings
	tagItems   = "$items"  // a plain mapping, as a list of keys and values
	tagOItems  = "$oitems" // an ordered mapping, likewise
	tagTuple   = "$tuple"
	tagBytes   = "$bytes"
	tagText    = "$text" // a string that is not Unicode
	tagFloat   = "$float"
	tagObject  = "$object"
)

// encode writes a value as the worker reads it.
func encode(v any) ([]byte, error) {
	var b bytes.Buffer
	if err := write(&b, v, 0); err != nil {
		return nil, err
	}
	return b.Bytes(), nil
}

// maxDepth is the maximum nesting of a value that is sent.
const maxDepth = 200

func write(b *bytes.Buffer, v any, depth int) error {
	if depth > maxDepth {
		return fmt.Errorf("a value is nested more than %d levels deep, or contains itself", maxDepth)
	}
	switch v := v.(type) {
	case nil:
		b.WriteString("null")
	case bool:
		b.WriteString(strconv.FormatBool(v))
	case int:
		b.WriteString(strconv.Itoa(v))
	case *big.Int:
		b.WriteString(v.String())
	case float64:
		writeFloat(b, v)
	case string:
		writeText(b, v)
	case []byte:
		tagged(b, tagBytes, strconv.Quote(base64.StdEncoding.EncodeToString(v)))
	case *value.List:
		return writeItems(b, v.Items, depth)
	case value.Tuple:
		b.WriteString(`{"` + tagTuple + `":`)
		err := writeItems(b, v, depth)
		b.WriteByte('}')
		return err
	case *value.Map:
		return writeMap(b, v, depth)
	case interface{ message() *value.List }:
		b.WriteString(`{"` + tagObject + `":`)
		err := writeItems(b, v.message().Items, depth)
		b.WriteByte('}')
		return err
	default:
		writeText(b, value.Str(v)) // a value that only templates have, such as an undefined variable
	}
	return nil
}

func tagged(b *bytes.Buffer, tag, body string) { b.WriteString(`{"` + tag + `":` + body + `}`) }

func writeFloat(b *bytes.Buffer, v float64) {
	if math.IsNaN(v) || math.IsInf(v, 0) {
		tagged(b, tagFloat, strconv.Quote(strconv.FormatFloat(v, 'g', -1, 64)))
		return
	}
	text := strconv.FormatFloat(v, 'g', -1, 64)
	b.WriteString(text)
	if !strings.ContainsAny(text, ".e") {
		b.WriteString(".0")
	}
}

func writeText(b *bytes.Buffer, s string) {
	if !utf8.ValidString(s) {
		tagged(b, tagText, strconv.Quote(base64.StdEncoding.EncodeToString([]byte(s))))
		return
	}
	e := json.NewEncoder(b)
	e.SetEscapeHTML(false)
	_ = e.Encode(s)         // a valid string
	b.Truncate(b.Len() - 1) // the encoder ends with a newline
}

func writeItems(b *bytes.Buffer, items []any, depth int) error {
	b.WriteByte('[')
	for i, item := range items {
		if i > 0 {
			b.WriteByte(',')
		}
		if err := write(b, item, depth+1); err != nil {
			return err
		}
	}
	b.WriteByte(']')
	return nil
}

// simple reports whether a mapping can be a JSON object.
func simple(m *value.Map) bool {
	for k := range m.All() {
		s, ok := k.(string)
		if !ok || strings.HasPrefix(s, "$") || !utf8.ValidString(s) {
			return false
		}
	}
	return true
}

func writeMap(b *bytes.Buffer, m *value.Map, depth int) error {
	ordered := !m.IsPlain()
	if !simple(m) {
		tag := tagItems
		if ordered {
			tag = tagOItems
		}
		items := value.NewList()
		for k, v := range m.All() {
			items.Append(value.NewList(k, v))
		}
		b.WriteString(`{"` + tag + `":`)
		err := writeItems(b, items.Items, depth)
		b.WriteByte('}')
		return err
	}
	if ordered {
		b.WriteString(`{"` + tagOrdered + `":`)
		defer b.WriteByte('}')
	}
	b.WriteByte('{')
	first := true
	for k, v := range m.All() {
		if !first {
			b.WriteByte(',')
		}
		first = false
		writeText(b, k.(string))
		b.WriteByte(':')
		if err := write(b, v, depth+1); err != nil {
			return err
		}
	}
	b.WriteByte('}')
	return nil
}

// decode reads a value that the worker wrote. Mappings are plain unless they say that they are ordered.
func decode(data []byte, w *Worker) (any, error) {
	v, err := value.FromJSON(data)
	if err != nil {
		return nil, err
	}
	return untag(v, w)
}

func untag(v any, w *Worker) (any, error) {
	switch v := v.(type) {
	case *value.List:
		return v, untagItems(v.Items, w)
	case *value.Map:
		if v.Len() == 1 {
			if tag := v.Names()[0]; strings.HasPrefix(tag, "$") {
				return untagged(tag, v.Value(tag), w)
			}
		}
		v.Plain()
		for _, k := range v.Names() {
			item, err := untag(v.Value(k), w)
			if err != nil {
				return nil, err
			}
			v.Set(k, item)
		}
	}
	return v, nil
}

func untagItems(items []any, w *Worker) error {
	for i, item := range items {
		v, err := untag(item, w)
		if err != nil {
			return err
		}
		items[i] = v
	}
	return nil
}

// untagged returns the value that a tag and its body stand for.
func untagged(tag string, body any, w *Worker) (any, error) {
	switch tag {
	case tagOrdered:
		return orderedMap(body, w)
	case tagItems, tagOItems:
		return itemsMap(body, tag == tagOItems, w)
	case tagTuple:
		if l, ok := body.(*value.List); ok {
			return value.Tuple(l.Items), untagItems(l.Items, w)
		}
	case tagBytes, tagText:
		if text, ok := body.(string); ok {
			data, err := base64.StdEncoding.DecodeString(text)
			if tag == tagText {
				return string(data), err
			}
			return data, err
		}
	case tagFloat:
		if text, ok := body.(string); ok {
			return strconv.ParseFloat(text, 64)
		}
	case tagObject:
		if l, ok := body.(*value.List); ok {
			return newObject(l.Items, w)
		}
	}
	return nil, fmt.Errorf("a message has %s with a %s", tag, value.TypeName(body))
}

func orderedMap(body any, w *Worker) (any, error) {
	inner, ok := body.(*value.Map)
	if !ok {
		return nil, fmt.Errorf("a message has %s with a %s", tagOrdered, value.TypeName(body))
	}
	m := value.MakeMap(inner.Len())
	for k, item := range inner.All() {
		v, err := untag(item, w)
		if err != nil {
			return nil, err
		}
		m.Set(k.(string), v)
	}
	return m, nil
}

func itemsMap(body any, ordered bool, w *Worker) (any, error) {
	l, ok := body.(*value.List)
	if !ok {
		return nil, fmt.Errorf("a message has items that are a %s", value.TypeName(body))
	}
	if err := untagItems(l.Items, w); err != nil {
		return nil, err
	}
	m := value.MakeMap(l.Len())
	if !ordered {
		m.Plain()
	}
	for _, item := range l.Items {
		pair, ok := item.(*value.List)
		if !ok || pair.Len() != 2 {
			return nil, errors.New("a message has an item that is no pair")
		}
		if err := m.SetKey(pair.Items[0], pair.Items[1]); err != nil {
			return nil, err
		}
	}
	return m, nil
}
