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

// A chapter starts with a line of magic and the version of the format. Frames follow. A frame has a head of twelve
// bytes (kind, three zeros, length of the body, and a CRC of these eight), a body, and the SHA-256 of the previous
// frame's sum together with the head and body of this frame.
const (
	magic    = "corpus-journal "
	headSize = 12
	sumSize  = sha256.Size
	maxBody  = 64 << 20
)

type kind byte

// The kinds of frames. Their bodies are JSON, except for kindPiece, and kindSynced, which has none.
const (
	kindHeader  kind = 'H' // Header: the pair of releases of the chapter
	kindRun     kind = 'R' // the run that makes the changes which follow
	kindPiece   kind = 'P' // the SHA-256 of a piece of content, and the piece compressed
	kindPlanned kind = 'F' // Planned: a path that does not exist, and that a step may create soon
	kindChange  kind = 'C' // Change: a subject is about to change
	kindAfter   kind = 'A' // the image of a subject after its change
	kindAgain   kind = 'G' // a subject is about to change again
	kindBegun   kind = 'B' // a restore of a change begins
	kindUndone  kind = 'U' // Undone: a restore of a change has ended
	kindSynced  kind = 'S' // all changes recorded before this frame are synced to disk
)

type sum [sumSize]byte

// opening returns the first line of a chapter.
func opening() []byte { return []byte(magic + strconv.Itoa(version) + "\n") }

// frame encodes the frame that follows the one with sum after, and returns its own sum.
func frame(after sum, k kind, body []byte) ([]byte, sum) {
	b := make([]byte, headSize, headSize+len(body)+sumSize)
	b[0] = byte(k)
	binary.LittleEndian.PutUint32(b[4:], uint32(len(body)))
	binary.LittleEndian.PutUint32(b[8:], crc32.ChecksumIEEE(b[:8]))
	b = append(b, body...)
	s := chain(after, b)
	return append(b, s[:]...), s
}

// chain returns the sum of b, the head and body of the frame that follows the one with sum after.
func chain(after sum, b []byte) (s sum) {
	h := sha256.New()
	h.Write(after[:])
	h.Write(b)
	h.Sum(s[:0])
	return s
}

// The errors of a file that does not end with a whole frame.
var (
	errTorn    = errors.New("cut off") // the last frame is incomplete, as a power failure leaves it
	errChanged = errors.New("changed") // another program changed the file
)

// frames reads the frames of a chapter.
type frames struct {
	r    io.Reader
	last sum
	at   int64 // offset of the next frame
}

// newerVersion is the error of a chapter with a version that this agent does not support.
type newerVersion int

func (n newerVersion) Error() string { return fmt.Sprintf("version %d", int(n)) }

// open reads the first line.
func (f *frames) open() error {
	line, err := f.firstLine()
	if err != nil {
		return f.tornOpening(line, err)
	}
	text, ok := strings.CutPrefix(string(line), magic)
	n, err := strconv.Atoi(strings.TrimSuffix(text, "\n"))
	switch {
	case bytes.HasPrefix(opening(), bytes.TrimRight(line, "\x00")) && !bytes.Equal(line, opening()):
		return f.tornIfBlank(line)
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

// firstLine reads the first line, or as much of it as an opening can have. It reads no byte after it.
func (f *frames) firstLine() ([]byte, error) {
	line := make([]byte, 0, 32)
	one := make([]byte, 1)
	for len(line) < cap(line) {
		if _, err := io.ReadFull(f.r, one); err != nil {
			return line, err
		}
		line = append(line, one[0])
		if one[0] == '\n' {
			break
		}
	}
	return line, nil
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

// next reads a frame. It returns io.EOF at the end of the file. It does not advance f.at if it returns errTorn or
// errChanged.
func (f *frames) next() (kind, []byte, error) {
	head := make([]byte, headSize)
	n, err := io.ReadFull(f.r, head)
	switch {
	case errors.Is(err, io.EOF):
		return 0, nil, io.EOF
	case errors.Is(err, io.ErrUnexpectedEOF):
		return 0, nil, f.partialHead(head[:n])
	case err != nil:
		return 0, nil, err
	case crc32.ChecksumIEEE(head[:8]) != binary.LittleEndian.Uint32(head[8:]):
		return 0, nil, f.tornIfBlank(head)
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
		return 0, nil, f.tornIfBlank(stored)
	}
	f.last, f.at = s, f.at+headSize+int64(length)+sumSize
	return kind(head[0]), body, nil
}

// partialHead returns errTorn if b, the end of a file, can be the start of a head: a kind followed by zeros. Otherwise
// it returns errChanged.
func (f *frames) partialHead(b []byte) error {
	if blank(b) || strings.IndexByte("HRPFCAGBUS", b[0]) >= 0 && blank(b[1:min(len(b), 4)]) {
		return errTorn
	}
	return errChanged
}

// tornIfBlank returns errTorn if b and the rest of the file end in at least minZeros zeros: some filesystems leave them
// after a power failure, when the new size reached the disk before the content. Otherwise it returns errChanged.
func (f *frames) tornIfBlank(b []byte) error {
	zeros := len(b) - len(bytes.TrimRight(b, "\x00"))
	rest := make([]byte, 32<<10)
	for {
		n, err := f.r.Read(rest)
		zeros += n
		switch {
		case !blank(rest[:n]):
			return errChanged
		case errors.Is(err, io.EOF) && zeros >= minZeros:
			return errTorn
		case errors.Is(err, io.EOF):
			return errChanged
		case err != nil:
			return err
		}
	}
}

// minZeros is the number of zeros at the end of a file that cannot be a sum ending in zeros by chance.
const minZeros = 8

func blank(b []byte) bool { return len(bytes.Trim(b, "\x00")) == 0 }
