package wire

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"time"

	"github.com/corpus-agent/corpus-agent/artifact/store"
	"github.com/corpus-agent/corpus-agent/state/diag"
)

const (
	// inOne is the largest size of an object that is written by one request, from memory. All metadata is smaller.
	inOne = 8 << 20
	// leastPart is the smallest part that S3 allows, so that a broken line loses little.
	leastPart = 5 << 20
	// mostParts is the largest number of parts that S3 allows.
	mostParts = 10_000
	// largest is the largest object that S3 allows.
	largest = 5 << 40
)

// Written is the server's description of an object, or of a part.
type Written struct {
	ETag  string
	CRC32 string // base64, empty if the server sends none
	Size  int64  // -1 if the server sends none
}

// Part is a part of a multipart upload.
type Part struct {
	Number int
	Written
	sums Sums
}

// CRC is the checksum that was sent with the part.
func (p Part) CRC() string { return p.sums.CRC32 }

// Client makes the requests of a Put. It returns errors of a Call. Bodies are in memory.
type Client interface {
	// Whole writes an object in one request.
	Whole(ctx context.Context, body io.ReadSeeker, size int64, sums Sums, cond store.Condition) (Written, error)
	// Head returns the server's description of the object.
	Head(ctx context.Context) (Written, error)
	// Read reads the object back.
	Read(ctx context.Context) (io.ReadCloser, error)
	// Uploads returns the unfinished uploads of the object, newest first, and Parts the parts of one of them.
	Uploads(ctx context.Context) ([]string, error)
	Parts(ctx context.Context, upload string) (map[int]Written, error)
	// Begin starts an upload, with checksums or without, Send sends a part of it, and Complete makes the object from the
	// parts.
	Begin(ctx context.Context, checked bool) (upload string, err error)
	Send(ctx context.Context, upload string, number int, body io.ReadSeeker, size int64, sums Sums) (Written, error)
	Complete(ctx context.Context, upload string, parts []Part, cond store.Condition) (Written, error)
}

// Write makes the requests of a Put. A small object is sent in one. A larger one is sent in parts, and a part that the
// server has from an earlier attempt, of this process or another one, is not sent again.
// A response alone does not prove that the object was stored: some proxies send one for requests that they did not
// forward. So the server's checksum is compared, and if it sends none, the object is read back.
func (c *Call) Write(ctx context.Context, client Client, r io.Reader,
	size int64, cond store.Condition) (store.Info, error) {
	if size > largest {
		return store.Info{}, c.Unusable(fmt.Errorf("%d bytes are more than an object can have", size),
			"an object has at most 5 TiB")
	}
	source, err := NewUpload(r, size)
	if err != nil {
		return store.Info{}, fmt.Errorf("writing %s: %w", c.Object, err)
	}
	p := &put{call: c, client: client, ctx: ctx, source: source, size: size, cond: cond, moved: store.Moved(ctx)}
	said, err := p.write()
	if fault := source.Release(); fault != nil {
		return store.Info{}, fmt.Errorf("writing %s: %w", c.Object, fault)
	}
	if cond.IfMatch != "" && errors.Is(err, store.ErrNotFound) {
		return store.Info{}, c.Precondition() // S3 reports an absent object this way
	}
	if err != nil {
		return store.Info{}, err
	}
	return store.Info{Key: c.Key, Size: size, ETag: said.ETag}, nil
}

// put is a Put in progress.
type put struct {
	call   *Call
	client Client
	ctx    context.Context
	source *Upload
	size   int64
	cond   store.Condition
	moved  func(time.Duration)
	crc    uint32 // checksum of the bytes that were read from the source
	lost   bool   // the server did not store what it confirmed
}

func (p *put) write() (Written, error) {
	if pieces, ok := p.ctx.Value(piecesKey{}).(composer); ok {
		return pieces.compose(p)
	}
	if p.size > inOne {
		return p.inParts()
	}
	data, err := p.read(p.size)
	if err != nil {
		return Written{}, err
	}
	sums := sumsOf(data)
	said, err := p.client.Whole(p.ctx, p.body(data), p.size, sums, p.cond)
	if err != nil {
		return said, err
	}
	return p.confirm(said, sums)
}

// read reads the next bytes of the source.
func (p *put) read(n int64) ([]byte, error) {
	data := make([]byte, n)
	if _, err := io.ReadFull(p.source, data); err != nil {
		return nil, err
	}
	p.crc = crc32.Update(p.crc, crc32.IEEETable, data)
	return data, nil
}

func (p *put) body(data []byte) io.ReadSeeker {
	return &memory{Reader: bytes.NewReader(data), moved: p.moved}
}

// confirm compares the object on the server with the data that was sent.
func (p *put) confirm(said Written, sums Sums) (Written, error) {
	same, sure := sums.same(said)
	if sure && !same {
		return said, p.damaged("the object that it stored has the checksum %s, not %s", said.CRC32, sums.CRC32)
	}
	p.moved(0)
	there, err := p.client.Head(p.ctx)
	switch {
	case errors.Is(err, store.ErrForbidden): // credentials that may write need not be allowed to read
		return said, nil
	case errors.Is(err, store.ErrNotFound):
		return said, p.damaged("it answered that it stored the object, and the object does not exist")
	case err != nil:
		return said, err
	case said.ETag != "" && there.ETag != said.ETag && same:
		return said, nil // another writer has replaced it in the meantime
	case there.Size >= 0 && there.Size != p.size:
		return said, p.damaged("it answered that it stored %d bytes, and has %d", p.size, there.Size)
	}
	return p.compare(said, there, sums)
}

// compare compares the checksum of the uploaded object with that of the data. If the server reports no checksum, it
// reads the object.
func (p *put) compare(said, there Written, sums Sums) (Written, error) {
	if same, sure := sums.same(there); sure && same {
		return there, nil
	} else if sure {
		return said, p.damaged("it has other bytes than were sent: checksum %s, not %s", there.CRC32, sums.CRC32)
	}
	return there, p.readBack()
}

// readBack reads the object back and compares its checksum.
func (p *put) readBack() error {
	p.moved(0)
	body, err := p.client.Read(p.ctx)
	if err != nil {
		return err
	}
	defer body.Close()
	sum := crc32.NewIEEE()
	n, err := io.Copy(sum, movingReader{body, p.moved})
	if err != nil {
		return p.call.Fail(err)
	}
	if n != p.size || sum.Sum32() != p.crc {
		return p.damaged("it has other bytes than were sent")
	}
	return nil
}

type movingReader struct {
	io.Reader
	moved func(time.Duration)
}

func (m movingReader) Read(b []byte) (int, error) {
	m.moved(0)
	return m.Reader.Read(b)
}

// damaged returns the error for a server that did not store what it confirmed.
func (p *put) damaged(format string, args ...any) error {
	p.lost = true
	return p.call.tell(verdict{kind: store.ErrUnreachable, again: true,
		hint: diag.Store.Coded("a proxy on the way to the store, or the store itself, loses data: look at proxies and " +
			"at the server's log")},
		fmt.Errorf(format, args...))
}
