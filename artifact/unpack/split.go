package unpack

import (
	"bufio"
	"bytes"
	"encoding/binary"
	"errors"
	"io"
)

// A zstd stream is a sequence of frames, which do not depend on each other. A splitter finds where each of them ends by
// the headers of its blocks, without decoding them:
//
//	frame:  magic 4, descriptor 1, [window 1], [dictionary 1-4], [content size 1-8], blocks, [checksum 4]
//	block:  header 3 (bit 0: last; bits 1-2: type; the others: size), content
//
// It takes only frames that say how large their content is, and that it is small, as those of `corpus build` are.
// Frames of any other kind, damaged ones included, and everything behind them are left to a decoder of streams.

const (
	frameMagic     = 0xFD2FB528
	largestBlock   = 128 << 10
	frameHeaderMax = 14 // without a dictionary
	rawBlock       = 0
	rleBlock       = 1
	reservedBlock  = 3
)

// splitter reads the frames of a stream. Its methods must be called from one goroutine.
type splitter struct {
	from    *bufio.Reader
	largest int // content of a frame that it takes, in bytes
}

func newSplitter(r io.Reader, largest int) *splitter {
	return &splitter{from: bufio.NewReaderSize(r, 64<<10), largest: largest}
}

// frameHeader is what a frame says about itself.
type frameHeader struct {
	length   int // of the header
	content  int // size of its content
	checksum bool
}

// errOther is the error for a frame that the splitter does not take.
var errOther = errors.New("another kind of frame")

// header reads the header of the next frame and leaves it in the stream. At the end of the stream the error is io.EOF.
func (s *splitter) header() (frameHeader, error) {
	b, err := s.from.Peek(frameHeaderMax)
	if len(b) == 0 && err != nil {
		return frameHeader{}, err
	}
	if len(b) < 6 || binary.LittleEndian.Uint32(b) != frameMagic {
		return frameHeader{}, errOther
	}
	descriptor := b[4]
	h := frameHeader{length: 5, checksum: descriptor&4 != 0}
	if descriptor&(1<<3|3) != 0 { // a reserved bit, or a dictionary
		return frameHeader{}, errOther
	}
	single := descriptor&(1<<5) != 0
	if !single {
		if windowSize(b[5]) > uint64(s.largest) {
			return frameHeader{}, errOther
		}
		h.length++
	}
	size := 1 << (descriptor >> 6) // of the field with the content's size: 1, 2, 4 or 8 bytes
	if size == 1 && !single || len(b) < h.length+size {
		return frameHeader{}, errOther
	}
	var field [8]byte
	copy(field[:], b[h.length:h.length+size])
	content := binary.LittleEndian.Uint64(field[:])
	if size == 2 {
		content += 256
	}
	if content > uint64(s.largest) {
		return frameHeader{}, errOther
	}
	h.length += size
	h.content = int(content)
	return h, nil
}

// windowSize returns the size that a window descriptor stands for.
func windowSize(descriptor byte) uint64 {
	base := uint64(1) << (10 + descriptor>>3)
	return base + base/8*uint64(descriptor&7)
}

// largest returns the size up to which an encoder makes frames of this content.
func (h frameHeader) largest() int { return h.length + h.content + h.content/64 + largestBlock }

// next reads the encoded frame with this header into a buffer, or into a new one if that is too small. If the frame is
// damaged or cut, or larger than an encoder makes it, the error is errOther, and rest returns it with everything behind
// it.
func (s *splitter) next(h frameHeader, into []byte) ([]byte, error) {
	most := h.largest()
	if cap(into) < most+largestBlock+8 { // all at once: memory that is not used is not taken
		into = make([]byte, 0, most+largestBlock+8)
	}
	into, err := s.take(into, h.length)
	for last := false; err == nil && !last; {
		if into, err = s.take(into, 3); err != nil {
			break
		}
		b := into[len(into)-3:]
		head := int(b[0]) | int(b[1])<<8 | int(b[2])<<16
		last = head&1 != 0
		kind, size := head>>1&3, head>>3
		if kind == reservedBlock || kind != rleBlock && size > largestBlock || len(into) > most {
			return into, errOther
		}
		if kind == rleBlock {
			size = 1
		}
		into, err = s.take(into, size)
	}
	if err == nil && h.checksum {
		into, err = s.take(into, 4)
	}
	return into, err
}

// take moves bytes of the stream to the end of into, which has room for them.
func (s *splitter) take(into []byte, n int) ([]byte, error) {
	old := len(into)
	into = into[:old+n]
	got, err := io.ReadFull(s.from, into[old:])
	return into[:old+got], err
}

// rest returns a reader of the frame of which a part was taken, and of everything behind it. err is the error with
// which taking it ended.
func (s *splitter) rest(taken []byte, err error) io.Reader {
	readers := []io.Reader{bytes.NewReader(taken), s.from}
	if err != nil && !errors.Is(err, errOther) && !errors.Is(err, io.EOF) && !errors.Is(err, io.ErrUnexpectedEOF) {
		readers[1] = broken{err}
	}
	return io.MultiReader(readers...)
}

// broken is a reader that only fails.
type broken struct{ err error }

func (b broken) Read([]byte) (int, error) { return 0, b.err }
