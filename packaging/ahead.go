package packaging

import (
	"context"
	"errors"
	"io"

	"github.com/corpus-agent/corpus-agent/packaging/seen"
)

// Files are read ahead of their turn, so that the disk and the compression work at the same time. Readers take several
// files at once, since waking a reader costs as much as reading a file. Batches are used again: at most aheadBatches of
// up to 2*aheadSize bytes are in memory.
const (
	aheadBatches = 8
	aheadFiles   = 64        // in a batch
	aheadSize    = 256 << 10 // a larger file is read in its turn
	aheadReaders = 3
)

// batch is some small files, one after the other.
type batch struct {
	files []found
	size  int64  // of all files
	data  []byte // their content
	good  int    // files that were read
	err   error  // of the file after them
	read  chan struct{}
}

// add adds a file, if there is room.
func (b *batch) add(e found) bool {
	if len(b.files) == aheadFiles || len(b.files) > 0 && b.size+e.Size > 2*aheadSize {
		return false
	}
	b.files, b.size = append(b.files, e), b.size+e.Size
	return true
}

// fill reads the files.
func (b *batch) fill(tree *seen.Tree) {
	if b.data == nil {
		b.data = make([]byte, 0, 2*aheadSize)
	}
	for _, e := range b.files {
		end := len(b.data) + int(e.Size)
		if b.err = readWhole(tree, e.Entry, b.data[len(b.data):end]); b.err != nil {
			break
		}
		b.data = b.data[:end]
		b.good++
	}
	b.read <- struct{}{}
}

// ahead are the contents of the small files of a tree, in order.
type ahead struct {
	queue chan *batch
	free  chan *batch
	now   *batch
	rest  []byte // of now that was not packed yet
	left  int    // files of now that were not packed yet
}

// readAhead reads the small files among entries concurrently, until the context is done.
func readAhead(ctx context.Context, tree *seen.Tree, entries []found) *ahead {
	a := &ahead{queue: make(chan *batch, aheadBatches), free: make(chan *batch, aheadBatches)}
	todo := make(chan *batch, aheadBatches)
	for range aheadBatches {
		a.free <- &batch{read: make(chan struct{}, 1)}
	}
	for range aheadReaders {
		go func() {
			for b := range todo {
				b.fill(tree)
			}
		}()
	}
	go func() {
		defer close(a.queue)
		defer close(todo)
		var next *batch
		hand := func() {
			if next != nil {
				a.queue <- next
				todo <- next
			}
			next = nil
		}
		for _, e := range entries {
			if !e.small() || next != nil && next.add(e) {
				continue
			}
			hand()
			select {
			case next = <-a.free:
				next.add(e)
			case <-ctx.Done():
				return
			}
		}
		hand()
	}()
	return a
}

// next returns the content of the next small file. It is valid until the following call.
func (a *ahead) next(ctx context.Context, size int64) ([]byte, error) {
	if a.left == 0 {
		if a.now != nil {
			*a.now = batch{files: a.now.files[:0], data: a.now.data[:0], read: a.now.read}
			a.free <- a.now
		}
		var ok bool
		if a.now, ok = <-a.queue; !ok {
			return nil, ctx.Err()
		}
		<-a.now.read
		a.rest, a.left = a.now.data, len(a.now.files)
	}
	if a.left--; len(a.now.files)-a.left > a.now.good {
		return nil, a.now.err
	}
	data := a.rest[:size]
	a.rest = a.rest[size:]
	return data, nil
}

// small reports whether an entry is a file that is read ahead.
func (e found) small() bool {
	return e.data == nil && e.Mode.IsRegular() && e.Size <= aheadSize
}

// readWhole reads exactly the bytes that a file had when it was found.
func readWhole(tree *seen.Tree, e seen.Entry, data []byte) error {
	f, err := tree.Open(e)
	if err != nil {
		return err
	}
	defer f.Close()
	_, err = io.ReadFull(f, data)
	return complete(f, err)
}

// complete returns an error if a file was changed while it was read. A file that is too short was.
func complete(f *seen.File, err error) error {
	if err == nil || errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		if unchanged := f.Unchanged(); unchanged != nil {
			return unchanged
		}
	}
	return err
}
