package needs

import (
	"encoding/binary"
	"errors"
	"io"
	"strings"
)

// Limits for reading a program, independent of its headers. Package debug/elf is not safe for untrusted files: it
// allocates the sizes in headers, decompresses sections, and panics on some files.
const (
	maxHeaders = 4096     // program headers
	maxTable   = 16 << 20 // bytes of a table in memory: the largest known string table of versions has a few KiB
	maxLoader  = 4096     // bytes of the path of a loader
	maxRecords = 65536    // version records, needed or defined
)

var errDamaged = errors.New("it is a damaged program")

// program is the part of an ELF file that matters here.
type program struct {
	at      io.ReaderAt
	order   binary.ByteOrder
	wide    bool // 64-bit
	kind    uint16
	machine uint16
	parts   []part
}

// part is a program header.
type part struct {
	kind         uint32
	offset, size uint64 // in the file
	address      uint64
}

// read reads a piece of the file, up to the size of a table.
func (p *program) read(offset, size uint64) ([]byte, error) {
	if size > maxTable || offset > 1<<62 {
		return nil, errDamaged
	}
	data := make([]byte, size)
	n, err := p.at.ReadAt(data, int64(offset))
	if uint64(n) < size {
		return nil, errors.Join(errDamaged, err)
	}
	return data, nil
}

// word decodes an address or size of 4 or 8 bytes.
func (p *program) word(data []byte) uint64 {
	if p.wide {
		return p.order.Uint64(data)
	}
	return uint64(p.order.Uint32(data))
}

// openProgram reads the header and the program headers of an ELF file.
func openProgram(at io.ReaderAt) (*program, error) {
	p := &program{at: at}
	ident, err := p.read(0, identSize)
	if err != nil || string(ident[:4]) != magic {
		return nil, errDamaged
	}
	switch ident[dataIndex] {
	case littleEndian:
		p.order = binary.LittleEndian
	case bigEndian:
		p.order = binary.BigEndian
	default:
		return nil, errDamaged
	}
	switch ident[classIndex] {
	case class32:
	case class64:
		p.wide = true
	default:
		return nil, errDamaged
	}
	return p, p.headers()
}

// headers reads the rest of the header, whose layout differs between 32-bit and 64-bit files.
func (p *program) headers() error {
	size, table, entry, least := uint64(52), 28, 42, uint16(32)
	if p.wide {
		size, table, entry, least = 64, 32, 54, 56
	}
	head, err := p.read(0, size)
	if err != nil {
		return err
	}
	p.kind, p.machine = p.order.Uint16(head[16:]), p.order.Uint16(head[18:])
	offset, length, count := p.word(head[table:]), p.order.Uint16(head[entry:]), p.order.Uint16(head[entry+2:])
	if count == 0 {
		return nil
	}
	if count > maxHeaders || length < least {
		return errDamaged
	}
	data, err := p.read(offset, uint64(length)*uint64(count))
	if err != nil {
		return err
	}
	for ; len(data) >= int(length); data = data[length:] {
		p.parts = append(p.parts, p.part(data))
	}
	return nil
}

func (p *program) part(h []byte) part {
	kind := p.order.Uint32(h)
	if p.wide {
		return part{kind, p.word(h[8:]), p.word(h[32:]), p.word(h[16:])}
	}
	return part{kind, p.word(h[4:]), p.word(h[16:]), p.word(h[8:])}
}

// loader returns the interpreter of a dynamic program, or "".
func (p *program) loader() string {
	for _, part := range p.parts {
		if part.kind != interpreterPart || part.size > maxLoader {
			continue
		}
		data, err := p.read(part.offset, part.size)
		if name := strings.TrimRight(string(data), "\x00"); err == nil && strings.HasPrefix(name, "/") &&
			!strings.Contains(name, "\x00") {
			return name
		}
	}
	return ""
}

// mapped returns the offset in the file of the content at an address, and the number of bytes that follow it there.
func (p *program) mapped(address uint64) (offset, size uint64, err error) {
	for _, part := range p.parts {
		if part.kind == loadPart && address >= part.address && address-part.address < part.size {
			into := address - part.address
			if part.offset+into < into {
				break
			}
			return part.offset + into, part.size - into, nil
		}
	}
	return 0, 0, errDamaged
}

// dynamic returns the wanted entries of the dynamic section, by tag.
func (p *program) dynamic(wanted ...uint64) (map[uint64]uint64, error) {
	values := map[uint64]uint64{}
	width := 4
	if p.wide {
		width = 8
	}
	for _, part := range p.parts {
		if part.kind != dynamicPart {
			continue
		}
		data, err := p.read(part.offset, part.size)
		if err != nil {
			return nil, err
		}
		for ; len(data) >= 2*width; data = data[2*width:] {
			tag := p.word(data)
			if tag == lastTag {
				break
			}
			for _, w := range wanted {
				if tag == w {
					values[tag] = p.word(data[width:])
				}
			}
		}
		return values, nil
	}
	return values, nil
}

// versions lists the versions of symbols that a program needs, or that a library defines. Both are linked lists of
// records, each with a linked list of names.
func (p *program) versions(list, count uint64) ([]string, error) {
	d, err := p.dynamic(list, count, textsTag, textsSizeTag)
	if err != nil || d[list] == 0 {
		return nil, err
	}
	texts, err := p.table(d[textsTag], d[textsSizeTag])
	if err != nil {
		return nil, err
	}
	offset, size, err := p.mapped(d[list])
	if err != nil {
		return nil, err
	}
	data, err := p.read(offset, min(size, maxTable))
	if err != nil {
		return nil, err
	}
	w := &versionWalk{program: p, data: data, texts: texts, left: maxRecords}
	if list == neededTag {
		return w.needed(d[count])
	}
	return w.defined(d[count])
}

func (p *program) table(address, size uint64) ([]byte, error) {
	offset, most, err := p.mapped(address)
	if err != nil || size > most {
		return nil, errDamaged
	}
	return p.read(offset, size)
}
