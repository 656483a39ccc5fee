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
)

const (
	// inOne is up to which size an object is written by one request, from memory. All metadata is.
	inOne = 8 << 20
	// leastPart is the smallest part that S3 allows, so that a line which breaks loses little.
	leastPart = 5 << 20
	// mostParts is how many parts S3 allows.
	mostParts = 10_000
	// largest is what S3 takes.
	largest = 5 << 40
)

// Written is what a server says of an object, or of a part.
type Written struct {
	ETag  string
	CRC32 string // base64, empty where the server does not say
	Size  int64  // -1 where it does not say
}

// Part is one of the parts that an object is written in.
type Part struct {
	Number int
	Written
	sums Sums
}

// CRC is the checksum that was sent with the part.
func (p Part) CRC() string { return p.sums.CRC32 }

// Client makes the requests of a Put. Its errors are those of a Call. Bodies come from memory.
type Client interface {
	// Whole writes an object by one request.
	Whole(ctx context.Context, body io.ReadSeeker, size int64, sums Sums, cond store.Condition) (Written, error)
	// Head asks what the server has.
	Head(ctx context.Context) (Written, error)
	// Read reads the object back.
	Read(ctx context.Context) (io.ReadCloser, error)
	// Uploads are the unfinished uploads of the object, newest first, and Parts what one of them has.
	Uploads(ctx context.Context) ([]string, error)
	Parts(ctx context.Context, upload string) (map[int]Written, error)
	// Begin starts an upload, Send writes a part of it, and Complete makes the object of them.
	Begin(ctx context.Context) (upload string, err error)
	Send(ctx context.Context, upload string, number int, body io.ReadSeeker, size int64, sums Sums) (Written, error)
	Complete(ctx context.Context, upload string, parts []Part, cond store.Condition) (Written, error)
}

// Write makes the requests of a Put. A small object goes out in one. A larger one goes out in parts, and
// a part that the server has of an earlier try, of this process or of another one, is not sent again.
// An answer alone is no proof that the object is there: some proxies give one for what they did not
// pass on. So the server's checksum is compared, and where it gives none, the object is read back.
func (c *Call) Write(ctx context.Context, client Client, r io.Reader, size int64, cond store.Condition) (store.Info, error) {
	if size > largest {
		return store.Info{}, c.Unusable(fmt.Errorf("%d bytes are more than an object can have", size), "an object has at most 5 TiB")
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
		return store.Info{}, c.Precondition() // S3's word for an absent object
	}
	if err != nil {
		return store.Info{}, err
	}
	return store.Info{Key: c.Key, Size: size, ETag: said.ETag}, nil
}

// put is one Put under way.
type put struct {
	call   *Call
	client Client
	ctx    context.Context
	source *Upload
	size   int64
	cond   store.Condition
	moved  func(time.Duration)
	crc    uint32 // of what was read of the source
}

func (p *put) write() (Written, error) {
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

// read takes the next bytes of the source.
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

// confirm compares what the server has with what was sent.
func (p *put) confirm(said Written, sums Sums) (Written, error) {
	same, sure := sums.same(said)
	if sure && !same {
		return said, p.damaged("its checksum of what it stored is another one (%s, not %s)", said.CRC32, sums.CRC32)
	}
	p.moved(0)
	there, err := p.client.Head(p.ctx)
	switch {
	case errors.Is(err, store.ErrForbidden): // who may write need not be one who may read
		return said, nil
	case errors.Is(err, store.ErrNotFound):
		return said, p.damaged("it answered that it stored the object, and the object is not there")
	case err != nil:
		return said, err
	case said.ETag != "" && there.ETag != said.ETag && same:
		return said, nil // another writer came after
	case there.Size >= 0 && there.Size != p.size:
		return said, p.damaged("it answered that it stored %d bytes, and has %d", p.size, there.Size)
	}
	if same, sure := sums.same(there); sure && same {
		return there, nil
	} else if sure {
		return said, p.damaged("it has other bytes than were sent: checksum %s, not %s", there.CRC32, sums.CRC32)
	}
	return there, p.readBack()
}

// readBack compares the object byte by byte, as far as a checksum does.
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

// damaged tells of a server that did not do what it answered.
func (p *put) damaged(format string, args ...any) error {
	return p.call.tell(verdict{kind: store.ErrUnreachable, again: true, hint: "something between here and the store, or the store itself, loses what is written: look at proxies and at the server's log"},
		fmt.Errorf(format, args...))
}
