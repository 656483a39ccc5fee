package journal

import (
	"io"
	"os"

	"github.com/klauspost/compress/zstd"

	"github.com/corpus-agent/corpus-agent/artifact/walk"
)

// maxPiece is the maximum size of the content of a piece in bytes.
const maxPiece = 1 << 20

// Open returns a reader of the content of pieces. The caller must close it.
func (c *Chapter) Open(pieces []string) (io.ReadCloser, error) {
	f, err := walk.OpenFile(c.path)
	if err != nil {
		return nil, unread(err)
	}
	return &content{chapter: c, file: f, pieces: pieces}, nil
}

// content reads pieces one after another.
type content struct {
	chapter *Chapter
	file    *os.File
	pieces  []string
	rest    []byte
}

func (r *content) Read(p []byte) (int, error) {
	for len(r.rest) == 0 {
		if len(r.pieces) == 0 {
			return 0, io.EOF
		}
		var err error
		if r.rest, err = r.chapter.piece(r.file, r.pieces[0]); err != nil {
			return 0, err
		}
		r.pieces = r.pieces[1:]
	}
	n := copy(p, r.rest)
	r.rest = r.rest[n:]
	return n, nil
}

func (r *content) Close() error { return r.file.Close() }

// piece reads, decompresses and verifies a piece. It returns a *Damaged if the piece does not have the SHA-256 name.
func (c *Chapter) piece(f *os.File, name string) ([]byte, error) {
	at, ok := c.pieces[name]
	if !ok {
		return nil, &Damaged{Path: c.path, At: c.end}
	}
	packed := make([]byte, at.length)
	if _, err := f.ReadAt(packed, at.at); err != nil {
		return nil, unread(err)
	}
	d, err := zstd.NewReader(nil, zstd.WithDecoderConcurrency(1), zstd.WithDecoderMaxMemory(2*maxPiece))
	if err != nil {
		return nil, err
	}
	defer d.Close()
	data, err := d.DecodeAll(packed, nil)
	if err != nil || nameOf(data) != name {
		return nil, &Damaged{Path: c.path, At: at.at}
	}
	return data, nil
}
