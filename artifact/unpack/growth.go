package unpack

import (
	"fmt"
	"io"
	"sync/atomic"
)

// growth compares the number of unpacked bytes with the size of the artifact. The memory that the rules use is
// proportional to the unpacked bytes, including headers, so this limits the cost of a small artifact.
type growth struct {
	ratio  int64
	packed int64        // bytes of the artifact; 0 if they are counted while they are read
	read   atomic.Int64 // bytes read of the artifact; decompressors read ahead in other goroutines
	out    int64
}

// beyond reports whether so many unpacked bytes are too many for the artifact.
func (g *growth) beyond(out int64) bool {
	packed := g.packed
	if packed == 0 {
		packed = g.read.Load()
	}
	return packed > 0 && out > ratioFloor && out/packed >= g.ratio
}

func (g *growth) refusal(entry string) error {
	return &Hostile{Entry: entry, Rule: fmt.Sprintf("the archive grows more than %d-fold", g.ratio)}
}

// countPacked counts the bytes read of an artifact whose size is not known.
func (g *growth) countPacked(r io.Reader) io.Reader { return &packedReader{g, r} }

type packedReader struct {
	*growth
	r io.Reader
}

func (p *packedReader) Read(b []byte) (int, error) {
	n, err := p.r.Read(b)
	p.read.Add(int64(n))
	return n, err
}

// countUnpacked counts the unpacked bytes.
func (g *growth) countUnpacked(r io.Reader) io.Reader { return &unpackedReader{g, r} }

type unpackedReader struct {
	*growth
	r io.Reader
}

func (g *unpackedReader) Read(b []byte) (int, error) {
	n, err := g.r.Read(b)
	if g.out += int64(n); g.beyond(g.out) {
		return 0, g.refusal("")
	}
	return n, err
}
