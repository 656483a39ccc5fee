package chunk

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/corpus-agent/corpus-agent/artifact"
	"github.com/corpus-agent/corpus-agent/artifact/manifest"
	"github.com/corpus-agent/corpus-agent/artifact/trust"
)

// ErrChanged is the error for chunks that were found on this host, in a release or in the cache, and cannot be read
// again: they were changed, or the disk fails.
var ErrChanged = errors.New("chunks that were on this host cannot be read from it again")

// Tree is the tree of a release, joined from chunks. Only Assemble makes one, from a signed index, and it returns only
// bytes of chunks with their signed digests.
type Tree struct {
	plan  *Plan
	cache *Cache
	list  *manifest.Manifest

	next int    // the next chunk to read
	rest []byte // unread bytes of the previous chunk
}

// Assemble joins the chunks. The cache must have all chunks that were missing on this host.
func (p *Plan) Assemble(cache *Cache) (*Tree, error) {
	t := &Tree{plan: p, cache: cache}
	data := make([]byte, p.index.List)
	if _, err := io.ReadFull(t, data); err != nil {
		return nil, fmt.Errorf("reading the list of %s: %w", p.index.release, err)
	}
	list, err := manifest.Decode(data)
	if err == nil && int64(len(data))+list.Bytes() != p.index.Length() {
		err = fmt.Errorf("its files hold %d bytes, and its chunks %d", list.Bytes(), p.index.Length()-int64(len(data)))
	}
	if err != nil {
		return nil, &trust.Refused{Check: trust.CheckForm, Of: "the list of " + p.index.release.String(), Err: err}
	}
	t.list = list
	return t, nil
}

// Release returns the release of the tree.
func (t *Tree) Release() artifact.Release { return t.plan.index.release }

// List returns the list of the tree.
func (t *Tree) List() *manifest.Manifest { return t.list }

// Read reads the content of the regular files, in the order of the list.
func (t *Tree) Read(p []byte) (int, error) {
	for len(t.rest) == 0 {
		if t.next == len(t.plan.index.Chunks) {
			return 0, io.EOF
		}
		if err := t.load(); err != nil {
			return 0, err
		}
	}
	n := copy(p, t.rest)
	t.rest = t.rest[n:]
	return n, nil
}

// Skip skips content that the caller has from another source. Chunks that are skipped completely are not read.
func (t *Tree) Skip(n int64) error {
	for n > 0 {
		if len(t.rest) == 0 {
			if t.next == len(t.plan.index.Chunks) {
				return io.ErrUnexpectedEOF
			}
			if length := int64(t.plan.index.Chunks[t.next].Length); length <= n {
				n -= length
				t.next++
				continue
			}
			if err := t.load(); err != nil {
				return err
			}
		}
		step := min(n, int64(len(t.rest)))
		t.rest = t.rest[step:]
		n -= step
	}
	return nil
}

// load reads and verifies the next chunk.
func (t *Tree) load() error {
	c := t.plan.index.Chunks[t.next]
	data, err := t.chunk(c)
	if err != nil {
		return err
	}
	if len(data) != c.Length {
		return &trust.Refused{Check: trust.CheckLength, Of: "a chunk of " + t.Release().String(),
			Err: fmt.Errorf("it has %d bytes, and %d were signed", len(data), c.Length)}
	}
	t.rest = data
	t.next++
	return nil
}

func (t *Tree) chunk(c Chunk) ([]byte, error) {
	at, ok := t.plan.local[c.Sum]
	if !ok {
		data, err := t.cache.Get(c)
		if err != nil {
			return nil, fmt.Errorf("%w: %w", ErrChanged, err)
		}
		return data, nil
	}
	data := make([]byte, c.Length)
	if _, err := t.plan.streams[at.stream].ReadAt(data, at.offset); err != nil {
		return nil, fmt.Errorf("%w: %w", ErrChanged, err)
	}
	if sha256.Sum256(data) != c.Sum {
		return nil, ErrChanged
	}
	return data, nil
}

// Same opens a file of an older release on this host that had the content of this entry, or returns nil. Its content
// may have changed since, so the caller must check its digest.
func (t *Tree) Same(e manifest.Entry) *os.File {
	for _, s := range t.plan.streams {
		if f := s.file(e); f != nil {
			return f
		}
	}
	return nil
}
