package blobs

import (
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"hash"
	"io"
	"os"
	"sync"
	"time"

	"github.com/corpus-agent/corpus-agent/artifact"
	"github.com/corpus-agent/corpus-agent/artifact/store"
	"github.com/corpus-agent/corpus-agent/artifact/store/wire"
	"github.com/corpus-agent/corpus-agent/artifact/walk"
)

const (
	// pieceSize is the size of the pieces in which a Stage sends content. One request sends a piece.
	pieceSize = 8 << 20
	// mostPieces is below the number of parts that an object can have.
	mostPieces = 8000
	// senders is the number of pieces that are sent concurrently.
	senders = 3
	// tidying limits the time for removing the pieces.
	tidying = 20 * time.Second
)

// Stage uploads the content of an object while it is written to a file, before its digest, and so its key, is known.
// Write is called after each write to the file. Put makes the object, and Close removes what was uploaded and is not
// part of one. Hosts never see that: in a directory it is a temporary file, and in a bucket it is in pieces, objects
// whose names are their own digests, and which no signed metadata names. If the process is killed, a later publisher or
// garbage collection removes them.
//
// If uploading ahead fails, Put uploads everything.
type Stage struct {
	store  store.Store
	folder string
	file   *os.File
	sum    hash.Hash
	size   int64

	staged store.Staged // nil in a bucket

	ctx     context.Context // of the senders
	cancel  context.CancelFunc
	todo    chan piece
	begun   int64 // bytes of the pieces in todo
	sending sync.WaitGroup

	mu   sync.Mutex
	keys map[int]string // of the pieces that were sent
	lost error          // why the object cannot be made of what was uploaded
	done int64          // bytes that were sent
	show func(done int64)
}

// piece is a part of the content.
type piece struct {
	number   int
	at, size int64
}

// NewStage begins to upload an object to a folder of keys. The content is written to file. NewStage returns nil for a
// store that takes only whole objects.
func NewStage(ctx context.Context, s store.Store, folder, file string) (*Stage, error) {
	stager, pieces := store.Ahead(s)
	if stager == nil && !pieces {
		return nil, nil
	}
	f, err := walk.OpenFile(file)
	if err != nil {
		return nil, err
	}
	g := &Stage{store: s, folder: folder, file: f, sum: sha256.New(), keys: map[int]string{},
		todo: make(chan piece, mostPieces)}
	g.ctx, g.cancel = context.WithCancel(ctx)
	if stager != nil {
		if g.staged, err = stager.Stage(ctx, folder); err != nil {
			g.cancel()
			return nil, errors.Join(err, f.Close())
		}
		return g, nil
	}
	for range senders {
		g.sending.Go(g.send)
	}
	return g, nil
}

// Write uploads bytes that were written to the file. It returns no error.
func (g *Stage) Write(p []byte) (int, error) {
	g.sum.Write(p)
	g.size += int64(len(p))
	if g.staged != nil {
		if _, err := g.staged.Write(p); err != nil {
			g.fail(err)
		}
		return len(p), nil
	}
	for g.size-g.begun >= pieceSize {
		g.begin(pieceSize)
	}
	return len(p), nil
}

// begin lets the next bytes be sent.
func (g *Stage) begin(size int64) {
	one := piece{int(g.begun / pieceSize), g.begun, size}
	g.begun += size
	if one.number >= mostPieces {
		g.fail(store.ErrPieces)
		return
	}
	g.todo <- one
}

func (g *Stage) fail(err error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.lost = errors.Join(g.lost, err)
}

func (g *Stage) failed() bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.lost != nil
}

// send sends pieces until there are no more, or one of them fails.
func (g *Stage) send() {
	data := make([]byte, pieceSize)
	for one := range g.todo {
		if g.failed() {
			continue
		}
		if err := g.sendOne(one, data[:one.size]); err != nil {
			g.fail(err)
		}
	}
}

func (g *Stage) sendOne(one piece, data []byte) error {
	if _, err := io.ReadFull(io.NewSectionReader(g.file, one.at, one.size), data); err != nil {
		return err
	}
	digest := artifact.NewDigest(sha256.Sum256(data))
	key := g.folder + "/" + digest.Hex() + ".piece"
	g.mu.Lock()
	g.keys[one.number] = key
	g.mu.Unlock()
	if err := PutOnce(g.ctx, g.store, key, bytes.NewReader(data), one.size, digest); err != nil {
		return err
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	g.done += one.size
	if g.show != nil {
		g.show(g.done)
	}
	return nil
}

// Show calls a function with the number of bytes that were sent, now and whenever it changes.
func (g *Stage) Show(show func(done int64)) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.show = show
	show(g.done)
}

// Put makes the object of what was uploaded, as PutOnce does.
func (g *Stage) Put(ctx context.Context, key string, size int64, digest artifact.Digest) error {
	content := io.NewSectionReader(g.file, 0, size)
	if g.size != size || artifact.NewDigest([32]byte(g.sum.Sum(nil))) != digest {
		return PutOnce(ctx, g.store, key, content, size, digest)
	}
	within := g.ready(ctx)
	if within == nil {
		return PutOnce(ctx, g.store, key, content, size, digest)
	}
	err := PutOnce(within, g.store, key, content, size, digest)
	if !errors.Is(err, store.ErrPieces) {
		return err
	}
	if _, err := content.Seek(0, io.SeekStart); err != nil {
		return err
	}
	return PutOnce(ctx, g.store, key, content, size, digest)
}

// ready waits for the pieces. It returns a context in which the object can be made of what was uploaded, or nil.
func (g *Stage) ready(ctx context.Context) context.Context {
	if g.staged != nil {
		if g.failed() {
			return nil
		}
		return store.WithStaged(ctx, g.staged)
	}
	if g.size <= pieceSize { // one request sends it
		return nil
	}
	g.finish()
	if g.failed() {
		return nil
	}
	pieces := wire.Pieces{Size: pieceSize}
	for i := range len(g.keys) {
		pieces.Keys = append(pieces.Keys, g.keys[i])
	}
	return wire.WithPieces(ctx, pieces)
}

// finish sends the rest, once.
func (g *Stage) finish() {
	if g.todo == nil {
		return
	}
	if rest := g.size - g.begun; rest > 0 && rest <= pieceSize {
		g.begin(rest)
	}
	close(g.todo)
	g.sending.Wait()
	g.todo = nil
}

// Close removes what was uploaded and is not an object.
func (g *Stage) Close() error {
	g.cancel()
	if g.staged != nil {
		return errors.Join(g.staged.Close(), g.file.Close())
	}
	g.begun = g.size
	g.finish()
	ctx, cancel := context.WithTimeout(context.WithoutCancel(g.ctx), tidying)
	defer cancel()
	for _, key := range g.keys {
		// Credentials may not be allowed to remove objects; garbage collection does.
		if err := g.store.Delete(ctx, key); err != nil {
			break
		}
	}
	return g.file.Close()
}
