package journal

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"strconv"
	"strings"
)

// A chapter starts with a line that names its form and version. Frames follow: a head of twelve bytes
// (kind, three zeros, length of the body, and a CRC of these eight), the body, and the SHA-256 of the
// frame before it together with all of this one.
const (
	magic    = "corpus-journal "
	headSize = 12
	sumSize  = sha256.Size
	maxBody  = 64 << 20
)

type kind byte

// The kinds of frames. All but pieces are JSON.
const (
	kindHeader kind = 'H' // what the chapter is about
	kindRun    kind = 'R' // the run that the changes below belong to
	kindPiece  kind = 'P' // SHA-256 of some content, and the content compressed
	kindComing kind = 'F' // something that is not there may be made before long
	kindChange kind = 'C' // something is about to change
	kindAfter  kind = 'A' // what it has become
	kindAgain  kind = 'G' // and is about to change again
	kindBegun  kind = 'B' // a restore is about to settle a change
	kindUndone kind = 'U' // and has
	kindSynced kind = 'S' // no power cut can take back what all above have become
)

type sum [sumSize]byte

// opening is the first line of a chapter.
func opening() []byte { return []byte(magic + strconv.Itoa(version) + "\n") }

// frame puts a frame together after the one whose sum is given.
func frame(after sum, k kind, body []byte) ([]byte, sum) {
	b := make([]byte, headSize, headSize+len(body)+sumSize)
	b[0] = byte(k)
	binary.LittleEndian.PutUint32(b[4:], uint32(len(body)))
	binary.LittleEndian.PutUint32(b[8:], crc32.ChecksumIEEE(b[:8]))
	b = append(b, body...)
	s := chain(after, b)
	return append(b, s[:]...), s
}

func chain(after sum, b []byte) (s sum) {
	h := sha256.New()
	h.Write(after[:])
	h.Write(b)
	h.Sum(s[:0])
	return s
}

// Why reading ends before the end of a file.
var (
	errTorn    = errors.New("cut off") // what a power cut leaves of the last frame
	errChanged = errors.New("changed")
)

// frames reads frames one by one.
type frames struct {
	r    io.Reader
	last sum
	at   int64 // where the next frame starts
}

// newerVersion is a chapter of a version that is not known here.
type newerVersion int

func (n newerVersion) Error() string { return fmt.Sprintf("version %d", int(n)) }

// open reads the first line.
func (f *frames) open() error {
	line := make([]byte, 0, 32)
	one := make([]byte, 1)
	for len(line) < cap(line) {
		if _, err := io.ReadFull(f.r, one); err != nil {
			return f.tornOpening(line, err)
		}
		line = append(line, one[0])
		if one[0] == '\n' {
			break
		}
	}
	text, ok := strings.CutPrefix(string(line), magic)
	n, err := strconv.Atoi(strings.TrimSuffix(text, "\n"))
	switch {
	case bytes.HasPrefix(opening(), bytes.TrimRight(line, "\x00")) && !bytes.Equal(line, opening()):
		return f.blankOr(line)
	case !ok || err != nil || n < 1 || !bytes.HasSuffix(line, []byte("\n")):
		return errChanged
	case n > version:
		return newerVersion(n)
	case !bytes.Equal(line, opening()):
		return errChanged
	}
	f.at, f.last = int64(len(line)), chain(sum{}, line)
	return nil
}

func (f *frames) tornOpening(line []byte, err error) error {
	if !errors.Is(err, io.EOF) && !errors.Is(err, io.ErrUnexpectedEOF) {
		return err
	}
	if bytes.HasPrefix(opening(), bytes.TrimRight(line, "\x00")) {
		return errTorn
	}
	return errChanged
}

// next reads a frame. io.EOF is the end of the file; errTorn and errChanged leave at where it was.
func (f *frames) next() (kind, []byte, error) {
	head := make([]byte, headSize)
	n, err := io.ReadFull(f.r, head)
	switch {
	case errors.Is(err, io.EOF):
		return 0, nil, io.EOF
	case errors.Is(err, io.ErrUnexpectedEOF):
		return 0, nil, f.partOf(head[:n])
	case err != nil:
		return 0, nil, err
	case crc32.ChecksumIEEE(head[:8]) != binary.LittleEndian.Uint32(head[8:]):
		return 0, nil, f.blankOr(head)
	}
	length := binary.LittleEndian.Uint32(head[4:])
	if length > maxBody {
		return 0, nil, errChanged
	}
	rest, err := io.ReadAll(io.LimitReader(f.r, int64(length)+sumSize))
	switch {
	case err != nil:
		return 0, nil, err
	case len(rest) < int(length)+sumSize:
		return 0, nil, errTorn
	}
	body, stored := rest[:length], rest[length:]
	s := chain(f.last, append(head, body...))
	if !bytes.Equal(s[:], stored) {
		return 0, nil, f.blankOr(stored)
	}
	f.last, f.at = s, f.at+headSize+int64(length)+sumSize
	return kind(head[0]), body, nil
}

// partOf judges the start of a head at the end of a file. No head starts otherwise than with a kind
// and zeros.
func (f *frames) partOf(b []byte) error {
	if blank(b) || strings.IndexByte("HRPFCAGBUS", b[0]) >= 0 && blank(b[1:min(len(b), 4)]) {
		return errTorn
	}
	return errChanged
}

// blankOr tells what some filesystems leave after a power cut, zeros up to the end where the size
// came to the disk before the content, from what somebody wrote.
func (f *frames) blankOr(b []byte) error {
	zeros := len(b) - len(bytes.TrimRight(b, "\x00"))
	rest := make([]byte, 32<<10)
	for {
		n, err := f.r.Read(rest)
		zeros += n
		switch {
		case !blank(rest[:n]):
			return errChanged
		case errors.Is(err, io.EOF) && zeros >= enoughZeros:
			return errTorn
		case errors.Is(err, io.EOF):
			return errChanged
		case err != nil:
			return err
		}
	}
}

// enoughZeros at the end of a file are no accident of a sum.
const enoughZeros = 8

func blank(b []byte) bool { return len(bytes.Trim(b, "\x00")) == 0 }
