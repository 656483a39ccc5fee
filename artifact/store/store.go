// Package store reads and writes the objects that artifacts consist of: in S3, on an S3-compatible server, in a
// directory, from a read-only web server, or in memory for tests.
//
// A store is simple on purpose: it has keys, bytes and conditional writes, on which concurrent publishers rely. Nothing
// that it returns is trusted until artifact/trust has verified it, so a store may be hostile. Features that every store
// needs (retries, timeouts, rate limits) are decorators of the same interface, combined by Stack. Package stores opens
// a store by its URL, and the conformance suite storetest defines what an implementation
// must do.
package store

import (
	"context"
	"fmt"
	"io"
	"iter"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/corpus-agent/corpus-agent/state/diag"
)

// Store reads and writes objects. Keys must pass CheckKey, and no key may be the directory of another (a and a/b),
// since a directory cannot hold both. Implementations are safe for concurrent
// use.
type Store interface {
	// Get opens an object from a byte offset on. The caller must close the reader. Info describes the
	// whole object. An offset at or past the end returns an empty reader. A reader that cannot return
	// all requested bytes ends with an error, never with a silent end of file.
	Get(ctx context.Context, key string, from int64) (io.ReadCloser, Info, error)
	// Put writes an object atomically: readers see the old object or the new one, never a part.
	// If the reader returns another number of bytes than size, Put fails and changes nothing.
	// The returned Info has the new ETag.
	Put(ctx context.Context, key string, r io.Reader, size int64, cond Condition) (Info, error)
	// List yields the objects under a key prefix in key order. It stops after the first error.
	List(ctx context.Context, prefix string) iter.Seq2[Info, error]
	// Delete removes an object; it is not an error if it does not exist.
	Delete(ctx context.Context, key string) error
}

// Info describes an object.
type Info struct {
	Key      string
	Size     int64     // -1 if a web server sends none
	ETag     string    // opaque; changes with the content; may be empty in a List
	Modified time.Time // zero if the store sends none, like S3 after a Put
	Now      time.Time // the store's clock when it answered a Get; zero if it sends none
}

// Condition restricts when a Put may happen. The zero Condition is always met.
type Condition struct {
	IfMatch  string // only replace the object with this ETag
	IfAbsent bool   // only write if there is no object
}

// Range is a part of one version of an object. The zero Range is all of the present version.
type Range struct {
	From   int64  // offset of the first byte
	Length int64  // bytes to read, fewer if the object ends; 0 means the rest
	ETag   string // the version; ErrPrecondition if the object has another ETag
	Unless string // a version that the caller has already; ErrUnchanged if the object still has this ETag
}

// Outdated returns ErrPrecondition if an object with this ETag is not the version that a Range asks for, ErrUnchanged
// if it is the one that the caller has already, and nil otherwise.
func (r Range) Outdated(etag string) error {
	switch {
	case r.ETag != "" && r.ETag != etag:
		return ErrPrecondition
	case r.Unless != "" && r.Unless == etag:
		return ErrUnchanged
	}
	return nil
}

// Ranger is a Store that can open a part of an object, so that an interrupted download can be continued and several
// parts can be read concurrently. Every store and decorator of this project is one; call GetRange, which
// also works with others.
type Ranger interface {
	Store
	GetRange(ctx context.Context, key string, part Range) (io.ReadCloser, Info, error)
}

// GetRange opens a part of an object on any store.
func GetRange(ctx context.Context, s Store, key string, part Range) (io.ReadCloser, Info, error) {
	if r, ok := s.(Ranger); ok {
		return r.GetRange(ctx, key, part)
	}
	body, info, err := s.Get(ctx, key, part.From)
	if err != nil {
		return nil, Info{}, err
	}
	if err := part.Outdated(info.ETag); err != nil {
		_ = body.Close() // the body is not used
		return nil, Info{}, &Error{Op: OpGet, Object: key, Kind: err, Now: info.Now}
	}
	if part.Length > 0 {
		body = limited{io.LimitReader(body, part.Length), body}
	}
	return body, info, nil
}

// ReadUpTo reads the first bytes of an object, at most so many.
func ReadUpTo(ctx context.Context, s Store, key string, most int64) ([]byte, Info, error) {
	body, info, err := s.Get(ctx, key, 0)
	if err != nil {
		return nil, info, err
	}
	defer body.Close()
	data, err := io.ReadAll(io.LimitReader(body, most))
	return data, info, err
}

type limited struct {
	io.Reader
	io.Closer
}

const longestKey = 1024 // bytes, as in S3

// CheckKey returns an error unless a key consists of segments of printable text between single slashes, none of them
// "." or "..", so that it names the same object in a bucket, on a disk and in a URL.
func CheckKey(key string) error {
	if key == "" || len(key) > longestKey {
		return badKey(key, "a key has between 1 and %d bytes", longestKey)
	}
	if !utf8.ValidString(key) || strings.ContainsFunc(key, unicode.IsControl) {
		return badKey(key, "a key is UTF-8 text without control characters")
	}
	for segment := range strings.SplitSeq(key, "/") {
		if segment == "" || segment == "." || segment == ".." {
			return badKey(key, "write a key without a leading, trailing or double slash, and without . and ..")
		}
	}
	return nil
}

func badKey(key, hint string, args ...any) error {
	return diag.StoreURL.Hint(fmt.Errorf("%q cannot be the key of an object", key), hint, args...)
}
