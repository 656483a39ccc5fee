package unpack

import (
	"errors"
	"io"
	"runtime"
	"sync"
	"sync/atomic"

	"github.com/klauspost/compress/zstd"
)

const (
	// decoderMemory is the largest window that a zstd stream may use, if it is not in small frames.
	decoderMemory = 128 << 20
	// largestFrame is the largest content of a frame that is decoded beside others. `corpus build` makes them this large.
	largestFrame = 8 << 20
	// mostDecoders bounds the memory of frames: for each decoder one buffer of largestFrame and one of about a twentieth
	// more.
	mostDecoders = 4
	// overread is the number of bytes behind a frame's content that the decoder may write to if there is room.
	overread = 64
)

// newZstd returns a reader of a zstd stream. If there are several processors, frames of known size are decoded
// concurrently, but by one reader at a time, since its buffers are large. Close waits for a read of r, so the caller
// ends that first.
func newZstd(r io.Reader) (io.ReadCloser, error) {
	decoders := min(mostDecoders, runtime.GOMAXPROCS(0))
	if decoders < 2 || !taken.CompareAndSwap(false, true) {
		return newStream(r)
	}
	f, err := newFrames(r, decoders, largestFrame)
	if err != nil {
		taken.Store(false)
		return nil, err
	}
	return onlyFrames{f}, nil
}

// taken is set while there is a reader of newZstd that decodes frames concurrently.
var taken atomic.Bool

// onlyFrames is the reader for which taken is set.
type onlyFrames struct{ *frames }

// Close implements io.Closer.
func (o onlyFrames) Close() error {
	defer taken.Store(false)
	return o.frames.Close()
}

// newStream returns a reader that decodes one block after the other.
func newStream(r io.Reader) (io.ReadCloser, error) {
	d, err := zstd.NewReader(r, zstd.WithDecoderMaxMemory(decoderMemory), zstd.WithDecoderLowmem(true),
		// Two decoders work ahead of the reader.
		zstd.WithDecoderConcurrency(min(4, max(2, runtime.GOMAXPROCS(0)))))
	if err != nil {
		return nil, err
	}
	return d.IOReadCloser(), nil
}

// frames is a reader of a zstd stream whose frames are decoded concurrently. One goroutine splits the stream, and one
// for each frame decodes it. Each frame has a buffer for its content, from a fixed number of buffers, until Read has
// returned the last byte; as many encoded frames are in memory, too.
type frames struct {
	split    *splitter
	decoder  *zstd.Decoder
	ordered  chan *frame // what is next, in the order of the stream
	encoded  chan []byte // buffers that are not in use
	contents chan []byte
	stopped  chan struct{}
	running  sync.WaitGroup

	// used by Read only
	now  []byte // the content that is being read
	rest []byte // its unread part
	tail io.ReadCloser
	err  error
}

// frame is the next part of the content.
type frame struct {
	content []byte
	err     error
	done    chan struct{} // closed when content or err is there
	rest    io.Reader     // if not nil, the encoded rest of the stream, which was not split
}

func newFrames(r io.Reader, decoders, largest int) (*frames, error) {
	decoder, err := zstd.NewReader(nil, zstd.WithDecoderMaxMemory(uint64(max(largest, zstd.MinWindowSize))),
		zstd.WithDecoderLowmem(true), zstd.WithDecoderConcurrency(decoders))
	if err != nil {
		return nil, err
	}
	f := &frames{split: newSplitter(r, largest), decoder: decoder, ordered: make(chan *frame, decoders),
		encoded: make(chan []byte, decoders), contents: make(chan []byte, decoders), stopped: make(chan struct{})}
	for range decoders {
		f.encoded <- nil
		f.contents <- nil
	}
	f.running.Go(f.run)
	return f, nil
}

// run splits the stream until its end, or until f is closed because a frame could not be decoded.
func (f *frames) run() {
	defer close(f.ordered)
	for {
		one, ok := f.one()
		if !ok {
			return
		}
		select {
		case f.ordered <- one:
		case <-f.stopped:
			return
		}
		if one.rest != nil {
			return
		}
	}
}

// one reads the next frame and starts its decoder. It returns false at the end of the stream, or if f was closed.
func (f *frames) one() (*frame, bool) {
	header, err := f.split.header()
	if errors.Is(err, io.EOF) {
		return nil, false
	}
	if err != nil {
		return &frame{rest: f.split.rest(nil, err)}, true
	}
	encoded, ok := f.buffer(f.encoded)
	if !ok {
		return nil, false
	}
	encoded, err = f.split.next(header, encoded[:0])
	if err != nil {
		return &frame{rest: f.split.rest(encoded, err)}, true
	}
	content, ok := f.buffer(f.contents)
	if !ok {
		return nil, false
	}
	if cap(content) < header.content+overread {
		content = make([]byte, 0, header.content+overread)
	}
	one := &frame{done: make(chan struct{})}
	f.running.Go(func() {
		one.content, one.err = f.decoder.DecodeAll(encoded, content[:0])
		f.encoded <- encoded
		close(one.done)
	})
	return one, true
}

// buffer waits for a buffer. It returns false if f was closed.
func (f *frames) buffer(from chan []byte) ([]byte, bool) {
	select {
	case b := <-from:
		return b, true
	case <-f.stopped:
		return nil, false
	}
}

// Read implements io.Reader.
func (f *frames) Read(p []byte) (int, error) {
	for len(f.rest) == 0 && f.tail == nil && f.err == nil {
		f.err = f.advance()
	}
	switch {
	case f.err != nil:
		return 0, f.err
	case f.tail != nil:
		return f.tail.Read(p)
	}
	n := copy(p, f.rest)
	f.rest = f.rest[n:]
	return n, nil
}

// advance waits for the next frame.
func (f *frames) advance() (err error) {
	if f.now != nil {
		f.contents <- f.now
		f.now = nil
	}
	one, ok := <-f.ordered
	if !ok {
		return io.EOF
	}
	if one.rest != nil {
		f.rest, f.encoded, f.contents = nil, nil, nil // all goroutines are done with the buffers
		f.tail, err = newStream(one.rest)
		return err
	}
	<-one.done
	f.now, f.rest = one.content, one.content
	return one.err
}

// Close ends all goroutines. Nothing may be read from f afterwards.
func (f *frames) Close() error {
	close(f.stopped)
	f.running.Wait()
	if f.tail != nil {
		_ = f.tail.Close() // it was only read
	}
	f.decoder.Close()
	return nil
}
