package chunk

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"

	"golang.org/x/sync/errgroup"

	"github.com/corpus-agent/corpus-agent/artifact/store"
	"github.com/corpus-agent/corpus-agent/artifact/trust"
)

const (
	connections = 4
	badTurns    = 2 // failures in a row without progress, per store, before giving up
)

// Fetch fetches the missing chunks into a cache, several requests at a time. Each chunk is verified before it is
// stored. Chunks that the cache has are not fetched again.
func (p *Plan) Fetch(ctx context.Context, s store.Store, cache *Cache, progress trust.Progress) error {
	turns := make([]*store.Turns, len(p.index.Packs))
	for i, pack := range p.index.Packs {
		turns[i] = store.NewTurns(s, PackKey(p.index.release.Project, pack))
	}
	group, within := errgroup.WithContext(ctx)
	group.SetLimit(connections)
	for _, r := range p.requests {
		group.Go(func() error { return p.fetch(within, r, turns[r.pack], cache, progress) })
	}
	if err := group.Wait(); err != nil {
		return fmt.Errorf("fetching chunks of %s: %w", p.index.release, err)
	}
	return nil
}

// fetch gets the chunks of a request from one store after the other, until it has all.
func (p *Plan) fetch(ctx context.Context, r request, turns *store.Turns, cache *Cache, progress trust.Progress) error {
	var refused error
	for todo, bad := r.chunks, 0; len(todo) > 0; {
		n := missing(todo, cache)
		if n == 0 {
			progress(todo[0].Stored)
			todo = todo[1:]
			continue
		}
		got, at, err := receive(ctx, todo[:n], turns, cache, progress)
		todo = todo[got:]
		if err == nil {
			continue
		}
		if ctx.Err() != nil || errors.Is(err, errKeeping) {
			return err // trying another store is useless
		}
		if errors.Is(err, errOther) {
			refused = &trust.Refused{Check: trust.CheckDigest, Of: fmt.Sprintf("a chunk of %s in %s", p.index.release,
				PackKey(p.index.release.Project, p.index.Packs[r.pack])), Err: err}
		}
		turns.Failed(at, err)
		if bad++; got > 0 {
			bad = 0
		}
		if bad >= badTurns*turns.Stores() {
			if refused != nil {
				return refused
			}
			return err
		}
	}
	return nil
}

// missing returns the number of chunks before the first that has arrived.
func missing(todo []Chunk, cache *Cache) int {
	n := slices.IndexFunc(todo, func(c Chunk) bool { return cache.Has(c.Sum) })
	if n < 0 {
		return len(todo)
	}
	return n
}

// receive reads chunks from one response of one store, until it ends or a chunk is wrong.
func receive(ctx context.Context, todo []Chunk, turns *store.Turns, cache *Cache,
	progress trust.Progress) (got, at int, err error) {
	last := todo[len(todo)-1]
	pos := todo[0].Offset
	body, _, at, err := turns.Open(ctx, pos, last.Offset+int64(last.Stored)-pos)
	if err != nil {
		return 0, at, err
	}
	defer body.Close()
	for _, c := range todo {
		stored := make([]byte, c.Stored)
		if err := skip(body, c.Offset-pos); err != nil {
			return got, at, broken(err)
		}
		if _, err := io.ReadFull(body, stored); err != nil {
			return got, at, broken(err)
		}
		if _, err := cache.open(c, stored); err != nil {
			if page := trust.PageInstead(turns.Key(), stored); page != nil && got == 0 {
				return got, at, page
			}
			return got, at, err
		}
		if err := cache.add(c, stored); err != nil {
			return got, at, err
		}
		pos = c.Offset + int64(c.Stored)
		progress(c.Stored)
		got++
	}
	return got, at, nil
}

// broken turns an early end of a body into an error of an unreachable store.
func broken(err error) error {
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		return fmt.Errorf("%w: %w", store.ErrUnreachable, io.ErrUnexpectedEOF)
	}
	return err
}
