package wire

import (
	"context"
	"errors"
	"fmt"

	"golang.org/x/sync/errgroup"

	"github.com/corpus-agent/corpus-agent/artifact/store"
)

// copiesAtOnce is the number of pieces that the server copies concurrently.
const copiesAtOnce = 8

// Pieces are objects of a store with consecutive parts of the content of another object.
type Pieces struct {
	Size int64 // of each piece; the last one may be smaller
	Keys []string
}

// copier makes an object of others.
type copier interface {
	// Copy makes a part of an upload of another object of the store. The call is that of the context.
	Copy(ctx context.Context, call *Call, upload string, number int, from string, size int64) (Written, error)
	// Abort removes an upload with its parts.
	Abort(ctx context.Context, upload string) error
}

type piecesKey struct{}

// composer is Pieces; hosts, which publish nothing, do not link the requests that they need.
type composer interface{ compose(p *put) (Written, error) }

// WithPieces returns a context in which a Put makes its object of pieces that the store has, so that their bytes need
// not be sent again. If the store cannot do that, or lacks a piece, Put fails with store.ErrPieces.
func WithPieces(ctx context.Context, p Pieces) context.Context {
	return context.WithValue(ctx, piecesKey{}, composer(p))
}

// compose copies the pieces into the parts of an upload. Only their checksums are computed here, from the source. Some
// servers compute none for a part that they copy, and then refuse it in an upload with checksums.
func (pieces Pieces) compose(p *put) (Written, error) {
	client, ok := p.client.(copier)
	if !ok || int64(len(pieces.Keys)) != (p.size+pieces.Size-1)/pieces.Size || len(pieces.Keys) > mostParts {
		return Written{}, fmt.Errorf("%w: %d pieces of %d bytes are not %d bytes", store.ErrPieces, len(pieces.Keys),
			pieces.Size, p.size)
	}
	if err := p.allowed(); err != nil {
		return Written{}, err
	}
	var parts []Part
	var err error
	for _, checked := range []bool{true, false} {
		var upload string
		p.moved(0)
		if upload, err = p.client.Begin(p.ctx, checked); err != nil {
			break
		}
		if parts, err = p.copies(client, upload, pieces, parts); err == nil {
			said, err := p.complete(upload, parts, 0)
			if p.lost { // sending everything is better than copying again
				err = fmt.Errorf("%w: %s", store.ErrPieces, err.Error())
			}
			return said, err
		}
		p.moved(0)
		err = errors.Join(err, client.Abort(p.ctx, upload))
		if passing(err) || errors.Is(err, errSource) {
			return Written{}, err
		}
	}
	if passing(err) {
		return Written{}, err
	}
	return Written{}, fmt.Errorf("%w: %w", store.ErrPieces, err)
}

// passing reports whether a request failed that may succeed later.
func passing(err error) bool {
	var e *store.Error
	return errors.As(err, &e) && e.Again
}

// errSource marks an error of the source.
var errSource = errors.New("the source cannot be read")

// copies copies the pieces into the parts of an upload. It reads the source for the checksums of parts that were not
// computed yet.
func (p *put) copies(client copier, upload string, pieces Pieces, known []Part) ([]Part, error) {
	parts := make([]Part, len(pieces.Keys))
	group, ctx := errgroup.WithContext(p.ctx)
	group.SetLimit(copiesAtOnce)
	for i, key := range pieces.Keys {
		size := min(pieces.Size, p.size-int64(i)*pieces.Size)
		parts[i].Number = i + 1
		if len(known) > 0 {
			parts[i].sums = known[i].sums
		} else if data, err := p.read(size); err != nil {
			return nil, errors.Join(errSource, err, group.Wait())
		} else {
			parts[i].sums = sumsOf(data)
		}
		p.moved(0)
		group.Go(func() (err error) {
			ctx, call := Begin(ctx, p.call.Op, p.call.Key, p.call.Object) // a call has one request at a time
			parts[i].Written, err = client.Copy(ctx, call, upload, i+1, key, size)
			err = call.discreet(err)
			if same, sure := parts[i].sums.same(parts[i].Written); err == nil && sure && !same {
				err = fmt.Errorf("part %d has other bytes than its piece", i+1)
			}
			return err
		})
	}
	return parts, group.Wait()
}
