// Package storetest has the conformance suite of stores, and faulty stores for tests.
//
// Run is the suite: every implementation of store.Store, and every decorator around one, must pass it. Faulty is a
// store that fails on request, and Log counts the requests to a store.
package storetest

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"testing"

	"github.com/corpus-agent/corpus-agent/artifact/store"
)

// suite is one run of the tests against one kind of store.
type suite struct {
	open func(t *testing.T) store.Store
}

// Run runs the suite. It calls open for every test, which must return an empty store.
func Run(t *testing.T, open func(t *testing.T) store.Store) {
	s := suite{open}
	t.Run("Get", s.testGet)
	t.Run("Range", s.testRange)
	t.Run("Absent", s.testAbsent)
	t.Run("Empty", s.testEmpty)
	t.Run("Large", s.testLarge)
	t.Run("Overwrite", s.testOverwrite)
	t.Run("Version", s.testVersion)
	t.Run("Unchanged", s.testUnchanged)
	t.Run("WrongSize", s.testWrongSize)
	t.Run("FailingSource", s.testFailingSource)
	t.Run("BadKeys", s.testBadKeys)
	t.Run("OddKeys", s.testOddKeys)
	t.Run("IfAbsent", s.testIfAbsent)
	t.Run("IfMatch", s.testIfMatch)
	t.Run("IfMatchAbsent", s.testIfMatchAbsent)
	t.Run("RaceToCreate", s.testRaceToCreate)
	t.Run("CompareAndSwap", s.testCompareAndSwap)
	t.Run("WholeOrNothing", s.testWholeOrNothing)
	t.Run("List", s.testList)
	t.Run("ListPrefix", s.testListPrefix)
	t.Run("Folders", s.testFolders)
	t.Run("ListMany", s.testListMany)
	t.Run("ListStops", s.testListStops)
	t.Run("Delete", s.testDelete)
	t.Run("CloseEarly", s.testCloseEarly)
	t.Run("Cancelled", s.testCancelled)
	t.Run("CancelBody", s.testCancelBody)
	t.Run("Concurrent", s.testConcurrent)
	t.Run("Pieces", s.testPieces)
	t.Run("Staged", s.testStaged)
}

// random returns bytes that do not compress, the same for the same seed. They repeat with a period that no block size
// divides, since generating them is slow with the race detector.
func random(seed byte, size int) []byte {
	period := make([]byte, 99_991)
	_, _ = rand.NewChaCha8([32]byte{seed}).Read(period) // never fails
	return bytes.Repeat(period, size/len(period)+1)[:size]
}

func put(t *testing.T, s store.Store, key string, data []byte) store.Info {
	t.Helper()
	info, err := s.Put(t.Context(), key, bytes.NewReader(data), int64(len(data)), store.Condition{})
	if err != nil {
		t.Fatalf("Put %q: %v", key, err)
	}
	return info
}

func putIf(ctx context.Context, s store.Store, key, text string, cond store.Condition) (store.Info, error) {
	return s.Put(ctx, key, bytes.NewReader([]byte(text)), int64(len(text)), cond)
}

func get(t *testing.T, s store.Store, key string, part store.Range) ([]byte, store.Info) {
	t.Helper()
	data, info, err := read(t.Context(), s, key, part)
	if err != nil {
		t.Fatalf("Get %q %+v: %v", key, part, err)
	}
	return data, info
}

func read(ctx context.Context, s store.Store, key string, part store.Range) ([]byte, store.Info, error) {
	body, info, err := store.GetRange(ctx, s, key, part)
	if err != nil {
		return nil, store.Info{}, err
	}
	data, err := io.ReadAll(body)
	return data, info, errors.Join(err, body.Close())
}

func wantBytes(t *testing.T, what string, got, want []byte) {
	t.Helper()
	if !bytes.Equal(got, want) {
		t.Fatalf("%s: got %s, want %s", what, brief(got), brief(want))
	}
}

func brief(b []byte) string {
	if len(b) > 40 {
		return fmt.Sprintf("%d bytes", len(b))
	}
	return fmt.Sprintf("%q", b)
}

func wantErr(t *testing.T, what string, err, want error) {
	t.Helper()
	if !errors.Is(err, want) {
		t.Fatalf("%s: got error %v, want %v", what, err, want)
	}
}

// BenchmarkGet measures reading small and large objects of a store.
func BenchmarkGet(b *testing.B, s store.Store) {
	for _, size := range []int{1 << 10, 64 << 20} {
		b.Run(fmt.Sprintf("%dKiB", size>>10), func(b *testing.B) {
			if _, err := s.Put(b.Context(), "key", bytes.NewReader(make([]byte, size)), int64(size),
				store.Condition{}); err != nil {
				b.Fatal(err)
			}
			b.SetBytes(int64(size))
			for b.Loop() {
				body, _, err := s.Get(b.Context(), "key", 0)
				if err != nil {
					b.Fatal(err)
				}
				_, err = io.Copy(io.Discard, body)
				if err := errors.Join(err, body.Close()); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
