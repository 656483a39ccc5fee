package host

import (
	"context"
	"fmt"
	"io"
	"os"

	"golang.org/x/sys/unix"

	"github.com/corpus-agent/corpus-agent/artifact/walk"
	"github.com/corpus-agent/corpus-agent/state/diag"
)

// Bounded returns a reader of the content that a file had when it was opened, until the context is done: a user may
// append to a file while it is read, and a sparse file may be larger than any disk. A file without a size, such as a
// device or one of the kernel's, is read up to the limit of Files.ReadFile. A reader that is not a file is limited by
// the context alone. Files.Write keeps the holes of the content, and [Same] skips them; other callers get an error
// after they have read 4 GiB of holes.
func Bounded(ctx context.Context, r io.Reader) io.Reader {
	s := &bounded{ctx: ctx, from: r, left: unbounded, size: SizeOf(r)}
	if s.file, _ = r.(*opened); s.size > 0 {
		s.left = s.size
	} else if s.file != nil {
		s.left = maxRead
	}
	return s
}

const unbounded = 1<<63 - 1

type bounded struct {
	ctx   context.Context
	from  io.Reader
	file  *opened // nil if from is not a file of a host
	size  int64   // 0 if unknown
	left  int64
	begun bool
	holes holes
}

// Size returns the size in bytes, with holes; 0 if it is unknown.
func (s *bounded) Size() int64 { return s.size }

func (s *bounded) Read(p []byte) (int, error) {
	if !s.begun {
		s.begun, s.holes.file = true, s.sparse()
	}
	if err := s.ctx.Err(); err != nil {
		return 0, err
	}
	if s.left <= 0 && s.size > 0 {
		return 0, io.EOF
	}
	p, hole, err := s.holes.next(p[:min(int64(len(p)), max(s.left, 1))])
	if err != nil {
		return 0, err
	}
	n := len(p)
	if !hole {
		n, err = s.from.Read(p)
	}
	s.holes.at += int64(n)
	if s.left -= int64(n); s.left < 0 {
		return 0, tooLarge(s.file.path)
	}
	return n, err
}

// Sparse reports whether the file takes less space than it has bytes.
func (s *bounded) Sparse() bool { return s.sparse() != nil }

// sparse returns the file if it takes less space than it has bytes, or nil.
func (s *bounded) sparse() *opened {
	var st unix.Stat_t
	if s.file != nil && s.size > 0 && unix.Fstat(int(s.file.Fd()), &st) == nil && st.Blocks*512 < s.size {
		return s.file
	}
	return nil
}

// writeContent writes the content of a new file, and fails if the filesystem has no space left. The holes of sparse
// content become holes of the file.
func writeContent(file *os.File, content io.Reader) error {
	if w, ok := content.(Wrapped); ok {
		content = w.Content()
	}
	if s, ok := content.(*bounded); ok && !s.begun && s.Sparse() {
		return s.copyTo(file)
	}
	limited, err := withinSpace(file, content)
	if err != nil {
		return err
	}
	if !Sparse(content) {
		_, err = io.Copy(file, limited)
		return err
	}
	skipping := &skipZeros{file: file}
	if _, err = io.Copy(skipping, limited); err != nil {
		return err
	}
	return file.Truncate(skipping.at)
}

// copyTo copies the data of the file, without its holes.
func (s *bounded) copyTo(file *os.File) error {
	limit := spaceLimit{file: file}
	for at := int64(0); at < s.size; {
		if err := s.ctx.Err(); err != nil {
			return err
		}
		start, end := walk.Extent(s.file.File, at, s.size)
		if start >= s.size {
			break
		}
		end = min(end, start+checkEvery)
		if _, err := limit.fits(end - start); err != nil {
			return err
		}
		n, err := io.Copy(io.NewOffsetWriter(file, start), io.NewSectionReader(s.file, start, end-start))
		if err != nil {
			return err
		}
		if n == 0 {
			break // the file was truncated meanwhile
		}
		at = start + n
		limit.given += n
	}
	return file.Truncate(s.size)
}

// Wrapped is a reader around another one, which a host may read instead.
type Wrapped interface{ Content() io.Reader }

// SizeOf returns the size of content in bytes, with holes; 0 if it is unknown.
func SizeOf(content io.Reader) int64 {
	if s, ok := content.(interface{ Size() int64 }); ok {
		return s.Size()
	}
	return 0
}

// Sparse reports whether content comes from a file that takes less space than it has bytes.
func Sparse(content io.Reader) bool {
	s, ok := content.(interface{ Sparse() bool })
	return ok && s.Sparse()
}

// skipZeros writes a file and leaves holes in the place of blocks of zeros.
type skipZeros struct {
	file *os.File
	at   int64
}

func (z *skipZeros) Write(p []byte) (int, error) {
	for _, b := range p {
		if b != 0 {
			n, err := z.file.WriteAt(p, z.at)
			z.at += int64(n)
			return n, err
		}
	}
	z.at += int64(len(p))
	return len(p), nil
}

// maxHoles is the number of bytes of holes that are read of a file. Hashing them takes some seconds.
const maxHoles = 4 << 30

func tooManyHoles(p string) error {
	return Unsuitable(p, diag.Edit.Hint(fmt.Errorf("%s has more than %s of holes, and is not read to its end", p,
		diag.Size(maxHoles)),
		"look at it with ls -ls: it may be large and take no room; such a file is copied and compared, but not hashed"))
}

// holes limits the bytes of holes that are read of a sparse file, from its offset on. The zero value has no limit.
type holes struct {
	file *opened // nil for a file without holes
	at   int64   // the offset of the file
	data int64   // start of the next content; end is its end
	end  int64
	read int64 // bytes of holes read so far
}

// next returns the part of p to read next, which is either content or a hole. It fills the part with zeros if it is a
// hole, which then need not be read.
func (h *holes) next(p []byte) (part []byte, hole bool, err error) {
	if h.file == nil || len(p) == 0 {
		return p, false, nil
	}
	if h.at >= h.end {
		if err := h.look(); err != nil {
			return nil, false, err
		}
	}
	if h.at >= h.data {
		return p[:min(int64(len(p)), max(h.end-h.at, 1))], false, nil
	}
	if h.read >= maxHoles {
		return nil, false, tooManyHoles(h.file.path)
	}
	part = p[:min(int64(len(p)), h.data-h.at)]
	clear(part)
	h.read += int64(len(part))
	_, err = h.file.Seek(h.at+int64(len(part)), io.SeekStart)
	return part, true, err
}

// look finds the next content. It does not change the offset of the file.
func (h *holes) look() (err error) {
	if h.at, err = h.file.Seek(0, io.SeekCurrent); err != nil {
		return err
	}
	h.data, h.end = walk.Extent(h.file.File, h.at, max(h.file.Size(), h.at))
	_, err = h.file.Seek(h.at, io.SeekStart)
	return err
}
