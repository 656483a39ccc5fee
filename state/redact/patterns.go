package redact

import (
	"encoding/binary"
	"slices"
	"strings"

	"github.com/corpus-agent/corpus-agent/artifact/structsort"
)

// patterns finds many texts in one pass. All are at least Shortest bytes long: the first four bytes select the few that
// can match at a position.
type patterns struct {
	byStart map[uint32][]string
	seen    [1 << 10]uint64 // a bit for each hash of four bytes, so that most positions need no lookup in the map
}

// span is a range of a text.
type span struct{ from, to int }

func (p *patterns) add(text string) {
	if p.byStart == nil {
		p.byStart = map[uint32][]string{}
	}
	key := start(text, 0)
	p.byStart[key] = append(p.byStart[key], text)
	p.seen[bucket(key)] |= 1 << (key & 63)
}

func start(text string, at int) uint32 { return binary.LittleEndian.Uint32([]byte(text[at : at+4])) }

func bucket(key uint32) uint32 { return key * 2654435761 >> 22 }

// in returns the matches of patterns in a text, including those that are broken by line feeds, as base64(1) does. They
// are sorted, and overlapping ones are joined.
func (p *patterns) in(text string) []span {
	if p.byStart == nil {
		return nil
	}
	found := p.find(text)
	if flat := unwrap(text); len(flat.pieces) > 1 {
		for _, s := range p.find(flat.text) {
			found = append(found, span{flat.at(s.from), flat.at(s.to-1) + 1})
		}
		structsort.Func(found, func(a, b span) int { return a.from - b.from })
	}
	return joined(found)
}

// find returns the exact matches of patterns in a text, sorted by their start.
func (p *patterns) find(text string) []span {
	var found []span
	for at := 0; at+Shortest <= len(text); at++ {
		key := start(text, at)
		if p.seen[bucket(key)]&(1<<(key&63)) == 0 {
			continue
		}
		for _, pattern := range p.byStart[key] {
			if strings.HasPrefix(text[at:], pattern) {
				found = append(found, span{at, at + len(pattern)})
			}
		}
	}
	return found
}

// joined joins spans that overlap. They must be sorted by their start.
func joined(spans []span) []span {
	out := spans[:0]
	for _, s := range spans {
		if last := len(out) - 1; last >= 0 && s.from < out[last].to {
			out[last].to = max(out[last].to, s.to)
			continue
		}
		out = append(out, s)
	}
	return slices.Clip(out)
}
