package chunk

import (
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"os"
	"sync"
	"syscall"

	"github.com/klauspost/compress/zstd"
)

// Cache is a file of chunks that have arrived. It survives the process, so that an interrupted fetch can continue; its
// content is verified when it is read. A record consists of a digest, a length of four bytes, and the chunk as it is in
// the pack.
type Cache struct {
	file    *os.File
	decoder *zstd.Decoder
	largest int // bytes of a chunk

	mu     sync.Mutex
	size   int64
	places map[Sum]record
}

type record struct {
	offset int64
	stored int
}

const recordHead = 36

// OpenCache opens or makes a cache for the chunks of a plan.
func (p *Plan) OpenCache(path string) (*Cache, error) {
	file, err := os.OpenFile(path, os.O_CREATE|os.O_RDWR|syscall.O_NOFOLLOW, 0o600)
	if err != nil {
		return nil, err
	}
	// Chunks from a store are decompressed before they can be verified, so their size must be limited.
	largest := longest(p.index.Size)
	decoder, err := zstd.NewReader(nil, zstd.WithDecoderConcurrency(2), zstd.WithDecoderLowmem(true),
		zstd.WithDecoderMaxMemory(uint64(largest)))
	if err != nil {
		return nil, errors.Join(err, file.Close())
	}
	c := &Cache{file: file, decoder: decoder, largest: largest, places: map[Sum]record{}}
	if err := c.load(); err != nil {
		return nil, errors.Join(err, c.Close())
	}
	return c, nil
}

// load finds the records of an earlier process, up to the first incomplete one.
func (c *Cache) load() error {
	info, err := c.file.Stat()
	if err != nil {
		return err
	}
	for c.loadRecord(info.Size()) {
	}
	return c.file.Truncate(c.size)
}

// loadRecord reads the record that follows the loaded ones, in a file of the given size, and adds it. It reports
// whether there was a complete, undamaged record.
func (c *Cache) loadRecord(size int64) bool {
	var head [recordHead]byte
	if _, err := c.file.ReadAt(head[:], c.size); err != nil {
		return false // the end, or an incomplete record
	}
	r := record{offset: c.size + recordHead, stored: int(binary.BigEndian.Uint32(head[32:]))}
	end := r.offset + int64(r.stored)
	if r.stored == 0 || r.stored > c.largest+storedExtra || end > size {
		return false
	}
	sum := Sum(head[:32])
	c.places[sum] = r
	if _, err := c.Get(Chunk{Sum: sum, Stored: r.stored}); err != nil {
		delete(c.places, sum)
		return false
	}
	c.size = end
	return true
}

// Has reports whether a chunk has arrived.
func (c *Cache) Has(sum Sum) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	_, ok := c.places[sum]
	return ok
}

// Get returns a chunk's bytes, verified.
func (c *Cache) Get(want Chunk) ([]byte, error) {
	c.mu.Lock()
	r := c.places[want.Sum]
	c.mu.Unlock()
	stored := make([]byte, r.stored)
	if _, err := c.file.ReadAt(stored, r.offset); err != nil {
		return nil, fmt.Errorf("reading a chunk back: %w", err)
	}
	return c.open(want, stored)
}

// errOther is the error for bytes that are not the expected chunk.
var errOther = errors.New("a chunk has another digest than was signed")

// errKeeping is the error for a failure of this host's disk.
var errKeeping = errors.New("keeping a chunk")

// open decompresses a chunk and verifies it.
func (c *Cache) open(want Chunk, stored []byte) ([]byte, error) {
	data, err := c.decoder.DecodeAll(stored, nil)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", errOther, err)
	}
	if sha256.Sum256(data) != want.Sum {
		return nil, errOther
	}
	return data, nil
}

// add stores a verified chunk.
func (c *Cache) add(chunk Chunk, stored []byte) error {
	head := binary.BigEndian.AppendUint32(chunk.Sum[:len(chunk.Sum):len(chunk.Sum)], uint32(len(stored)))
	c.mu.Lock()
	defer c.mu.Unlock()
	if _, err := c.file.WriteAt(append(head, stored...), c.size); err != nil {
		return fmt.Errorf("%w: %w", errKeeping, err)
	}
	c.places[chunk.Sum] = record{offset: c.size + recordHead, stored: len(stored)}
	c.size += recordHead + int64(len(stored))
	return nil
}

// Close closes the file; Remove also deletes it.
func (c *Cache) Close() error {
	c.decoder.Close()
	return c.file.Close()
}

// Remove closes the cache and deletes it.
func (c *Cache) Remove() error { return errors.Join(c.Close(), os.Remove(c.file.Name())) }

// skip discards the bytes between two chunks.
func skip(r io.Reader, n int64) error {
	_, err := io.CopyN(io.Discard, r, n)
	return err
}
