package chunk

import (
	"cmp"
	"context"
	"crypto/sha256"

	"github.com/corpus-agent/corpus-agent/artifact/structsort"
)

const (
	// requestCost is the cost of a request in bytes: the amount that a connection of 100 Mbit/s transfers in the 10 ms
	// that a store takes to respond.
	requestCost = 128 << 10
	// closeBy is the largest gap between two chunks that is fetched with them instead of making two requests.
	closeBy = 64 << 10
	// partSize is the size of the largest request, so that several can be made concurrently.
	partSize = 8 << 20
)

// FullCost returns the cost of fetching a whole artifact, for comparison with a Plan's Cost.
func FullCost(length int64) int64 { return length + (length/partSize+1)*requestCost }

// Plan lists the chunks of a release that are on this host, and the requests for the others.
type Plan struct {
	index    *Index
	streams  []*Stream
	local    map[Sum]spot
	requests []request
	bytes    int64
}

// spot is the position of a chunk in a stream on this host.
type spot struct {
	stream int
	offset int64
}

// request is a part of a pack that is fetched in one request.
type request struct {
	pack   int
	from   int64
	length int64
	chunks []Chunk // ordered by offset
}

// NewPlan returns the plan for a host that has no chunks.
func NewPlan(x *Index) *Plan {
	p := &Plan{index: x, local: map[Sum]spot{}}
	p.arrange()
	return p
}

// Look finds the release's chunks in a tree on this host by cutting its present content. It stops at an error of the
// disk and when the context ends; chunks after that are not found.
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

// Bytes returns how many bytes the requests fetch.
func (p *Plan) Bytes() int64 { return p.bytes }

// Requests returns the number of requests.
func (p *Plan) Requests() int { return len(p.requests) }

// Missing returns how many chunks this host does not have.
func (p *Plan) Missing() int {
	n := 0
	for _, r := range p.requests {
		n += len(r.chunks)
	}
	return n
}

// Cost returns the cost of fetching in bytes, including a fixed cost for each request.
func (p *Plan) Cost() int64 { return p.bytes + int64(len(p.requests))*requestCost }

// arrange makes the requests: chunks of one pack that are close together share a request.
func (p *Plan) arrange() {
	var missing []Chunk
	seen := map[Sum]bool{}
	for _, c := range p.index.Chunks {
		if _, found := p.local[c.Sum]; !found && !seen[c.Sum] {
			seen[c.Sum] = true
			missing = append(missing, c)
		}
	}
	structsort.Func(missing, func(a, b Chunk) int {
		return cmp.Or(cmp.Compare(a.Pack, b.Pack),
			cmp.Compare(a.Offset, b.Offset))
	})
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
