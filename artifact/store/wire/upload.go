package wire

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"sync"
)

// Upload reads the source of a Put. If the source has another number of bytes than announced, it fails before the last
// byte, so that the server never gets the whole.
type Upload struct {
	mu     sync.Mutex
	source *bufio.Reader // nil once released
	left   int64
	fault  error // the error of the source
}

// NewUpload wraps a source that must have size bytes.
func NewUpload(source io.Reader, size int64) (*Upload, error) {
	u := &Upload{source: bufio.NewReaderSize(source, 64<<10), left: size}
	if size == 0 { // an empty body may never be read
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
		return 0, fmt.Errorf("the source ends %d bytes before the announced size", u.left)
	case err != nil && err != io.EOF:
		return 0, err
	case u.left > 0:
		return n, nil
	}
	return n, u.end()
}

// end returns io.EOF if the source ends where it should.
func (u *Upload) end() error {
	_, err := u.source.Peek(1)
	if err == nil {
		return errors.New("the source has more bytes than announced")
	}
	return err
}

// Release stops using the source, after a read in progress. It returns the source's error, which a retry would not
// fix.
func (u *Upload) Release() error {
	u.mu.Lock()
	defer u.mu.Unlock()
	u.source = nil
	return u.fault
}
