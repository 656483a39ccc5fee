// Package manifest lists the content of a release's tree: every name, and the digest of every file.
//
// The list has one order and one encoding, so that each tree has exactly one digest. The publisher of an artifact signs
// that digest. A host makes the list while it unpacks the verified bytes, and compares digests. So the list that a host
// keeps is signed although it was never transferred, and Audit can later find files that have changed since they were
// unpacked.
package manifest

import (
	"bytes"
	"cmp"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"

	"github.com/corpus-agent/corpus-agent/artifact"
	"github.com/corpus-agent/corpus-agent/artifact/structsort"
)

// Kind is the kind of an entry.
type Kind byte

// The kinds of entries.
const (
	File       Kind = 'f'
	Executable Kind = 'x'
	Directory  Kind = 'd'
	Symlink    Kind = 'l'
	Hardlink   Kind = 'h'
)

// Regular reports whether entries of the kind have content.
func (k Kind) Regular() bool { return k == File || k == Executable }

// Entry is one name in a tree.
type Entry struct {
	Name     string // slash-separated, relative to the release
	Kind     Kind
	Modified int64    // of a file, seconds since 1970; 0 if the archive has none
	Size     int64    // of a file
	Digest   [32]byte // of a file's content
	Link     string   // a symlink's target as written, or the name of a hard link's file in the release
}

// Manifest is the list of a tree, ordered by Sort.
type Manifest struct {
	Entries []Entry
}

// Sort orders the entries by name, with all hard links at the end.
func (m *Manifest) Sort() { structsort.Func(m.Entries, order) }

func order(a, b Entry) int {
	if aLinks, bLinks := a.Kind == Hardlink, b.Kind == Hardlink; aLinks != bLinks {
		if aLinks {
			return 1
		}
		return -1
	}
	return cmp.Compare(a.Name, b.Name)
}

// Bytes returns the total size of the files.
func (m *Manifest) Bytes() int64 {
	var n int64
	for _, e := range m.Entries {
		n += e.Size
	}
	return n
}

const magic = "corpusT1"

// Encode returns the encoding of a sorted list. The encoding of an entry depends on no other entry, so a changed file
// changes little of it:
//
//	kind          1 byte
//	name          uvarint length, bytes
//	file          varint modified, uvarint size, 32 bytes SHA-256
//	link          uvarint length, bytes
func (m *Manifest) Encode() []byte {
	out := make([]byte, 0, len(magic)+len(m.Entries)*96)
	out = append(out, magic...)
	for _, e := range m.Entries {
		out = append(out, byte(e.Kind))
		out = appendText(out, e.Name)
		switch {
		case e.Kind.Regular():
			out = binary.AppendVarint(out, e.Modified)
			out = binary.AppendUvarint(out, uint64(e.Size))
			out = append(out, e.Digest[:]...)
		case e.Kind != Directory:
			out = appendText(out, e.Link)
		}
	}
	return out
}

func appendText(out []byte, s string) []byte {
	return append(binary.AppendUvarint(out, uint64(len(s))), s...)
}

// Digest returns the digest of an encoded list.
func Digest(encoded []byte) artifact.Digest { return artifact.NewDigest(sha256.Sum256(encoded)) }

// Decode parses a list. It accepts exactly what Encode writes.
func Decode(data []byte) (*Manifest, error) {
	rest, ok := bytes.CutPrefix(data, []byte(magic))
	if !ok {
		return nil, errors.New("it is not the list of a tree")
	}
	m, r := &Manifest{}, reader{data: rest}
	for len(r.data) > 0 && r.err == nil {
		m.Entries = append(m.Entries, r.entry())
	}
	if r.err != nil {
		return nil, fmt.Errorf("entry %d of a tree's list: %w", len(m.Entries), r.err)
	}
	for i := 1; i < len(m.Entries); i++ {
		if order(m.Entries[i-1], m.Entries[i]) >= 0 {
			return nil, errors.New("the list of a tree is not in order, or has a name twice")
		}
	}
	return m, nil
}

type reader struct {
	data []byte
	err  error
}

var (
	errCut  = errors.New("it is truncated")
	errLong = errors.New("a number in it is not in its shortest form")
)

func (r *reader) entry() Entry {
	e := Entry{Kind: Kind(r.data[0])}
	r.data = r.data[1:]
	e.Name = r.text()
	switch e.Kind {
	case File, Executable:
		e.Modified = r.varint()
		e.Size = int64(r.uvarint())
		copy(e.Digest[:], r.take(sha256.Size))
		if e.Size < 0 {
			r.err = errors.New("a size beyond all bounds")
		}
	case Symlink, Hardlink:
		e.Link = r.text()
	case Directory:
	default:
		r.err = fmt.Errorf("kind %q is not known", byte(e.Kind))
	}
	return e
}

// cut ends the parsing and keeps the first error.
func (r *reader) cut() {
	if r.err == nil {
		r.err = errCut
	}
	r.data = nil
}

func (r *reader) take(n uint64) []byte {
	if n > uint64(len(r.data)) {
		r.cut()
		return nil
	}
	taken := r.data[:n]
	r.data = r.data[n:]
	return taken
}

func (r *reader) text() string { return string(r.take(r.uvarint())) }

func (r *reader) uvarint() uint64 {
	v, n := binary.Uvarint(r.data)
	if !r.number(n) {
		return 0
	}
	return v
}

func (r *reader) varint() int64 {
	v, n := binary.Varint(r.data)
	if !r.number(n) {
		return 0
	}
	return v
}

// number skips a number of n bytes. It refuses encodings that are longer than necessary: a last byte of zero adds
// nothing to the bytes before it.
func (r *reader) number(n int) bool {
	if n <= 0 {
		r.cut()
		return false
	}
	if n > 1 && r.data[n-1] == 0 {
		r.err, r.data = errLong, nil
		return false
	}
	r.data = r.data[n:]
	return true
}
