package host

import (
	"fmt"
	"io"
	"os"

	"golang.org/x/sys/unix"

	"github.com/corpus-agent/corpus-agent/artifact/walk"
)

const (
	spared  = 16 << 20 // bytes that are left free of a filesystem
	unasked = 64 << 20 // bytes that are written without asking how much is free
)

// roomy gives the content of a file as long as its filesystem has room. A sparse file of a user's that is copied would
// fill the disk with what holds nothing there. Content that knows its size is refused before any of it is written.
type roomy struct {
	content io.Reader
	file    *os.File
	given   int64
	ask     int64 // at how many bytes to ask for room again
}

func inRoom(file *os.File, content io.Reader) (io.Reader, error) {
	r := &roomy{content: content, file: file, ask: unasked}
	if size := SizeOf(content); size > unasked {
		_, err := r.fits(size)
		return r, err
	}
	return r, nil
}

func (r *roomy) Read(p []byte) (int, error) {
	n, err := r.content.Read(p)
	if r.given += int64(n); r.given < r.ask {
		return n, err
	}
	left, full := r.fits(0)
	if full != nil {
		return 0, full
	}
	r.ask = r.given + min(left, unasked)
	return n, err
}

// fits says how much may be written without a look at what is left then; not all of bytes is an error.
func (r *roomy) fits(bytes int64) (left int64, err error) {
	var st unix.Statfs_t
	if err := walk.Retry(func() error { return unix.Fstatfs(int(r.file.Fd()), &st) }); err != nil {
		return 0, err
	}
	if st.Blocks == 0 { // a filesystem without a size
		return unasked, nil
	}
	free := st.Bavail
	if os.Geteuid() == 0 {
		free = st.Bfree
	}
	if left = int64(free)*st.Bsize - spared; left < bytes {
		return 0, fmt.Errorf("its %d bytes are more than the filesystem has left, with %d MiB to spare: %w",
			max(bytes, r.given), spared>>20, unix.ENOSPC)
	}
	return left, nil
}
