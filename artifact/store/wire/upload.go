package wire

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"sync"

	"github.com/corpus-agent/corpus-agent/artifact/store"
)

// largest is what S3 takes in one request; an artifact stays far below.
const largest = 5 << 30

// Write makes one request of a Put. Send makes it with the body given, and returns the new ETag.
func (c *Call) Write(r io.Reader, size int64, cond store.Condition, send func(body io.Reader) (string, error)) (store.Info, error) {
	if size > largest {
		return store.Info{}, c.Unusable(fmt.Errorf("%d bytes are more than one request can write", size), "an object has at most 5 GiB")
	}
	body, err := NewUpload(r, size)
	if err != nil {
		return store.Info{}, fmt.Errorf("writing %s: %w", c.Object, err)
	}
	etag, err := send(body)
	if fault := body.Release(); fault != nil {
		return store.Info{}, fmt.Errorf("writing %s: %w", c.Object, fault)
	}
	if cond.IfMatch != "" && errors.Is(err, store.ErrNotFound) {
		return store.Info{}, c.Precondition() // S3's word for an absent object
	}
	if err != nil {
		return store.Info{}, err
	}
	return store.Info{Key: c.Key, Size: size, ETag: etag}, nil
}

// Upload is the body of a Put. It fails when the source has another number of bytes than was
// said, and before its last byte, so that the server never has the whole. And it lets go of the
// source: a transport may go on reading a request's body after the request has failed, when the
// source is already being read for the next try.
type Upload struct {
	mu     sync.Mutex
	source *bufio.Reader // nil once released
	left   int64
	fault  error // what the source did wrong
}

// NewUpload wraps a source that shall have size bytes.
func NewUpload(source io.Reader, size int64) (*Upload, error) {
	u := &Upload{source: bufio.NewReaderSize(source, 64<<10), left: size}
	if size == 0 { // such a body may never be read
		if err := u.end(); !errors.Is(err, io.EOF) {
			return nil, err
		}
	}
	return u, nil
}

func (u *Upload) Read(p []byte) (int, error) {
	u.mu.Lock()
	defer u.mu.Unlock()
	if u.source == nil {
		return 0, io.ErrClosedPipe
	}
	n, err := u.read(p)
	if err != nil && !errors.Is(err, io.EOF) {
		u.fault = err
		return 0, err
	}
	return n, err
}

func (u *Upload) read(p []byte) (int, error) {
	n, err := u.source.Read(p[:min(int64(len(p)), u.left)])
	u.left -= int64(n)
	switch {
	case err == io.EOF && u.left > 0:
		return 0, fmt.Errorf("the source ends %d bytes before the size that was said", u.left)
	case err != nil && err != io.EOF:
		return 0, err
	case u.left > 0:
		return n, nil
	}
	return n, u.end()
}

// end is io.EOF when the source ends where it should.
func (u *Upload) end() error {
	_, err := u.source.Peek(1)
	if err == nil {
		return errors.New("the source has more bytes than the size that was said")
	}
	return err
}

// Release lets go of the source, after a read of it that is under way. It returns what the source
// did wrong, which no other try would mend.
func (u *Upload) Release() error {
	u.mu.Lock()
	defer u.mu.Unlock()
	u.source = nil
	return u.fault
}
