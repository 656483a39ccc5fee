package wire

import (
	"errors"
	"fmt"
	"io"
	"math"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/corpus-agent/corpus-agent/artifact/store"
)

// Opened is a successful response to a request for an object.
type Opened struct {
	Body         io.ReadCloser
	ETag         string
	Modified     time.Time
	Length       int64  // bytes of the body; -1 if unknown
	ContentRange string // the part of the object that the body is; empty for the whole object
}

// Open checks that a response matches the request, and returns its body. If a server sends the whole object instead of
// a part, the bytes before the part are discarded.
func (c *Call) Open(part store.Range, o Opened) (io.ReadCloser, store.Info, error) {
	body, info, err := c.open(part, o)
	if err != nil {
		_ = o.Body.Close() // the body is not used
		return nil, store.Info{}, err
	}
	return body, info, nil
}

func (c *Call) open(part store.Range, o Opened) (io.ReadCloser, store.Info, error) {
	info := store.Info{Key: c.Key, Size: o.Length, ETag: o.ETag, Modified: o.Modified, Now: c.answer.clock}
	skip := part.From
	if o.ContentRange != "" {
		start, end, size, err := parseContentRange(o.ContentRange)
		if err != nil || start != part.From || o.Length >= 0 && o.Length != end-start+1 ||
			part.Length > 0 && end-start >= part.Length {
			return nil, info, c.Malformed("asked for bytes from %d on, it sent Content-Range %.60q and %d bytes", part.From,
				o.ContentRange, o.Length)
		}
		info.Size, skip = size, 0
	}
	if err := part.Outdated(info.ETag); err != nil {
		return nil, info, c.tell(verdict{kind: err}, nil)
	}
	b := &body{call: c, inner: o.Body, skip: skip, left: math.MaxInt64, sure: info.Size >= 0}
	if b.sure {
		b.left = max(info.Size-part.From, 0)
	}
	if part.Length > 0 {
		b.left = min(b.left, part.Length)
	}
	return b, info, nil
}

// RangeHeader returns the Range header for a part; it is empty for a whole object.
func RangeHeader(part store.Range) string {
	switch {
	case part.Length > 0:
		return fmt.Sprintf("bytes=%d-%d", part.From, part.From+part.Length-1)
	case part.From > 0:
		return fmt.Sprintf("bytes=%d-", part.From)
	}
	return ""
}

// parseContentRange parses "bytes 5-9/10"; size is -1 for "*".
func parseContentRange(s string) (start, end, size int64, err error) {
	rest, ok := strings.CutPrefix(s, "bytes ")
	span, total, ok2 := strings.Cut(rest, "/")
	first, last, ok3 := strings.Cut(span, "-")
	if !ok || !ok2 || !ok3 {
		return 0, 0, 0, errors.New("not a byte range")
	}
	size = -1
	if total != "*" {
		if size, err = strconv.ParseInt(total, 10, 64); err != nil {
			return 0, 0, 0, err
		}
	}
	start, err = strconv.ParseInt(first, 10, 64)
	if err != nil {
		return 0, 0, 0, err
	}
	end, err = strconv.ParseInt(last, 10, 64)
	if err == nil && (start < 0 || end < start || size >= 0 && end >= size) {
		err = errors.New("impossible byte range")
	}
	return start, end, size, err
}

// body returns exactly the requested part.
type body struct {
	call  *Call
	inner io.ReadCloser
	skip  int64 // bytes before the part
	left  int64 // bytes of the part that are still missing, at most
	sure  bool  // left is exact: a shorter body is an error
}

func (b *body) Read(p []byte) (int, error) {
	if b.left == 0 {
		return 0, io.EOF
	}
	if err := b.drop(); err != nil {
		return 0, err
	}
	n, err := b.inner.Read(p[:min(int64(len(p)), b.left)])
	b.left -= int64(n)
	if err == io.EOF {
		return n, b.ended()
	}
	if err != nil {
		return n, b.call.Fail(err)
	}
	return n, nil
}

// drop discards the bytes before the part.
func (b *body) drop() error {
	if b.skip == 0 {
		return nil
	}
	n, err := io.CopyN(io.Discard, b.inner, b.skip)
	b.skip -= n
	if errors.Is(err, io.EOF) {
		return b.ended()
	}
	if err != nil {
		return b.call.Fail(err)
	}
	return nil
}

func (b *body) ended() error {
	if b.sure && b.left > 0 {
		return b.call.Fail(io.ErrUnexpectedEOF)
	}
	return io.EOF
}

// Close ends the transfer, whether or not all was read.
func (b *body) Close() error { return b.inner.Close() }

// PastEnd returns an empty body for a part past the end of the object.
func (c *Call) PastEnd(part store.Range, info store.Info) (io.ReadCloser, store.Info, error) {
	switch {
	case info.Size > part.From || part.From == 0 && info.Size != 0:
		return nil, store.Info{}, c.Malformed("it has no bytes from %d on, of an object of %d", part.From, info.Size)
	case part.ETag != "" && part.ETag != info.ETag:
		return nil, store.Info{}, c.Precondition()
	}
	return http.NoBody, info, nil
}
