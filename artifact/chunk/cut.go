// Package chunk allows a host to fetch only the new parts of a release.
//
// The tree of a release is treated as one stream: the list of artifact/manifest, followed by the content of every file
// in the order of the list. The stream is cut into chunks of about 32 KiB at places that depend on its content, so an
// insertion moves the later places and does not change the chunks. An Index, signed beside the artifact, lists the
// digests of the chunks, and the place of each compressed chunk in a pack: an object with all chunks that one version
// added to its project. A later version refers to chunks of earlier packs, so nothing is stored twice, and the chunks
// of a version are adjacent, so that one request fetches them.
//
// A host cuts the releases on its disk in the same way, and so finds the chunks that it has; chunks that were changed
// on disk are simply not found. A Plan has the requests for the other chunks, as few as possible, and their cost, by
// which the host chooses between chunks and the whole artifact. A Tree joins the chunks. Each chunk is verified when it
// is read, from the disk or from a store, and artifact/unpack accepts a Tree like a *trust.Verified.
package chunk

import (
	"errors"
	"io"
	"math/bits"
)

const (
	// usualSize is the average size of chunks. Smaller chunks find more common content and make the index larger: 40 bytes
	// per 32 KiB are 0.12 % of a tree and about 0.4 % of its compressed size.
	usualSize = 32 << 10
	// manyChunks is the number of chunks above which chunks become larger, so that an index stays at about 10 MiB.
	manyChunks = 256 << 10
	// largestSize limits the chunk size of an index.
	largestSize = 4 << 20
)

// sizeFor returns the average size of the chunks of a stream.
func sizeFor(length int64) int {
	size := usualSize
	for size < largestSize && length/int64(size) > manyChunks {
		size *= 2
	}
	return size
}

// longest returns the largest size of a chunk for an average size.
func longest(size int) int { return size * 4 }

// Cutter cuts a stream into chunks by a rolling hash over the last 64 bytes (Xia et al., FastCDC, 2016).
type Cutter struct {
	r          io.Reader
	size       int
	buf        []byte
	start, end int
	eof        bool
	gear       [256]uint64
	hard, easy uint64 // masks before and after the average size
}

// NewCutter returns a Cutter that cuts r into chunks of an average size, which must be a power of two.
func NewCutter(r io.Reader, size int) *Cutter {
	c := &Cutter{r: r, size: size, buf: make([]byte, 2*longest(size)), gear: gear()}
	// The oldest byte was shifted furthest, so the upper bits depend on most of the window.
	width := bits.Len(uint(size)) - 1
	c.hard, c.easy = mask(width+2), mask(width-2)
	return c
}

func mask(width int) uint64 { return (1<<width - 1) << (64 - width) }

// gear returns a table of random numbers, by splitmix64 with seed 1. It is part of the format: another table would cut
// at other places.
func gear() (table [256]uint64) {
	state := uint64(1)
	for i := range table {
		state += 0x9e3779b97f4a7c15
		z := state
		z = (z ^ z>>30) * 0xbf58476d1ce4e5b9
		z = (z ^ z>>27) * 0x94d049bb133111eb
		table[i] = z ^ z>>31
	}
	return table
}

// Next returns the next chunk, which is valid until the next call, and io.EOF after the last.
func (c *Cutter) Next() ([]byte, error) {
	if err := c.fill(); err != nil {
		return nil, err
	}
	rest := c.buf[c.start:c.end]
	if len(rest) == 0 {
		return nil, io.EOF
	}
	n := c.cut(rest)
	c.start += n
	return rest[:n], nil
}

// fill ensures that the buffer holds the longest possible chunk, or the rest.
func (c *Cutter) fill() error {
	if c.eof || c.end-c.start >= longest(c.size) {
		return nil
	}
	copy(c.buf, c.buf[c.start:c.end])
	c.start, c.end = 0, c.end-c.start
	n, err := io.ReadFull(c.r, c.buf[c.end:])
	c.end += n
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		c.eof = true
		return nil
	}
	return err
}

// cut returns the length of the first chunk of data.
func (c *Cutter) cut(data []byte) int {
	least, most := c.size/4, min(len(data), longest(c.size))
	if most <= least {
		return most
	}
	usual := min(c.size, most)
	sum, i := uint64(0), least
	for ; i < usual; i++ {
		sum = sum<<1 + c.gear[data[i]]
		if sum&c.hard == 0 {
			return i + 1
		}
	}
	for ; i < most; i++ {
		sum = sum<<1 + c.gear[data[i]]
		if sum&c.easy == 0 {
			return i + 1
		}
	}
	return most
}
