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

// writer adds to a chapter.
type writer struct {
	journal  Journal
	number   int
	file     *os.File
	last     sum
	size     int64
	reserved int64 // to where the file is written
	others   int64 // bytes of the other chapters
	pieces   map[string]place
	records  int
	packer   *zstd.Encoder

	mu      sync.Mutex
	pending []byte // that is still to be written, up to size
	needed  int64  // how much of the file has to be safe before the next change
	done    *sync.Cond
	synced  int64 // how much of the file a power cut cannot take
	syncing bool
	failed  error
}

// extend opens a chapter to add to it. What a power cut left of its last record is cut off.
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

// start makes a new chapter.
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

// count adds up what the other chapters take.
func (w *writer) count() error {
	var err error
	w.others, err = w.journal.sizeBut(w.number)
	return err
}

// add writes a frame of JSON.
func (w *writer) add(k kind, body any) error {
	data, err := json.Marshal(body)
	if err != nil {
		return err
	}
	return w.write(k, data)
}

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

// need makes the next change wait for what was written so far.
func (w *writer) need() {
	w.mu.Lock()
	w.needed = w.size
	w.mu.Unlock()
}

// flush writes what is pending, so that it outlives this process.
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

// ahead is how many zeros are written beyond the end. To sync what replaces them costs the disk less
// than half of what it costs to sync a file that grows. What a cut leaves of them is read as nothing.
const ahead = 64 << 10

// reserve makes room beyond what is going to be the end.
func (w *writer) reserve(end int64) error {
	if end <= w.reserved {
		return nil
	}
	_, err := w.file.WriteAt(make([]byte, ahead), end)
	w.reserved = end + ahead
	return err
}

// sync returns when all that was written so far is safe. Calls that come while a sync is under way
// share the next one.
func (w *writer) sync() error {
	w.need()
	return w.await()
}

// await is sync for what is needed.
func (w *writer) await() error {
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
			// What the kernel dropped it will not try to write again.
			w.failed = err
		}
		w.done.Broadcast()
	}
	return w.failed
}

// Keep keeps content within the limits.
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

// piece keeps one piece, unless the chapter has it.
func (w *writer) piece(data []byte) (name, lost string, err error) {
	name = nameOf(data)
	if _, ok := w.pieces[name]; ok {
		return name, "", nil
	}
	if w.packer == nil {
		if w.packer, err = zstd.NewWriter(nil, zstd.WithEncoderConcurrency(1), zstd.WithEncoderLevel(zstd.SpeedFastest), zstd.WithWindowSize(maxPiece), zstd.WithLowerEncoderMem(true)); err != nil {
			return "", "", err
		}
	}
	raw, err := hex.DecodeString(name)
	if err != nil {
		return "", "", err
	}
	body := w.packer.EncodeAll(data, raw)
	if full, err := w.makeRoom(int64(len(body)) + headSize + sumSize); full || err != nil {
		return "", "the journal is full (" + diag.Size(w.journal.Limit) + ")", err
	}
	at := w.size
	if err := w.write(kindPiece, body); err != nil {
		return "", "", err
	}
	w.pieces[name] = place{at + headSize + sumSize, int64(len(body)) - sumSize}
	return name, "", nil
}

// makeRoom lets old chapters go until there is room for more.
func (w *writer) makeRoom(more int64) (full bool, err error) {
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

// close gives back what was reserved. The file is whole before that, so it can be left to the kernel
// when that comes to the disk.
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
