package unpack

import (
	"fmt"
	"io"
	"sync/atomic"
)

// growth compares how much comes out of an artifact with how much goes in. All that the rules remember is a multiple of
// what comes out, headers included, so this bounds what a small artifact can cost.
type growth struct {
	ratio  int64
	packed int64        // bytes of the artifact; 0 where they are counted as they are read
	read   atomic.Int64 // of the artifact; decompressors read ahead beside their reader
	out    int64
}

// beyond reports whether so many bytes are too much for the artifact.
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

// packs counts what is read of an artifact whose size is not known.
func (g *growth) packs(r io.Reader) io.Reader { return &packing{g, r} }

type packing struct {
	*growth
	r io.Reader
}

func (p *packing) Read(b []byte) (int, error) {
	n, err := p.r.Read(b)
	p.read.Add(int64(n))
	return n, err
}

// of counts what comes out.
func (g *growth) of(r io.Reader) io.Reader { return &growing{g, r} }

type growing struct {
	*growth
	r io.Reader
}

func (g *growing) Read(b []byte) (int, error) {
	n, err := g.r.Read(b)
	if g.out += int64(n); g.beyond(g.out) {
		return 0, g.refusal("")
	}
	return n, err
}
