package store_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"sync"
	"testing"
	"testing/synctest"

	"github.com/corpus-agent/corpus-agent/artifact/store"
	"github.com/corpus-agent/corpus-agent/artifact/store/mem"
	"github.com/corpus-agent/corpus-agent/artifact/store/storetest"
)

func TestPutIsRetriedFromTheStart(t *testing.T) {
	data := bytes.Repeat([]byte("0123456789"), 1000)
	seeker := bytes.NewReader(append([]byte("before "), data...))
	if _, err := seeker.Seek(7, io.SeekStart); err != nil {
		t.Fatal(err)
	}
	for name, source := range map[string]io.Reader{"seeker": seeker, "small": io.MultiReader(bytes.NewReader(data))} {
		synctest.Test(t, func(t *testing.T) {
			inner := mem.New()
			faulty := storetest.NewFaulty(inner, storetest.Fault{Op: store.OpPut, Nth: 1, Lost: true,
				Err: passing(store.ErrUnreachable)})
			if _, err := store.Retry(faulty, store.RetryPolicy{}).Put(t.Context(), "key", source,
				int64(len(data)), store.Condition{}); err != nil {
				t.Fatalf("%s: %v", name, err)
			}
			if got, err := getAll(t.Context(), inner, "key", store.Range{}); err != nil || !bytes.Equal(got, data) {
				t.Errorf("%s: %d bytes, %v", name, len(got), err)
			}
		})
	}
}

func TestPutOfAStreamIsTriedOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		log := &storetest.Log{}
		faulty := storetest.NewFaulty(mem.New(), storetest.Fault{Err: store.ErrThrottled})
		s := store.Retry(store.Observe(faulty, log.Add), store.RetryPolicy{})
		_, err := s.Put(t.Context(), "key", io.LimitReader(zeros{}, 2<<20), 2<<20, store.Condition{})
		if !errors.Is(err, store.ErrThrottled) || len(log.Requests()) != 1 {
			t.Errorf("%v after %d tries", err, len(log.Requests()))
		}
	})
}

type zeros struct{}

func (zeros) Read(p []byte) (int, error) { return len(p), nil }

// TestConditionalPutWithLostAnswerSucceeds checks that a write that was done, but whose response was lost, is reported
// as a success.
func TestConditionalPutWithLostAnswerSucceeds(t *testing.T) {
	for name, cond := range map[string]func(store.Info) store.Condition{
		"if absent": func(store.Info) store.Condition { return store.Condition{IfAbsent: true} },
		"if match":  func(old store.Info) store.Condition { return store.Condition{IfMatch: old.ETag} },
	} {
		synctest.Test(t, func(t *testing.T) {
			inner, key := mem.New(), "fresh"
			old := mustPut(t, inner, "old", []byte("old"))
			if name == "if match" {
				key = "old"
			}
			faulty := storetest.NewFaulty(inner, storetest.Fault{Op: store.OpPut, Nth: 1, Lost: true,
				Err: passing(store.ErrUnreachable)})
			info, err := store.Retry(faulty, store.RetryPolicy{}).Put(t.Context(), key, strings.NewReader("ours"), 4, cond(old))
			if err != nil {
				t.Fatalf("%s: %v", name, err)
			}
			if _, now, err := inner.Get(t.Context(), key, 0); err != nil || now.ETag != info.ETag {
				t.Errorf("%s: Put returned %+v, the store has %+v, %v", name, info, now, err)
			}
		})
	}
}

// TestConditionalPutWithLostAnswerAndConflict checks that the write is reported as refused if another writer has
// written since.
func TestConditionalPutWithLostAnswerAndConflict(t *testing.T) {
	for _, theirs := range []string{"them", "longer than ours"} {
		synctest.Test(t, func(t *testing.T) {
			inner := mem.New()
			mustPut(t, inner, "key", []byte(theirs))
			faulty := storetest.NewFaulty(inner, storetest.Fault{Op: store.OpPut, Nth: 1, Err: passing(store.ErrUnreachable)})
			_, err := store.Retry(faulty, store.RetryPolicy{}).Put(t.Context(), "key", strings.NewReader("ours"), 4,
				store.Condition{IfAbsent: true})
			if !errors.Is(err, store.ErrPrecondition) {
				t.Errorf("%v", err)
			}
		})
	}
}

// TestPlainRefusalIsNotSettled checks that a refusal without an earlier lost response is reported.
func TestPlainRefusalIsNotSettled(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		inner, log := mem.New(), &storetest.Log{}
		mustPut(t, inner, "key", []byte("same"))
		faulty := storetest.NewFaulty(inner, storetest.Fault{Op: store.OpPut, Nth: 1, Err: store.ErrThrottled})
		s := store.Retry(store.Observe(faulty, log.Add), store.RetryPolicy{})
		_, err := s.Put(t.Context(), "key", strings.NewReader("same"), 4, store.Condition{IfAbsent: true})
		if !errors.Is(err, store.ErrPrecondition) || len(log.Requests()) != 2 {
			t.Errorf("%v after\n%v", err, log)
		}
	})
}

// TestCompareAndSwapOverALossyLine has writers append lines with compare-and-swap while every second response is lost.
func TestCompareAndSwapOverALossyLine(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		inner, faults := mem.New(), []storetest.Fault{}
		mustPut(t, inner, "log", nil)
		for n := 2; n < 400; n += 2 {
			faults = append(faults, storetest.Fault{Op: store.OpPut, Nth: n, Lost: n%4 == 0, Err: passing(store.ErrUnreachable)})
		}
		s := store.Retry(storetest.NewFaulty(inner, faults...), store.RetryPolicy{})
		var all sync.WaitGroup
		for i := range 5 {
			all.Go(func() {
				for j := range 5 {
					if err := appendTo(t.Context(), s, fmt.Sprintf("%d.%d\n", i, j)); err != nil {
						t.Error(err)
					}
				}
			})
		}
		all.Wait()
		got, err := getAll(t.Context(), inner, "log", store.Range{})
		if err != nil {
			t.Fatal(err)
		}
		for i := range 5 {
			for j := range 5 {
				if n := strings.Count(string(got), fmt.Sprintf("%d.%d\n", i, j)); n != 1 {
					t.Errorf("the object has line %d.%d %d times", i, j, n)
				}
			}
		}
	})
}

func appendTo(ctx context.Context, s store.Store, line string) error {
	for {
		body, info, err := s.Get(ctx, "log", 0)
		if err != nil {
			return err
		}
		old, err := io.ReadAll(body)
		if err := errors.Join(err, body.Close()); err != nil {
			return err
		}
		if strings.Contains(string(old), line) {
			return nil // a response was lost, and another writer has appended since
		}
		text := string(old) + line
		_, err = s.Put(ctx, "log", strings.NewReader(text), int64(len(text)), store.Condition{IfMatch: info.ETag})
		if !errors.Is(err, store.ErrPrecondition) {
			return err
		}
	}
}
