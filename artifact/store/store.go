// Package store reads and writes objects where artifacts lie: S3, an S3-compatible server, a
// directory, a read-only web server, or memory in tests.
//
// A store is dumb on purpose. It knows keys and bytes and one thing more, the conditional write,
// on which two publishers who meet rely. Nothing it returns is believed until artifact/trust has
// checked it, so a store may be as hostile as it likes. What every store needs besides (retries,
// timeouts, rate limits) decorates the same interface, and one conformance suite, storetest,
// says what an implementation must do.
package store

import (
	"context"
	"errors"
	"io"
	"iter"
	"time"
)

// Store is where objects lie. Keys are slash-separated, without a leading slash. Implementations
// are safe for concurrent use.
type Store interface {
	// Get opens an object from a byte offset on. The caller closes the reader. Info describes the
	// whole object. An offset at or past the end gives an empty reader.
	Get(ctx context.Context, key string, from int64) (io.ReadCloser, Info, error)
	// Put writes an object whole: readers see the old object or the new one, never a part.
	// The Info returned carries the new ETag.
	Put(ctx context.Context, key string, r io.Reader, size int64, cond Condition) (Info, error)
	// List yields the objects under a key prefix in key order. It stops after the first error.
	List(ctx context.Context, prefix string) iter.Seq2[Info, error]
	// Delete removes an object; one that is absent is no error.
	Delete(ctx context.Context, key string) error
}

// Info describes an object.
type Info struct {
	Key      string
	Size     int64
	ETag     string // opaque; changes with the content
	Modified time.Time
}

// Condition says when a Put may happen. The zero Condition is always met.
type Condition struct {
	IfMatch  string // only over the object with this ETag
	IfAbsent bool   // only where there is no object
}

// What callers branch on. Errors from a store wrap one of these, or are ErrUnreachable when
// nothing better is known.
var (
	ErrNotFound     = errors.New("no such object")
	ErrForbidden    = errors.New("access denied")
	ErrPrecondition = errors.New("the object was changed by someone else")
	ErrReadOnly     = errors.New("the store is read-only")
	ErrUnreachable  = errors.New("the store cannot be reached")
	ErrThrottled    = errors.New("the store asks to slow down")
)
