// Package store reads and writes objects where artifacts lie: S3, an S3-compatible server, a
// directory, a read-only web server, or memory in tests.
//
// A store is dumb on purpose. It knows keys and bytes and one thing more, the conditional write,
// on which two publishers who meet rely. Nothing it returns is believed until artifact/trust has
// checked it, so a store may be as hostile as it likes. What every store needs besides (retries,
// timeouts, rate limits) decorates the same interface and is put together by Stack; package stores
// opens a store by its URL; and one conformance suite, storetest, says what an implementation
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

// Store is where objects lie. Keys are as CheckKey wants them, and no key is the directory of
// another (a and a/b), since a directory cannot hold both. Implementations are safe for concurrent
// use.
type Store interface {
	// Get opens an object from a byte offset on. The caller closes the reader. Info describes the
	// whole object. An offset at or past the end gives an empty reader. A reader that cannot give
	// all that was asked for ends with an error, never with a silent end of file.
	Get(ctx context.Context, key string, from int64) (io.ReadCloser, Info, error)
	// Put writes an object whole: readers see the old object or the new one, never a part.
	// A reader that gives another number of bytes than size fails the Put and changes nothing.
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
	Size     int64     // -1 when a web server does not say
	ETag     string    // opaque; changes with the content; may be empty in a List
	Modified time.Time // zero where the store does not say, as S3 after a Put
	Now      time.Time // the store's clock when it answered a Get; zero where it does not say
}

// Condition says when a Put may happen. The zero Condition is always met.
type Condition struct {
	IfMatch  string // only over the object with this ETag
	IfAbsent bool   // only where there is no object
}

// Range is a part of one version of an object. The zero Range is all of whatever is there.
type Range struct {
	From   int64  // offset of the first byte
	Length int64  // bytes to read, fewer where the object ends; 0 means all the rest
	ETag   string // the version meant: ErrPrecondition when the object has another ETag by now
}

// Ranger is a Store that can open a part of an object, so that a download can go on where it was
// cut and several parts can be read at once. Every store and decorator of this project is one;
// call GetRange, which knows what to do about others.
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
	if part.ETag != "" && part.ETag != info.ETag {
		_ = body.Close() // nothing of it is used
		return nil, Info{}, &Error{Op: OpGet, Object: key, Kind: ErrPrecondition}
	}
	if part.Length > 0 {
		body = limited{io.LimitReader(body, part.Length), body}
	}
	return body, info, nil
}

type limited struct {
	io.Reader
	io.Closer
}

const longestKey = 1024 // bytes, as in S3

// CheckKey reports whether a key may be used: segments of printable text between single slashes,
// none of them "." or "..", so that a key means the same object in a bucket, on a disk and in a URL.
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
	return diag.WithHint(fmt.Errorf("%q cannot be the key of an object", key), hint, args...)
}
