package journal

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"io"
	"os"
	"sync"

	"github.com/klauspost/compress/zstd"
	"golang.org/x/sys/unix"

	"github.com/corpus-agent/corpus-agent/artifact/durable"
	"github.com/corpus-agent/corpus-agent/state/diag"
)

// writer appends frames to a chapter.
type writer struct {
	journal  Journal
	number   int
	file     *os.File
	last     sum
	size     int64
	reserved int64 // offset of the end of the zeros that reserve wrote
	others   int64 // bytes of the other chapters
	pieces   map[string]place
	records  int
	packer   *zstd.Encoder

	mu      sync.Mutex
	pending []byte // the frames before offset size that are not written yet
	needed  int64  // the offset up to which the file must be synced before the next change
	done    *sync.Cond
	synced  int64 // the offset up to which the file is synced
	syncing bool
	failed  error
}

// extend opens a chapter for appending. It truncates an incomplete last frame.
func (j Journal) extend(c *Chapter) (*writer, error) {
	f, err := os.OpenFile(c.path, os.O_RDWR, 0)
	if err != nil {
		return nil, err
	}
	w := j.writer(f, c.Number)
	w.last, w.size, w.pieces, w.records = c.last, c.end, c.pieces, len(c.Records)
	if c.Torn {
		err = errors.Join(f.Truncate(c.end), f.Sync())
	}
	w.synced = w.size
	return w, errors.Join(err, w.count())
}

// start creates a chapter.
func (j Journal) start(number int, h Header) (*writer, error) {
	if err := durable.MkdirAll(j.Dir, 0o700); err != nil {
		return nil, err
	}
	f, err := os.OpenFile(j.path(number), os.O_RDWR|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return nil, err
	}
	w := j.writer(f, number)
	w.pieces = map[string]place{}
	if _, err := f.Write(opening()); err != nil {
		return nil, err
	}
	w.size, w.last = int64(len(opening())), chain(sum{}, opening())
	return w, errors.Join(w.add(kindHeader, h), w.flush(), durable.SyncDir(j.Dir), w.count())
}

func (j Journal) writer(f *os.File, number int) *writer {
	w := &writer{journal: j, number: number, file: f}
	w.done = sync.NewCond(&w.mu)
	return w
}

// count sets w.others.
func (w *writer) count() error {
	var err error
	w.others, err = w.journal.sizeExcept(w.number)
	return err
}

// add appends a frame with body as JSON.
func (w *writer) add(k kind, body any) error {
	data, err := json.Marshal(body)
	if err != nil {
		return err
	}
	return w.write(k, data)
}

// write appends a frame. It keeps up to maxPiece bytes in memory until put is called.
func (w *writer) write(k kind, body []byte) error {
	b, s := frame(w.last, k, body)
	w.mu.Lock()
	defer w.mu.Unlock()
	w.pending = append(w.pending, b...)
	w.last, w.size = s, w.size+int64(len(b))
	if len(w.pending) > maxPiece {
		return w.put()
	}
	return nil
}

// need makes waitForDisk wait for all frames added so far.
func (w *writer) need() {
	w.mu.Lock()
	w.needed = w.size
	w.mu.Unlock()
}

// flush writes pending frames to the file, so that they survive the end of this process.
func (w *writer) flush() error {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.put()
}

func (w *writer) put() error {
	at := w.size - int64(len(w.pending))
	if err := w.reserve(w.size); err != nil {
		return err
	}
	if _, err := w.file.WriteAt(w.pending, at); err != nil {
		return err
	}
	w.pending = w.pending[:0]
	return nil
}

// ahead is the number of zeros that reserve writes after the end. Syncing data that replaces them takes less than half
// as long as syncing a file that grows. The reader takes zeros that remain after a power failure for an incomplete
// frame.
const ahead = 64 << 10

// reserve writes zeros after offset end, unless the file already has some there.
func (w *writer) reserve(end int64) error {
	if end <= w.reserved {
		return nil
	}
	_, err := w.file.WriteAt(make([]byte, ahead), end)
	w.reserved = end + ahead
	return err
}

// sync waits until all frames added so far are on disk. Concurrent calls share one fdatasync(2).
func (w *writer) sync() error {
	w.need()
	return w.waitForDisk()
}

// waitForDisk waits until all frames that need marked are on disk.
func (w *writer) waitForDisk() error {
	w.mu.Lock()
	defer w.mu.Unlock()
	for want := w.needed; w.synced < want && w.failed == nil; {
		if w.syncing {
			w.done.Wait()
			continue
		}
		if err := w.put(); err != nil {
			return err
		}
		w.syncing = true
		upTo := w.size
		w.mu.Unlock()
		err := unix.Fdatasync(int(w.file.Fd()))
		w.mu.Lock()
		w.syncing, w.synced = false, upTo
		if err != nil {
			// The error is permanent: the kernel does not retry pages that it failed to write.
			w.failed = err
		}
		w.done.Broadcast()
	}
	return w.failed
}

// Keep implements image.Keeper. It returns the reason in lost if the content exceeds a limit of the journal.
func (w *writer) Keep(r io.Reader, size int64) (pieces []string, lost string, err error) {
	if size > w.journal.FileLimit {
		return nil, "it is larger than " + diag.Size(w.journal.FileLimit), nil
	}
	buf := make([]byte, min(size+1, maxPiece))
	for {
		n, err := io.ReadFull(r, buf)
		if n > 0 {
			name, lost, err := w.piece(buf[:n])
			if err != nil || lost != "" {
				return nil, lost, err
			}
			pieces = append(pieces, name)
		}
		switch {
		case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF):
			return pieces, "", nil
		case err != nil:
			return nil, "", err
		case int64(len(pieces))*maxPiece > w.journal.FileLimit+maxPiece:
			return nil, "it is larger than " + diag.Size(w.journal.FileLimit), nil
		}
	}
}

// piece appends one piece of content, unless the chapter already has it.
func (w *writer) piece(data []byte) (name, lost string, err error) {
	name = nameOf(data)
	if _, ok := w.pieces[name]; ok {
		return name, "", nil
	}
	if err := w.preparePacker(); err != nil {
		return "", "", err
	}
	raw, err := hex.DecodeString(name)
	if err != nil {
		return "", "", err
	}
	body := w.packer.EncodeAll(data, raw)
	if full, err := w.dropUntilFits(int64(len(body)) + headSize + sumSize); full || err != nil {
		return "", "the journal is full (" + diag.Size(w.journal.Limit) + ")", err
	}
	at := w.size
	if err := w.write(kindPiece, body); err != nil {
		return "", "", err
	}
	w.pieces[name] = place{at + headSize + sumSize, int64(len(body)) - sumSize}
	return name, "", nil
}

// preparePacker creates the encoder for pieces when the first piece is written, since it takes memory.
func (w *writer) preparePacker() (err error) {
	if w.packer == nil {
		w.packer, err = zstd.NewWriter(nil, zstd.WithEncoderConcurrency(1), zstd.WithEncoderLevel(zstd.SpeedFastest),
			zstd.WithWindowSize(maxPiece), zstd.WithLowerEncoderMem(true))
	}
	return err
}

// dropUntilFits removes old chapters until the journal has room for more bytes. It returns full if that is not enough.
func (w *writer) dropUntilFits(more int64) (full bool, err error) {
	for w.others+w.size+more > w.journal.Limit {
		dropped, err := w.journal.dropOldest(w.number)
		if err != nil || !dropped {
			return true, err
		}
		if err := w.count(); err != nil {
			return true, err
		}
	}
	return false, nil
}

// close syncs the chapter, truncates the zeros of reserve, and closes the file. It does not sync the truncation: the
// chapter is valid without it.
func (w *writer) close() error {
	if err := w.sync(); err != nil {
		return errors.Join(err, w.file.Close())
	}
	return errors.Join(w.file.Truncate(w.size), w.file.Close())
}

func nameOf(data []byte) string {
	s := sha256.Sum256(data)
	return hex.EncodeToString(s[:])
}
