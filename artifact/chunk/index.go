package chunk

import (
	"bytes"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"math/bits"

	"github.com/corpus-agent/corpus-agent/artifact"
	"github.com/corpus-agent/corpus-agent/artifact/trust"
)

// Sum is the SHA-256 of a chunk's bytes in the stream.
type Sum [32]byte

// Chunk is one chunk of a stream.
type Chunk struct {
	Sum    Sum
	Length int   // bytes in the stream
	Pack   int   // number of the pack in the index
	Offset int64 // offset in the pack
	Stored int   // compressed bytes in the pack
}

// Index lists the chunks of a release's stream.
type Index struct {
	Size   int               // average size of the chunks
	List   int64             // length of the tree's list at the start of the stream
	Packs  []artifact.Digest // the objects with the chunks
	Chunks []Chunk

	release artifact.Release
}

// Release returns the release beside which the index was signed.
func (x *Index) Release() artifact.Release { return x.release }

// Length returns the length of the stream.
func (x *Index) Length() int64 {
	var n int64
	for _, c := range x.Chunks {
		n += int64(c.Length)
	}
	return n
}

// PackKey returns the key of a pack of a project. Access is granted by project, so packs are not shared
// between projects.
func PackKey(project string, pack artifact.Digest) string {
	return PackPrefix(project) + pack.Hex() + packSuffix
}

// PackPrefix returns the prefix of the keys of a project's packs.
func PackPrefix(project string) string { return "deploy/" + project + "/chunks/" }

const (
	packSuffix = ".pack"
	magic      = "corpusX1"
)

// MaxList limits the list of a tree, which a host keeps in memory to rebuild it: some 5 million files.
const MaxList = 512 << 20

// Encode returns the encoding of the index:
//
//	size, length of the list, number of packs   uvarint each
//	packs                                       32 bytes each, SHA-256
//	chunks: digest                              32 bytes, SHA-256
//	        length, compressed length           uvarint each
//	        2*pack + 1                          uvarint, if it follows the previous chunk in the pack
//	        2*pack, offset                      uvarint each, otherwise
func (x *Index) Encode() ([]byte, error) {
	out := binary.AppendUvarint([]byte(magic), uint64(x.Size))
	out = binary.AppendUvarint(out, uint64(x.List))
	out = binary.AppendUvarint(out, uint64(len(x.Packs)))
	for _, p := range x.Packs {
		var err error
		if out, err = appendHex(out, p); err != nil {
			return nil, err
		}
	}
	next := map[int]int64{}
	for _, c := range x.Chunks {
		out = c.append(out, next[c.Pack])
		next[c.Pack] = c.Offset + int64(c.Stored)
	}
	return out, nil
}

// append appends a chunk. One that begins where the one before it in its pack ends, at next, needs no offset.
func (c Chunk) append(out []byte, next int64) []byte {
	out = append(out, c.Sum[:]...)
	out = binary.AppendUvarint(out, uint64(c.Length))
	out = binary.AppendUvarint(out, uint64(c.Stored))
	if c.Offset == next {
		return binary.AppendUvarint(out, uint64(c.Pack)*2+1)
	}
	out = binary.AppendUvarint(out, uint64(c.Pack)*2)
	return binary.AppendUvarint(out, uint64(c.Offset))
}

func appendHex(out []byte, d artifact.Digest) ([]byte, error) {
	out, err := hex.AppendDecode(out, []byte(d.Hex()))
	if err != nil {
		return nil, fmt.Errorf("%s is not a digest: %w", d, err)
	}
	return out, nil
}

// Parse parses a signed index. It limits sizes; everything else is verified by the digests of the
// chunks.
func Parse(s *trust.Signed) (*Index, error) {
	x, err := decode(s.Data())
	if err == nil && s.Kind() != trust.KindIndex {
		err = errors.New("it is not an index")
	}
	if err != nil {
		return nil, s.Malformed(err)
	}
	x.release = s.Release()
	return x, nil
}

func decode(data []byte) (*Index, error) {
	rest, ok := bytes.CutPrefix(data, []byte(magic))
	if !ok {
		return nil, errors.New("it is not an index of chunks")
	}
	r := reader{data: rest}
	x := &Index{Size: r.number(largestSize), List: int64(r.number(MaxList))}
	for range r.number(len(rest) / 32) {
		x.Packs = append(x.Packs, artifact.NewDigest(r.sum()))
	}
	next := make([]int64, len(x.Packs))
	for len(r.data) > 0 && r.err == nil {
		x.Chunks = append(x.Chunks, r.chunk(x.Size, next))
	}
	switch {
	case r.err != nil:
		return nil, fmt.Errorf("chunk %d: %w", len(x.Chunks), r.err)
	case x.Size < 64 || bits.OnesCount(uint(x.Size)) != 1:
		return nil, fmt.Errorf("chunks of %d bytes", x.Size)
	case x.List > x.Length():
		return nil, errors.New("the list is longer than the stream")
	}
	return x, nil
}

type reader struct {
	data []byte
	err  error
}

var errCut = errors.New("it is truncated")

func (r *reader) number(most int) int {
	v, n := binary.Uvarint(r.data)
	if n <= 0 || v > uint64(most) {
		if r.err == nil {
			r.err = fmt.Errorf("a number beyond its bounds, or none: %w", errCut)
		}
		r.data = nil
		return 0
	}
	r.data = r.data[n:]
	return int(v)
}

func (r *reader) sum() (sum [32]byte) {
	if len(r.data) < len(sum) {
		r.err, r.data = errCut, nil
		return sum
	}
	copy(sum[:], r.data)
	r.data = r.data[len(sum):]
	return sum
}

// chunk reads a chunk. next has the end of the previous chunk of each pack.
func (r *reader) chunk(size int, next []int64) Chunk {
	c := Chunk{Sum: r.sum()}
	c.Length, c.Stored = r.number(longest(size)), r.number(longest(size)+storedExtra)
	where := r.number(2*len(next) + 1)
	c.Pack = where / 2
	if r.err != nil || c.Pack >= len(next) || c.Length == 0 || c.Stored == 0 {
		if r.err == nil {
			r.err, r.data = errors.New("an empty chunk, or one of no pack"), nil
		}
		return c
	}
	c.Offset = next[c.Pack]
	if where%2 == 0 {
		c.Offset = int64(r.number(1 << 44))
	}
	next[c.Pack] = c.Offset + int64(c.Stored)
	return c
}
