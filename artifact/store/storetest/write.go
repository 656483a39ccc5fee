package storetest

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/iotest"

	"github.com/corpus-agent/corpus-agent/artifact/store"
)

func (s suite) testOverwrite(t *testing.T) {
	st := s.open(t)
	seen := map[string]string{}
	for _, text := range []string{"one", "two", "three", "a longer one", "x"} {
		put(t, st, "key", []byte(text))
		got, info := get(t, st, "key", store.Range{})
		wantBytes(t, "content", got, []byte(text))
		if other, ok := seen[info.ETag]; ok {
			t.Errorf("%q and %q have the same ETag %s", other, text, info.ETag)
		}
		seen[info.ETag] = text
	}
	large := random(4, 2<<20)
	first := put(t, st, "large", large)
	large[100]++
	if second := put(t, st, "large", large); second.ETag == first.ETag {
		t.Error("a large object's ETag does not change with a byte of it")
	}
}

func (s suite) testWrongSize(t *testing.T) {
	st := s.open(t)
	put(t, st, "key", []byte("old"))
	for _, c := range []struct{ have, say int }{{0, 5}, {4, 5}, {5, 4}, {5, 0}, {100 << 10, 200 << 10},
		{200 << 10, 100 << 10}} {
		source := io.MultiReader(bytes.NewReader(random(5, c.have))) // one that cannot be rewound
		if _, err := st.Put(t.Context(), "key", source, int64(c.say), store.Condition{}); err == nil {
			t.Errorf("a source of %d bytes was accepted with a size of %d", c.have, c.say)
		}
		got, _ := get(t, st, "key", store.Range{})
		wantBytes(t, "afterwards", got, []byte("old"))
	}
	wantKeys(t, st, "", "key")
}

func (s suite) testFailingSource(t *testing.T) {
	st := s.open(t)
	broken := errors.New("the disk is broken")
	source := io.MultiReader(strings.NewReader("half of it"), iotest.ErrReader(broken))
	_, err := st.Put(t.Context(), "key", source, 100, store.Condition{})
	wantErr(t, "Put", err, broken)
	wantKeys(t, st, "")
}

func (s suite) testIfAbsent(t *testing.T) {
	st := s.open(t)
	if _, err := putIf(t.Context(), st, "key", "first", store.Condition{IfAbsent: true}); err != nil {
		t.Fatal(err)
	}
	_, err := putIf(t.Context(), st, "key", "second", store.Condition{IfAbsent: true})
	wantErr(t, "over an object", err, store.ErrPrecondition)
	got, _ := get(t, st, "key", store.Range{})
	wantBytes(t, "content", got, []byte("first"))
	if err := st.Delete(t.Context(), "key"); err != nil {
		t.Fatal(err)
	}
	if _, err := putIf(t.Context(), st, "key", "third", store.Condition{IfAbsent: true}); err != nil {
		t.Errorf("after Delete: %v", err)
	}
}

func (s suite) testIfMatch(t *testing.T) {
	st := s.open(t)
	one := put(t, st, "key", []byte("one"))
	two, err := putIf(t.Context(), st, "key", "two", store.Condition{IfMatch: one.ETag})
	if err != nil {
		t.Fatal(err)
	}
	_, err = putIf(t.Context(), st, "key", "three", store.Condition{IfMatch: one.ETag})
	wantErr(t, "with the old ETag", err, store.ErrPrecondition)
	got, info := get(t, st, "key", store.Range{})
	wantBytes(t, "content", got, []byte("two"))
	if info.ETag != two.ETag {
		t.Errorf("ETag is %q, but Put returned %q", info.ETag, two.ETag)
	}
}

func (s suite) testIfMatchAbsent(t *testing.T) {
	st := s.open(t)
	old := put(t, st, "key", []byte("one"))
	if err := st.Delete(t.Context(), "key"); err != nil {
		t.Fatal(err)
	}
	_, err := putIf(t.Context(), st, "key", "two", store.Condition{IfMatch: old.ETag})
	wantErr(t, "over nothing", err, store.ErrPrecondition)
	wantKeys(t, st, "")
}

// busy reports whether an error means that a writer should try again.
func busy(err error) bool {
	return errors.Is(err, store.ErrPrecondition) || errors.Is(err, store.ErrThrottled)
}

func (s suite) testRaceToCreate(t *testing.T) {
	st := s.open(t)
	for round := range 3 {
		key := fmt.Sprintf("key%d", round)
		var won atomic.Int32
		var winner atomic.Value
		var all sync.WaitGroup
		for i := range 10 {
			all.Go(func() {
				text := fmt.Sprintf("writer %d", i)
				_, err := putIf(t.Context(), st, key, text, store.Condition{IfAbsent: true})
				switch {
				case err == nil:
					won.Add(1)
					winner.Store(text)
				case !busy(err):
					t.Errorf("Put: %v", err)
				}
			})
		}
		all.Wait()
		if won.Load() != 1 {
			t.Fatalf("%d of 10 writers created the same object", won.Load())
		}
		got, _ := get(t, st, key, store.Range{})
		wantBytes(t, "the winner's content", got, []byte(winner.Load().(string)))
	}
}

// testCompareAndSwap has writers append to one object concurrently: at the end it has each line once.
func (s suite) testCompareAndSwap(t *testing.T) {
	st := s.open(t)
	put(t, st, "log", nil)
	const writers, lines = 6, 5
	var all sync.WaitGroup
	for i := range writers {
		all.Go(func() {
			for j := range lines {
				if err := appendLine(t.Context(), st, "log", fmt.Sprintf("writer %d line %d\n", i, j)); err != nil {
					t.Error(err)
				}
			}
		})
	}
	all.Wait()
	got, _ := get(t, st, "log", store.Range{})
	for i := range writers {
		for j := range lines {
			if line := fmt.Sprintf("writer %d line %d\n", i, j); strings.Count(string(got), line) != 1 {
				t.Errorf("the object has %q %d times", line, strings.Count(string(got), line))
			}
		}
	}
}

func appendLine(ctx context.Context, st store.Store, key, line string) error {
	for {
		data, info, err := read(ctx, st, key, store.Range{})
		if errors.Is(err, store.ErrThrottled) {
			continue
		}
		if err != nil {
			return err
		}
		if _, err = putIf(ctx, st, key, string(data)+line, store.Condition{IfMatch: info.ETag}); !busy(err) {
			return err
		}
	}
}

// testWholeOrNothing reads an object while it is overwritten: the content must be one of the two versions.
func (s suite) testWholeOrNothing(t *testing.T) {
	st := s.open(t)
	versions := [][]byte{bytes.Repeat([]byte("a"), 300<<10), bytes.Repeat([]byte("b"), 200<<10)}
	put(t, st, "key", versions[0])
	ctx, done := context.WithCancel(t.Context())
	defer done()
	var all sync.WaitGroup
	all.Go(func() {
		defer done()
		for i := range 20 {
			put(t, st, "key", versions[i%2])
		}
	})
	for ctx.Err() == nil {
		got, _, err := read(t.Context(), st, "key", store.Range{})
		if err != nil {
			t.Errorf("Get: %v", err)
			break
		}
		if !bytes.Equal(got, versions[0]) && !bytes.Equal(got, versions[1]) {
			t.Errorf("a mixture of %d bytes, %d of them a", len(got), bytes.Count(got, []byte("a")))
			break
		}
	}
	all.Wait()
}

func (s suite) testDelete(t *testing.T) {
	st := s.open(t)
	put(t, st, "a/key", []byte("x"))
	put(t, st, "a/other", []byte("y"))
	for range 2 { // in the second round the object does not exist
		if err := st.Delete(t.Context(), "a/key"); err != nil {
			t.Fatal(err)
		}
	}
	for _, key := range []string{"never/was", "a", "a/key/deeper"} {
		if err := st.Delete(t.Context(), key); err != nil {
			t.Errorf("Delete %q: %v", key, err)
		}
	}
	_, _, err := st.Get(t.Context(), "a/key", 0)
	wantErr(t, "Get after Delete", err, store.ErrNotFound)
	wantKeys(t, st, "", "a/other")
}
