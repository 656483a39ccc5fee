package file

import (
	"encoding/base64"
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/corpus-agent/corpus-agent/state/value"
)

const plistHead = `<?xml version="1.0" encoding="UTF-8"?>
<!DOCTYPE plist PUBLIC "-//Apple//DTD PLIST 1.0//EN" "http://www.apple.com/DTDs/PropertyList-1.0.dtd">
<plist version="1.0">
`

// dumpPlist writes an XML property list, the keys of mappings sorted by default.
func dumpPlist(v any, o dumpOptions) (string, error) {
	p := &plist{sort: o.flag("sort_keys", true)}
	p.text.WriteString(plistHead)
	err := p.write(v, 0)
	p.text.WriteString("</plist>")
	return p.text.String(), err
}

type plist struct {
	text strings.Builder
	sort bool
}

func (p *plist) line(depth int, text string) {
	p.text.WriteString(strings.Repeat("\t", depth) + text + "\n")
}

func (p *plist) write(v any, depth int) error {
	switch v := v.(type) {
	case *value.Map:
		return p.mapping(v, depth)
	case *value.List:
		return p.array(v.Items, depth)
	case value.Tuple:
		return p.array(v, depth)
	case []byte:
		p.line(depth, "<data>")
		p.line(depth, base64.StdEncoding.EncodeToString(v))
		p.line(depth, "</data>")
	case string:
		p.line(depth, "<string>"+xmlText(v)+"</string>")
	case bool:
		p.line(depth, map[bool]string{true: "<true/>", false: "<false/>"}[v])
	case int:
		p.line(depth, fmt.Sprintf("<integer>%d</integer>", v))
	case float64:
		p.line(depth, "<real>"+value.Repr(v)+"</real>")
	default:
		return fmt.Errorf("a property list cannot hold a %s", value.TypeName(v))
	}
	return nil
}

func (p *plist) mapping(m *value.Map, depth int) error {
	if m.Len() == 0 {
		p.line(depth, "<dict/>")
		return nil
	}
	names := m.Names()
	if len(names) != m.Len() {
		return errors.New("the keys of a property list are strings")
	}
	if p.sort {
		names = slices.Sorted(slices.Values(names))
	}
	p.line(depth, "<dict>")
	for _, name := range names {
		p.line(depth+1, "<key>"+xmlText(name)+"</key>")
		if err := p.write(m.Value(name), depth+1); err != nil {
			return err
		}
	}
	p.line(depth, "</dict>")
	return nil
}

func (p *plist) array(items []any, depth int) error {
	if len(items) == 0 {
		p.line(depth, "<array/>")
		return nil
	}
	p.line(depth, "<array>")
	for _, item := range items {
		if err := p.write(item, depth+1); err != nil {
			return err
		}
	}
	p.line(depth, "</array>")
	return nil
}

func xmlText(s string) string {
	return strings.NewReplacer("&", "&amp;", "<", "&lt;", ">", "&gt;", "\r\n", "\n", "\r", "\n").Replace(s)
}

// dumpMsgpack writes MessagePack with every value in its shortest form.
func dumpMsgpack(v any, _ dumpOptions) (string, error) {
	packed, err := packed(nil, v)
	return string(packed), err
}

func packed(b []byte, v any) ([]byte, error) {
	switch v := v.(type) {
	case nil:
		return append(b, 0xc0), nil
	case bool:
		return append(b, map[bool]byte{false: 0xc2, true: 0xc3}[v]), nil
	case int:
		return packedInt(b, int64(v)), nil
	case float64:
		return binary.BigEndian.AppendUint64(append(b, 0xcb), math.Float64bits(v)), nil
	case string:
		if len(v) > 31 && len(v) < 1<<8 {
			b = append(b, 0xd9, byte(len(v)))
		} else {
			b = packedLength(b, len(v), 31, 0xa0, 0xda)
		}
		return append(b, v...), nil
	case []byte:
		switch {
		case len(v) < 1<<8:
			b = append(b, 0xc4, byte(len(v)))
		default:
			b = packedLength(b, len(v), -1, 0, 0xc5)
		}
		return append(b, v...), nil
	case *value.List:
		return packedItems(b, v.Items)
	case value.Tuple:
		return packedItems(b, v)
	case *value.Map:
		b = packedLength(b, v.Len(), 15, 0x80, 0xde)
		for key, item := range v.All() {
			var err error
			if b, err = packed(b, key); err != nil {
				return nil, err
			}
			if b, err = packed(b, item); err != nil {
				return nil, err
			}
		}
		return b, nil
	}
	return nil, fmt.Errorf("MessagePack cannot hold a %s", value.TypeName(v))
}

func packedItems(b []byte, items []any) ([]byte, error) {
	b = packedLength(b, len(items), 15, 0x90, 0xdc)
	for _, item := range items {
		var err error
		if b, err = packed(b, item); err != nil {
			return nil, err
		}
	}
	return b, nil
}

// packedLength appends the length n: in the byte short itself if n is at most most, otherwise in 16 bits after
// long or in 32 bits after long+1.
func packedLength(b []byte, n, most int, short, long byte) []byte {
	switch {
	case n <= most:
		return append(b, short|byte(n))
	case n < 1<<16:
		return binary.BigEndian.AppendUint16(append(b, long), uint16(n))
	}
	return binary.BigEndian.AppendUint32(append(b, long+1), uint32(n))
}

func packedInt(b []byte, n int64) []byte {
	switch {
	case n >= -32 && n < 1<<7:
		return append(b, byte(n))
	case n >= 0 && n < 1<<8:
		return append(b, 0xcc, byte(n))
	case n >= 0 && n < 1<<16:
		return binary.BigEndian.AppendUint16(append(b, 0xcd), uint16(n))
	case n >= 0 && n < 1<<32:
		return binary.BigEndian.AppendUint32(append(b, 0xce), uint32(n))
	case n >= 0:
		return binary.BigEndian.AppendUint64(append(b, 0xcf), uint64(n))
	case n >= math.MinInt8:
		return append(b, 0xd0, byte(n))
	case n >= math.MinInt16:
		return binary.BigEndian.AppendUint16(append(b, 0xd1), uint16(n))
	case n >= math.MinInt32:
		return binary.BigEndian.AppendUint32(append(b, 0xd2), uint32(n))
	}
	return binary.BigEndian.AppendUint64(append(b, 0xd3), uint64(n))
}
