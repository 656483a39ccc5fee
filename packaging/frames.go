package packaging

import (
	"io"
	"runtime"
	"sync"

	"github.com/klauspost/compress/zstd"
)

// An artifact is compressed in zstd frames of frameSize bytes each, which do not depend on each other: all processors
// encode them here, and all processors of a host decode them. Every frame has the size of its content in its header and
// a checksum at its end. Any zstd program reads the frames as one stream. These settings are part of the format: other
// settings give other bytes. The number of encoders is not.
const (
	frameSize   = 8 << 20
	maxEncoders = 8 // one reader cannot supply more
)

// frame is a part of the archive: its bytes, and what they are encoded to.
type frame struct {
	plain, encoded []byte
	done           chan struct{} // receives one value when encoded is complete
}

// frames is a writer that compresses what is written to it. Its methods must be called from one goroutine. At most one
// frame for each encoder and one more are in memory, of at most 16 MiB each, and 9 MiB for each encoder.
type frames struct {
	to      io.Writer
	encoder *zstd.Encoder
	next    *frame      // being filled
	free    chan *frame // not in use
	todo    chan *frame // to be encoded
	ordered chan *frame // to be written, in this order
	running sync.WaitGroup

	mu  sync.Mutex
	err error // the first error of writing
}

func newFrames(to io.Writer) (*frames, error) {
	encoders := min(runtime.GOMAXPROCS(0), maxEncoders)
	encoder, err := zstd.NewWriter(nil, zstd.WithEncoderConcurrency(encoders), zstd.WithWindowSize(frameSize),
		zstd.WithEncoderCRC(true), zstd.WithLowerEncoderMem(true))
	if err != nil {
		return nil, err
	}
	all := encoders + 1
	f := &frames{to: to, encoder: encoder, free: make(chan *frame, all), todo: make(chan *frame, all),
		ordered: make(chan *frame, all)}
	for range all {
		f.free <- &frame{done: make(chan struct{}, 1)}
	}
	for range encoders {
		f.running.Go(f.encode)
	}
	f.running.Go(f.write)
	return f, nil
}

// encode encodes frames until the last one.
func (f *frames) encode() {
	for one := range f.todo {
		one.encoded = f.encoder.EncodeAll(one.plain, one.encoded[:0])
		one.done <- struct{}{}
	}
}

// write writes the encoded frames in order. After an error it only takes them.
func (f *frames) write() {
	for one := range f.ordered {
		<-one.done
		if f.failed() == nil {
			if _, err := f.to.Write(one.encoded); err != nil {
				f.fail(err)
			}
		}
		one.plain = one.plain[:0]
		f.free <- one
	}
}

func (f *frames) fail(err error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.err = err
}

func (f *frames) failed() error {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.err
}

// Write implements io.Writer.
func (f *frames) Write(p []byte) (n int, err error) {
	for len(p) > 0 {
		if err := f.failed(); err != nil {
			return n, err
		}
		if f.next == nil {
			f.next = <-f.free
			if f.next.plain == nil {
				f.next.plain = make([]byte, 0, frameSize)
			}
		}
		part := p[:min(len(p), frameSize-len(f.next.plain))]
		f.next.plain = append(f.next.plain, part...)
		n, p = n+len(part), p[len(part):]
		if len(f.next.plain) == frameSize {
			f.hand()
		}
	}
	return n, nil
}

// hand passes the frame that was filled on.
func (f *frames) hand() {
	f.ordered <- f.next
	f.todo <- f.next
	f.next = nil
}

// Close encodes and writes the rest, and ends the goroutines. It must be called after an error too.
func (f *frames) Close() error {
	if f.next != nil {
		f.hand()
	}
	close(f.todo)
	close(f.ordered)
	f.running.Wait()
	return f.failed()
}
