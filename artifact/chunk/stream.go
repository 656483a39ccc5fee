package chunk

import (
	"errors"
	"io"
	"os"
	"sort"
	"syscall"

	"github.com/corpus-agent/corpus-agent/artifact/manifest"
)

// Stream is a tree on disk as one stream: its list, then the content of its files. Files that are missing, or shorter
// than listed, are filled up with zeros, so that all other bytes keep their places; digests show which
// content is right.
type Stream struct {
	root  *os.Root
	list  []byte
	files []manifest.Entry
	ends  []int64 // end of each file's content in the stream
	open  *os.File
	at    int // index of the open file

	byDigest map[[32]byte]string // names of files
}

// NewStream returns the tree in root as a stream. It continues to use root.
func NewStream(root *os.Root, tree *manifest.Manifest) *Stream {
	s := &Stream{root: root, list: tree.Encode(), at: -1}
	end := int64(len(s.list))
	for _, e := range tree.Entries {
		if e.Kind.Regular() && e.Size > 0 {
			end += e.Size
			s.files = append(s.files, e)
			s.ends = append(s.ends, end)
		}
	}
	return s
}

// Length returns the length of the stream.
func (s *Stream) Length() int64 {
	if len(s.ends) == 0 {
		return int64(len(s.list))
	}
	return s.ends[len(s.ends)-1]
}

// Close closes the file that was read last.
func (s *Stream) Close() error {
	s.at = -1
	if s.open == nil {
		return nil
	}
	err := s.open.Close()
	s.open = nil
	return err
}

// ReadAt implements io.ReaderAt. It is not safe for concurrent use.
func (s *Stream) ReadAt(p []byte, off int64) (n int, err error) {
	for n < len(p) {
		if off >= s.Length() {
			return n, io.EOF
		}
		got, err := s.piece(p[n:], off)
		if err != nil {
			return n, err
		}
		n += got
		off += int64(got)
	}
	return n, nil
}

// piece reads from the list, or from one file.
func (s *Stream) piece(p []byte, off int64) (int, error) {
	if off < int64(len(s.list)) {
		return copy(p, s.list[off:]), nil
	}
	i := sort.Search(len(s.ends), func(i int) bool { return s.ends[i] > off })
	start := s.ends[i] - s.files[i].Size
	p = p[:min(int64(len(p)), s.ends[i]-off)]
	if err := s.enter(i); err != nil {
		return 0, err
	}
	n := 0
	if s.open != nil {
		var err error
		if n, err = s.open.ReadAt(p, off-start); err != nil && !errors.Is(err, io.EOF) {
			return 0, err
		}
	}
	clear(p[n:])
	return len(p), nil
}

// enter opens a file; a name that cannot be opened, or is not a regular file, counts as missing.
func (s *Stream) enter(i int) error {
	if s.at == i {
		return nil
	}
	if err := s.Close(); err != nil {
		return err
	}
	s.at = i
	s.open, _ = s.regular(s.files[i].Name)
	return nil
}

// regular opens a name and returns its file only if that is a regular one. A service may replace its writable files by
// named pipes at any time, so opening does not block.
func (s *Stream) regular(name string) (*os.File, int64) {
	f, err := s.root.OpenFile(name, os.O_RDONLY|syscall.O_NOFOLLOW|syscall.O_NONBLOCK, 0)
	if err != nil {
		return nil, 0
	}
	info, err := f.Stat()
	if err != nil || !info.Mode().IsRegular() {
		_ = f.Close() // it is not used
		return nil, 0
	}
	return f, info.Size()
}

// Reader returns a reader of the whole stream.
func (s *Stream) Reader() io.Reader { return io.NewSectionReader(s, 0, s.Length()) }

// file opens a file of the tree that had this content when it was listed; it may have changed since.
func (s *Stream) file(e manifest.Entry) *os.File {
	if s.byDigest == nil {
		s.byDigest = map[[32]byte]string{}
		for _, f := range s.files {
			s.byDigest[f.Digest] = f.Name
		}
	}
	name, ok := s.byDigest[e.Digest]
	if !ok {
		return nil
	}
	f, size := s.regular(name)
	if f != nil && size != e.Size {
		_ = f.Close() // it is not used
		return nil
	}
	return f
}
