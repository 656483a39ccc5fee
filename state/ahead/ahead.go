// Package ahead downloads the sources of later states while earlier states run, so that a run waits for the network
// once and not at each state.
//
// A download changes nothing on the host: it is a file without a name, which is gone when the run ends, however it
// ends. A state opens its source as always, and gets the downloaded file if there is one. The state verifies what it
// reads. If the download failed, the state downloads the source itself and reports why it cannot.
package ahead

import (
	"context"
	"errors"
	"io"
	"os"
	"slices"
	"sync"

	"golang.org/x/sys/unix"

	"github.com/corpus-agent/corpus-agent/artifact/walk"
)

const (
	// directory is where the downloads take their space.
	directory = "/var/tmp"
	// workers is the number of downloads at the same time. Each may fill half of the free space.
	workers = 2
	// reserve is the number of bytes that downloads leave free on a disk.
	reserve = 256 << 20
)

// Open opens the file at a URL.
type Open func(ctx context.Context, url string) (io.ReadCloser, error)

// Downloads holds the files that are downloaded ahead in a run.
type Downloads struct {
	open Open
	end  context.CancelFunc
	work sync.WaitGroup

	mu    sync.Mutex
	files []*file // in the order in which the states will need them
}

// file is one download.
type file struct {
	url     string
	began   bool
	ended   chan struct{} // closed at the end of the download
	content *os.File      // nil if the download failed
	size    int64
}

// Start begins to download URLs, in their order. The caller must call Close.
func Start(ctx context.Context, open Open, urls []string) *Downloads {
	ctx, end := context.WithCancel(ctx)
	d := &Downloads{open: open, end: end}
	for _, url := range urls {
		d.files = append(d.files, &file{url: url, ended: make(chan struct{})})
	}
	for range min(workers, len(urls)) {
		d.work.Go(func() {
			for f := d.next(); f != nil; f = d.next() {
				f.content, f.size = d.download(ctx, f.url)
				close(f.ended)
			}
		})
	}
	return d
}

// next takes the first file that no one downloads yet; nil for none.
func (d *Downloads) next() *file {
	d.mu.Lock()
	defer d.mu.Unlock()
	i := slices.IndexFunc(d.files, func(f *file) bool { return !f.began })
	if i < 0 {
		return nil
	}
	d.files[i].began = true
	return d.files[i]
}

// Open returns the downloaded file of a URL, and waits for it if it is being downloaded. It reports false if the caller
// has to download it: the URL is not expected, its download has not begun, or it failed.
func (d *Downloads) Open(ctx context.Context, url string) (io.ReadCloser, bool) {
	if d == nil {
		return nil, false
	}
	f := d.take(url)
	if f == nil {
		return nil, false
	}
	select {
	case <-f.ended:
	case <-ctx.Done():
		return nil, false
	}
	if f.content == nil {
		return nil, false
	}
	return io.NopCloser(io.NewSectionReader(f.content, 0, f.size)), true
}

// take returns the file of a URL if its download has begun. Otherwise it is not downloaded ahead anymore.
func (d *Downloads) take(url string) *file {
	d.mu.Lock()
	defer d.mu.Unlock()
	i := slices.IndexFunc(d.files, func(f *file) bool { return f.url == url })
	if i < 0 {
		return nil
	}
	f := d.files[i]
	if !f.began {
		d.files = slices.Delete(d.files, i, i+1)
		return nil
	}
	return f
}

// Close stops the downloads and frees their space.
func (d *Downloads) Close() {
	d.end()
	d.work.Wait()
	for _, f := range d.files {
		if f.content != nil {
			_ = f.content.Close()
		}
	}
}

// download returns the file at a URL; nil if it cannot be downloaded.
func (d *Downloads) download(ctx context.Context, url string) (*os.File, int64) {
	limit, err := room()
	if ctx.Err() != nil || err != nil || limit <= 0 {
		return nil, 0
	}
	body, err := d.open(ctx, url)
	if err != nil {
		return nil, 0
	}
	defer body.Close()
	content, err := nameless()
	if err != nil {
		return nil, 0
	}
	n, err := io.Copy(content, io.LimitReader(body, limit))
	if err == nil && n == limit {
		err = errors.New("the disk has no more room")
	}
	if err != nil {
		_ = content.Close()
		return nil, 0
	}
	return content, n
}

// room returns the number of bytes that one download may take.
func room() (int64, error) {
	space, err := walk.SpaceAt(directory)
	return (space.For(os.Geteuid()) - reserve) / workers, err
}

// nameless makes a file without a name, which the kernel removes when it is closed.
func nameless() (*os.File, error) {
	fd, err := unix.Open(directory, unix.O_TMPFILE|unix.O_RDWR|unix.O_CLOEXEC, 0o600)
	if err != nil {
		return nil, err
	}
	return os.NewFile(uintptr(fd), "download"), nil
}
