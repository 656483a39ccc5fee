// Package chunk lets a host fetch only what is new in a release.
//
// The tree of a release is seen as one stream: the list of artifact/manifest, then the content of
// every file in the order of the list. The stream is cut into chunks of about 32 KiB at places that
// its content decides, so an insertion moves the places after it and does not change the chunks. An
// Index, signed beside the artifact, names the chunks by digest and says where each lies, compressed,
// in a pack: an object with all the chunks that one version brought to its project. A later version
// names chunks of earlier packs, so nothing is stored twice, and what a version brought lies side by
// side, to be fetched in one request.
//
// A host cuts the releases it has the same way, as they are on its disk now, and so finds which
// chunks it has; what a disk or a person changed is simply not found. A Plan is the rest, in as few
// requests as can be, and its cost, by which the host decides between chunks and the whole artifact.
// A Tree puts the chunks together. Each is verified when it is read, wherever it comes from, and
// artifact/unpack takes a Tree as it takes a *trust.Verified.
package chunk

import (
	"errors"
	"io"
	"math/bits"
)

const (
	// usualSize is the average size of chunks. Smaller ones find more that is the same and make the
	// index larger: 40 bytes of 32 KiB are 0.12 % of a tree and about 0.4 % of it compressed.
	usualSize = 32 << 10
	// manyChunks is from where on chunks get larger, so that an index stays within some 10 MiB.
	manyChunks = 256 << 10
	// largestSize bounds what an index may ask for.
	largestSize = 4 << 20
)

// sizeFor is the average size of the chunks of a stream.
func sizeFor(length int64) int {
	size := usualSize
	for size < largestSize && length/int64(size) > manyChunks {
		size *= 2
	}
	return size
}

// longest is how large a chunk can be where the average is size.
func longest(size int) int { return size * 4 }

// Cutter cuts a stream, by a rolling sum over the last 64 bytes (Xia and others, FastCDC, 2016).
type Cutter struct {
	r          io.Reader
	size       int
	buf        []byte
	start, end int
	eof        bool
	gear       [256]uint64
	hard, easy uint64 // masks before and after the average size
}

// NewCutter cuts r into chunks of that size on average, which is a power of two.
func NewCutter(r io.Reader, size int) *Cutter {
	c := &Cutter{r: r, size: size, buf: make([]byte, 2*longest(size)), gear: gear()}
	// The oldest byte has moved furthest, so the upper bits depend on most of the window.
	width := bits.Len(uint(size)) - 1
	c.hard, c.easy = mask(width+2), mask(width-2)
	return c
}

func mask(width int) uint64 { return (1<<width - 1) << (64 - width) }

// gear is a table of numbers without pattern, by splitmix64 from 1. It is part of the format: another
// one cuts elsewhere.
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

// Next gives the next chunk, which is good until the call after it, and io.EOF after the last.
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

// fill makes sure that the longest chunk is in the buffer, or all that is left.
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

// cut says how long the first chunk of data is.
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
