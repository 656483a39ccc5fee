package trust

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"hash"
	"io"
	"os"
	"sync"

	"github.com/corpus-agent/corpus-agent/artifact"
	"github.com/corpus-agent/corpus-agent/artifact/store"
)

const (
	// connections is the number of parts that are fetched concurrently. One connection to S3 yields 50 to 90 MB/s; four
	// fill a gigabit line several times over and cost four blocks of memory.
	connections = 4
	// partSize is the size of one request: large enough to make the cost of requests negligible (128 per GiB), and
	// small enough that the parts unpacking waits for arrive soon.
	partSize = 8 << 20
	// badTurns is the maximum number of failures of a part in a row without progress, per store.
	badTurns = 2
)

// Download fetches an artifact by its blocks: several parts concurrently, each block verified before it is written to
// file, with failover between mirrors. The returned Verified can be read at once: its reader waits for the blocks, in
// order, and ends with io.EOF only if the length and digest of the whole are right too. Blocks that the file contains
// already are verified and not fetched again. The Verified owns the file, and the caller must close it.
func (c *Client) Download(ctx context.Context, blocks *Blocks, file *os.File, progress Progress) (*Verified, error) {
	known, err := file.Seek(0, io.SeekEnd)
	if err != nil {
		return nil, fmt.Errorf("fetching %s: %w", blocks.release, err)
	}
	ctx, cancel := context.WithCancel(ctx)
	d := &download{
		release: blocks.release, blocks: blocks, file: file, known: known, progress: progress,
		turns: store.NewTurns(c.store, ObjectKey(blocks.release)),
		have:  make([]bool, blocks.count()), sum: sha256.New(), cancel: cancel,
	}
	d.addSigners = func(err error) error { return c.AddSigners(blocks.release.Project, err) }
	d.changed.L = &d.mu
	for range connections {
		d.workers.Go(func() { d.work(ctx) })
	}
	d.workers.Go(func() {
		<-ctx.Done()
		d.fail(context.Cause(ctx))
	})
	return &Verified{release: blocks.release, file: file, stream: d}, nil
}

// download is a download in progress.
type download struct {
	release    artifact.Release
	blocks     *Blocks
	file       *os.File
	known      int64 // size of the file at the start
	turns      *store.Turns
	progress   Progress
	cancel     context.CancelFunc
	addSigners func(error) error // adds the signer of the artifact to a refusal
	workers    sync.WaitGroup

	mu      sync.Mutex
	changed sync.Cond
	have    []bool // blocks that are in the file
	next    int    // first block that no worker has claimed
	err     error

	// used by the reader only
	at   int64
	sum  hash.Hash
	done bool
}

// take returns the next part for a worker.
func (d *download) take() (from, to int, ok bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	from = d.next
	to = min(from+int(max(partSize/d.blocks.size, 1)), d.blocks.count())
	d.next = to
	return from, to, from < to && d.err == nil
}

func (d *download) work(ctx context.Context) {
	buf := make([]byte, d.blocks.size)
	for {
		from, to, ok := d.take()
		if !ok {
			return
		}
		if err := d.part(ctx, from, to, buf); err != nil {
			d.fail(err)
			return
		}
	}
}

func (d *download) fail(err error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.err == nil {
		d.err = err
	}
	d.changed.Broadcast()
}

// part completes some blocks of the file: it fetches those that are missing, in as few requests as possible.
func (d *download) part(ctx context.Context, from, to int, buf []byte) error {
	for i := from; i < to; {
		if d.local(i, buf) {
			d.arrived(i)
			i++
			continue
		}
		end := i + 1
		for end < to && !d.local(end, buf) {
			end++
		}
		if err := d.fetch(ctx, i, end, buf); err != nil {
			return err
		}
		i = end
	}
	return nil
}

// local reports whether the file had a block before the download.
func (d *download) local(i int, buf []byte) bool {
	from, length := d.blocks.span(i)
	if from+length > d.known {
		return false
	}
	_, err := d.file.ReadAt(buf[:length], from)
	return err == nil && d.blocks.holds(i, buf[:length])
}

func (d *download) arrived(i int) {
	_, length := d.blocks.span(i)
	d.mu.Lock()
	defer d.mu.Unlock()
	d.have[i] = true
	d.changed.Broadcast()
	if d.progress != nil {
		d.progress(int(length))
	}
}

// fetch gets blocks from one store after the other, until it has all.
func (d *download) fetch(ctx context.Context, from, to int, buf []byte) error {
	var refused error
	for bad := 0; from < to; {
		got, at, err := d.request(ctx, from, to, buf)
		from += got
		if err == nil {
			continue
		}
		if ctx.Err() != nil || as[disk](err) {
			return err
		}
		if as[*Refused](err) {
			refused = err
		}
		d.turns.Failed(at, err)
		if bad++; got > 0 {
			bad = 0
		}
		if bad >= badTurns*d.turns.Stores() {
			return worse(refused, fmt.Errorf("fetching %s: %w", d.release, err))
		}
	}
	return nil
}

// worse prefers a refusal to another error: forged content matters more than an unreachable store.
func worse(refused, err error) error {
	if refused != nil {
		return refused
	}
	return err
}

// disk is an error of this host's own file, so trying another store is useless.
type disk struct{ error }

func (d disk) Unwrap() error { return d.error }

// request reads blocks from one response of one store, until the response ends or a block is wrong.
func (d *download) request(ctx context.Context, from, to int, buf []byte) (got, at int, err error) {
	start, _ := d.blocks.span(from)
	last, length := d.blocks.span(to - 1)
	body, info, at, err := d.turns.Open(ctx, start, last+length-start)
	if err != nil {
		return 0, at, err
	}
	defer body.Close()
	if wrongSize(info, d.release) {
		return 0, at, d.refusal(ctx, badLength(d.release, info.Size))
	}
	for i := from; i < to; i++ {
		offset, length := d.blocks.span(i)
		if _, err := io.ReadFull(body, buf[:length]); err != nil {
			return got, at, short(err)
		}
		if !d.blocks.holds(i, buf[:length]) {
			return got, at, d.refusal(ctx, &Refused{Check: CheckDigest, Of: d.release.String(),
				Err: fmt.Errorf("the block at byte %d has another digest than was signed", offset)})
		}
		if _, err := d.file.WriteAt(buf[:length], offset); err != nil {
			return got, at, disk{fmt.Errorf("keeping %s: %w", d.release, err)}
		}
		d.arrived(i)
		got++
	}
	return got, at, nil
}

// refusal returns the error for a store that sent other bytes than were signed. If it sends a web page instead of the
// artifact, the store counts as unreachable.
func (d *download) refusal(ctx context.Context, refused *Refused) error {
	if body, _, _, err := d.turns.Open(ctx, 0, pageStart); err == nil {
		_, err = pageInstead(ObjectKey(d.release), body)
		_ = body.Close() // the rest of it is not read
		if err != nil {
			return err
		}
	}
	return d.addSigners(refused)
}

// short turns an early end of a body into an error of an unreachable store.
func short(err error) error {
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		return fmt.Errorf("%w: %w", store.ErrUnreachable, io.ErrUnexpectedEOF)
	}
	return err
}

// Read returns the artifact's bytes in order, from verified blocks only.
func (d *download) Read(p []byte) (int, error) {
	if d.at == d.release.Length {
		return 0, d.finish()
	}
	i := int(d.at / d.blocks.size)
	if err := d.wait(i); err != nil {
		return 0, err
	}
	from, length := d.blocks.span(i)
	n, err := d.file.ReadAt(p[:min(int64(len(p)), from+length-d.at)], d.at)
	d.sum.Write(p[:n])
	d.at += int64(n)
	if err != nil && n == 0 {
		return 0, fmt.Errorf("reading %s back: %w", d.release, err)
	}
	return n, nil
}

// wait waits until a block is in the file or the download has failed.
func (d *download) wait(i int) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	for !d.have[i] && d.err == nil {
		d.changed.Wait()
	}
	return d.err // even if this block is there, since the rest will not arrive
}

// finish returns io.EOF after the last byte if the digest of the whole is the signed one.
func (d *download) finish() error {
	if !d.done {
		if got := artifact.NewDigest([32]byte(d.sum.Sum(nil))); got != d.release.Digest {
			return d.addSigners(&Refused{Check: CheckDigest, Of: d.release.String(),
				Err: fmt.Errorf("its digest is %s, and %s was signed", got, d.release.Digest)})
		}
		d.done = true
	}
	return io.EOF
}

// close stops the download and waits for its workers.
func (d *download) close() {
	d.cancel()
	d.workers.Wait()
}
