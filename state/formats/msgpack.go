package formats

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math"

	"github.com/corpus-agent/corpus-agent/state/value"
)

// Msgpack reads one value of MessagePack.
func Msgpack(data []byte) (any, error) {
	p := &packed{data}
	v, err := p.value(maxDepth)
	if err == nil && len(p.rest) > 0 {
		err = fmt.Errorf("%d bytes follow the value", len(p.rest))
	}
	if err != nil {
		return nil, fmt.Errorf("it is not MessagePack: %w", err)
	}
	return v, nil
}

type packed struct{ rest []byte }

var errCut = errors.New("it ends too early")

func (p *packed) take(n int) ([]byte, error) {
	if n < 0 || n > len(p.rest) {
		return nil, errCut
	}
	taken := p.rest[:n]
	p.rest = p.rest[n:]
	return taken, nil
}

// number returns an unsigned number of some bytes, the highest first.
func (p *packed) number(size int) (uint64, error) {
	b, err := p.take(size)
	if err != nil {
		return 0, err
	}
	return binary.BigEndian.Uint64(append(make([]byte, 8-size, 8), b...)), nil
}

func (p *packed) value(depth int) (any, error) {
	if depth == 0 {
		return nil, errDepth
	}
	first, err := p.take(1)
	if err != nil {
		return nil, err
	}
	switch b := first[0]; {
	case b < 0x80:
		return int(b), nil
	case b >= 0xe0:
		return int(int8(b)), nil
	case b < 0x90:
		return p.mapping(int(b&0x0f), depth)
	case b < 0xa0:
		return p.list(int(b&0x0f), depth)
	case b < 0xc0:
		return p.text(int(b & 0x1f))
	default:
		return p.marked(b, depth)
	}
}

// marked reads a value whose first byte gives the size of the length or number that follows.
func (p *packed) marked(b byte, depth int) (any, error) {
	switch b {
	case 0xc0:
		return nil, nil
	case 0xc2, 0xc3:
		return b == 0xc3, nil
	case 0xca:
		n, err := p.number(4)
		return float64(math.Float32frombits(uint32(n))), err
	case 0xcb:
		n, err := p.number(8)
		return math.Float64frombits(n), err
	case 0xcc, 0xcd, 0xce, 0xcf:
		n, err := p.number(1 << (b - 0xcc))
		if n > math.MaxInt64 {
			return nil, errors.New("it has a number above 2^63")
		}
		return int(n), err
	case 0xd0, 0xd1, 0xd2, 0xd3:
		size := 1 << (b - 0xd0)
		n, err := p.number(size)
		shift := 64 - 8*size
		return int(int64(n<<shift) >> shift), err
	}
	return p.long(b, depth)
}

// long returns a text, bytes, list or mapping whose length does not fit into the first byte.
func (p *packed) long(b byte, depth int) (any, error) {
	sizes := map[byte]int{0xc4: 1, 0xc5: 2, 0xc6: 4, 0xd9: 1, 0xda: 2, 0xdb: 4, 0xdc: 2, 0xdd: 4, 0xde: 2, 0xdf: 4}
	size, known := sizes[b]
	if !known {
		return nil, fmt.Errorf("byte 0x%02x begins nothing that is read here", b)
	}
	n, err := p.number(size)
	if err != nil || n > uint64(len(p.rest)) { // each item has at least one byte
		return nil, errCut
	}
	switch {
	case b <= 0xc6:
		return p.take(int(n))
	case b <= 0xdb:
		return p.text(int(n))
	case b <= 0xdd:
		return p.list(int(n), depth)
	}
	return p.mapping(int(n), depth)
}

func (p *packed) text(n int) (any, error) {
	b, err := p.take(n)
	return string(b), err
}

func (p *packed) list(n, depth int) (any, error) {
	list := value.NewList()
	for range n {
		item, err := p.value(depth - 1)
		if err != nil {
			return nil, err
		}
		list.Append(item)
	}
	return list, nil
}

func (p *packed) mapping(n, depth int) (any, error) {
	m := value.NewMap()
	for range n {
		key, err := p.value(depth - 1)
		if err != nil {
			return nil, err
		}
		item, err := p.value(depth - 1)
		if err != nil {
			return nil, err
		}
		if err := m.SetKey(key, item); err != nil {
			return nil, err
		}
	}
	return m, nil
}
