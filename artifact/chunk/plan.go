package chunk

import (
	"cmp"
	"context"
	"crypto/sha256"
	"slices"
)

const (
	// requestCost is what a request is worth in bytes: what a connection of 100 Mbit/s moves in the
	// 10 ms that a store takes to answer.
	requestCost = 128 << 10
	// closeBy is how much between two chunks is fetched with them rather than asked around.
	closeBy = 64 << 10
	// partSize is the most that one request asks for, so that several can be under way.
	partSize = 8 << 20
)

// FullCost is what fetching a whole artifact costs, to compare with a Plan's Cost.
func FullCost(length int64) int64 { return length + (length/partSize+1)*requestCost }

// Plan says which chunks of a release are on this host and how the others are fetched.
type Plan struct {
	index    *Index
	streams  []*Stream
	local    map[Sum]spot
	requests []request
	bytes    int64
}

// spot is where a chunk lies in a stream on this host.
type spot struct {
	stream int
	offset int64
}

// request is a part of a pack with chunks in it.
type request struct {
	pack   int
	from   int64
	length int64
	chunks []Chunk // in the order of their offsets
}

// NewPlan starts with a host that has nothing.
func NewPlan(x *Index) *Plan {
	p := &Plan{index: x, local: map[Sum]spot{}}
	p.arrange()
	return p
}

// Look finds the release's chunks in a tree on this host, by cutting it as it is now. What comes after a
// place that the disk cannot read is not found, nor is what comes after the context has ended.
func (p *Plan) Look(ctx context.Context, s *Stream) {
	wanted := map[Sum]bool{}
	for _, c := range p.index.Chunks {
		if _, found := p.local[c.Sum]; !found {
			wanted[c.Sum] = true
		}
	}
	p.streams = append(p.streams, s)
	cutter, offset := NewCutter(s.Reader(), p.index.Size), int64(0)
	for ctx.Err() == nil {
		data, err := cutter.Next()
		if err != nil {
			break
		}
		if sum := Sum(sha256.Sum256(data)); wanted[sum] {
			p.local[sum] = spot{stream: len(p.streams) - 1, offset: offset}
		}
		offset += int64(len(data))
	}
	p.arrange()
}

// Bytes is how much the requests fetch.
func (p *Plan) Bytes() int64 { return p.bytes }

// Requests is how many they are.
func (p *Plan) Requests() int { return len(p.requests) }

// Missing is how many chunks this host does not have.
func (p *Plan) Missing() int {
	n := 0
	for _, r := range p.requests {
		n += len(r.chunks)
	}
	return n
}

// Cost is what fetching costs, in bytes, each request counted as some.
func (p *Plan) Cost() int64 { return p.bytes + int64(len(p.requests))*requestCost }

// arrange makes the requests: chunks of one pack that are close together share one.
func (p *Plan) arrange() {
	var missing []Chunk
	seen := map[Sum]bool{}
	for _, c := range p.index.Chunks {
		if _, found := p.local[c.Sum]; !found && !seen[c.Sum] {
			seen[c.Sum] = true
			missing = append(missing, c)
		}
	}
	slices.SortFunc(missing, func(a, b Chunk) int { return cmp.Or(cmp.Compare(a.Pack, b.Pack), cmp.Compare(a.Offset, b.Offset)) })
	p.requests, p.bytes = nil, 0
	for _, c := range missing {
		end := c.Offset + int64(c.Stored)
		if n := len(p.requests); n > 0 {
			last := &p.requests[n-1]
			gap := c.Offset - last.from - last.length
			if last.pack == c.Pack && gap >= 0 && gap <= closeBy && end-last.from <= partSize {
				p.bytes += end - last.from - last.length
				last.length = end - last.from
				last.chunks = append(last.chunks, c)
				continue
			}
		}
		p.requests = append(p.requests, request{pack: c.Pack, from: c.Offset, length: int64(c.Stored), chunks: []Chunk{c}})
		p.bytes += int64(c.Stored)
	}
}
