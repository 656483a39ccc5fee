package packaging

import (
	"context"
	"errors"
	"io"
	"path/filepath"

	"golang.org/x/sync/errgroup"

	"github.com/corpus-agent/corpus-agent/artifact/walk"
)

// Files are read ahead of their turn, so that the disk and the compression work at the same time. At most
// aheadFiles files of up to aheadSize bytes wait in memory.
const (
	aheadFiles   = 64
	aheadSize    = 256 << 10 // a larger file is read in its turn
	aheadReaders = 3
)

// content is the content of a file, or the error of reading it.
type content struct {
	data []byte
	err  error
}

// readAhead reads the small files among entries concurrently, and sends their contents in order. The channel is
// closed early if the context is done.
func readAhead(ctx context.Context, tree string, entries []found) <-chan chan content {
	queue := make(chan chan content, aheadFiles)
	go func() {
		defer close(queue)
		var group errgroup.Group
		group.SetLimit(aheadReaders)
		for _, e := range entries {
			if !e.small() {
				continue
			}
			one := make(chan content, 1)
			select {
			case queue <- one:
			case <-ctx.Done():
				return
			}
			group.Go(func() error {
				data, err := readWhole(filepath.Join(tree, filepath.FromSlash(e.name)), e.info.Size())
				one <- content{data, err}
				return nil
			})
		}
	}()
	return queue
}

// small reports whether an entry is a file that is read ahead.
func (e found) small() bool {
	return e.data == nil && e.info.Mode().IsRegular() && e.info.Size() <= aheadSize
}

// readWhole reads exactly the bytes that a file had when it was found.
func readWhole(file string, size int64) ([]byte, error) {
	f, err := walk.OpenFile(file)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	data := make([]byte, size)
	if _, err := io.ReadFull(f, data); err != nil {
		if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
			err = errChanged
		}
		return nil, err
	}
	return data, nil
}

var errChanged = errors.New("it changed while it was read")
