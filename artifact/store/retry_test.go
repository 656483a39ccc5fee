package store_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"iter"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/corpus-agent/corpus-agent/artifact/store"
	"github.com/corpus-agent/corpus-agent/artifact/store/mem"
	"github.com/corpus-agent/corpus-agent/artifact/store/storetest"
)

// Every test here runs with a fake clock that skips waits.

func passing(kind error) error {
	return &store.Error{Op: store.OpGet, Object: "key", Kind: kind, Again: true}
}

func mustPut(t *testing.T, s store.Store, key string, data []byte) store.Info {
	t.Helper()
	info, err := s.Put(t.Context(), key, bytes.NewReader(data), int64(len(data)), store.Condition{})
	if err != nil {
		t.Fatal(err)
	}
	return info
}

func getAll(ctx context.Context, s store.Store, key string, part store.Range) ([]byte, error) {
	body, _, err := store.GetRange(ctx, s, key, part)
	if err != nil {
		return nil, err
	}
	defer body.Close()
	return io.ReadAll(body)
}

// silent is a store that cannot be read.
type silent struct{ store.Store }

func (silent) Get(context.Context, string, int64) (io.ReadCloser, store.Info, error) {
	return nil, store.Info{}, passing(store.ErrUnreachable)
}

func (silent) List(context.Context, string) iter.Seq2[store.Info, error] {
	return func(yield func(store.Info, error) bool) { yield(store.Info{}, passing(store.ErrUnreachable)) }
}

// failedOver returns a failover whose first store cannot be read, and which now reads from the mirror.
func failedOver(t *testing.T, s store.Store) store.Store {
	t.Helper()
	f := store.Failover(silent{s}, s)
	mustPut(t, s, "key", []byte("x"))
	_, err := getAll(t.Context(), f, "key", store.Range{})
	if err := errors.Join(err, s.Delete(t.Context(), "key")); err != nil {
		t.Fatal(err)
	}
	return f
}

func TestFailoverListsFromTheStoreThatAnswers(t *testing.T) {
	whole := mem.New()
	mustPut(t, whole, "a", []byte("x"))
	mustPut(t, whole, "b", []byte("x"))
	var keys []string
	for info, err := range store.Failover(silent{mem.New()}, whole).List(t.Context(), "") {
		if err != nil {
			t.Fatal(err)
		}
		keys = append(keys, info.Key)
	}
	if !slices.Equal(keys, []string{"a", "b"}) {
		t.Errorf("the failover lists %q", keys)
	}
	for _, err := range store.Failover(silent{whole}, silent{whole}).List(t.Context(), "") {
		if !errors.Is(err, store.ErrUnreachable) {
			t.Errorf("without a store that answers, the error is %v", err)
		}
		return
	}
	t.Error("without a store that answers, List returned no error")
}

func TestConformanceOfDecorators(t *testing.T) {
	for name, around := range map[string]func(store.Store) store.Store{
		"Retry":   func(s store.Store) store.Store { return store.Retry(s, store.RetryPolicy{}) },
		"Timeout": func(s store.Store) store.Store { return store.Timeout(s, store.TimeoutPolicy{}) },
		"Limit":   func(s store.Store) store.Store { return store.Limit(s, store.NewLimiter(1<<40)) },
		"Observe": func(s store.Store) store.Store { return store.Observe(s, func(store.Request) {}) },
		"Stack": func(s store.Store) store.Store {
			return store.Stack(s, store.Settings{Limiter: store.NewLimiter(1 << 40), Observe: func(store.Request) {}})
		},
		"Failover":                   func(s store.Store) store.Store { return store.Failover(s, mem.New()) },
		"Failover that has moved on": func(s store.Store) store.Store { return failedOver(t, s) },
		"GetRange of a plain store":  func(s store.Store) store.Store { return struct{ store.Store }{s} },
	} {
		t.Run(name, func(t *testing.T) {
			storetest.Run(t, func(*testing.T) store.Store { return around(mem.New()) })
		})
	}
}

func TestRetrySucceeds(t *testing.T) {
	for _, kind := range []error{store.ErrThrottled, store.ErrUnreachable} {
		synctest.Test(t, func(t *testing.T) {
			inner := mem.New()
			mustPut(t, inner, "key", []byte("content"))
			s := store.Retry(storetest.NewFaulty(inner, storetest.Fault{Nth: 1, Last: 3, Err: passing(kind)}),
				store.RetryPolicy{})
			if got, err := getAll(t.Context(), s, "key", store.Range{}); string(got) != "content" || err != nil {
				t.Errorf("%q, %v", got, err)
			}
		})
	}
}

// delayed responds after a delay.
type delayed struct {
	store.Store
	after time.Duration
}

func (s delayed) Get(ctx context.Context, key string, from int64) (io.ReadCloser, store.Info, error) {
	time.Sleep(s.after)
	return s.Store.Get(ctx, key, from)
}

// TestSlowStoresAreReported calls Slow once for a request without an answer, and not for one that is answered in time.
func TestSlowStoresAreReported(t *testing.T) {
	for after, want := range map[time.Duration][]string{time.Second: nil, time.Minute: {"reading key"}} {
		synctest.Test(t, func(t *testing.T) {
			inner := mem.New()
			mustPut(t, inner, "key", []byte("content"))
			var slow []string
			s := store.Retry(delayed{inner, after},
				store.RetryPolicy{Slow: func(request string) { slow = append(slow, request) }})
			_, err := getAll(t.Context(), s, "key", store.Range{})
			if synctest.Wait(); err != nil || !slices.Equal(slow, want) {
				t.Errorf("an answer after %s: %q, %v", after, slow, err)
			}
		})
	}
}

func TestRetryStopsAtItsLimit(t *testing.T) {
	for _, c := range []struct {
		name  string
		err   error
		tries int
	}{
		{"throttled", store.ErrThrottled, 6},
		{"unreachable", passing(store.ErrUnreachable), 6},
		{"absent", store.ErrNotFound, 1},
		{"forbidden", store.ErrForbidden, 1},
		{"no store", store.ErrNoStore, 1},
		{"a certificate", &store.Error{Kind: store.ErrUnreachable}, 1},
		{"read-only", store.ErrReadOnly, 1},
		{"another error", errors.New("what is this"), 1},
	} {
		synctest.Test(t, func(t *testing.T) {
			log := &storetest.Log{}
			faulty := storetest.NewFaulty(mem.New(), storetest.Fault{Err: c.err})
			s := store.Retry(store.Observe(faulty, log.Add), store.RetryPolicy{Attempts: 6})
			_, _, err := s.Get(t.Context(), "key", 0)
			if !errors.Is(err, c.err) || len(log.Requests()) != c.tries {
				t.Errorf("%s: %v after %d tries, want %d", c.name, err, len(log.Requests()), c.tries)
			}
			if c.tries > 1 && !strings.Contains(err.Error(), "gave up after 6 tries") {
				t.Errorf("%s: %v", c.name, err)
			}
			log.Reset()
			if err := s.Delete(t.Context(), "key"); !errors.Is(err, c.err) || len(log.Requests()) != c.tries {
				t.Errorf("%s: Delete: %v after %d tries", c.name, err, len(log.Requests()))
			}
		})
	}
}

// TestRetryWaits checks that waits are random, with a doubled limit each time, and end together within the total.
func TestRetryWaits(t *testing.T) {
	var waits [5]map[time.Duration]bool
	for i := range waits {
		waits[i] = map[time.Duration]bool{}
	}
	for range 50 {
		synctest.Test(t, func(t *testing.T) {
			var times []time.Time
			faulty := storetest.NewFaulty(mem.New(), storetest.Fault{Err: store.ErrThrottled})
			s := store.Retry(store.Observe(faulty, func(store.Request) { times = append(times, time.Now()) }),
				store.RetryPolicy{})
			_ = s.Delete(t.Context(), "key") // another test checks the error
			for i := range 5 {
				wait := times[i+1].Sub(times[i])
				if ceiling := 250 * time.Millisecond << i; wait > ceiling {
					t.Errorf("wait %d is %v, more than %v", i, wait, ceiling)
				}
				waits[i][wait] = true
			}
		})
	}
	for i, w := range waits {
		if len(w) < 40 {
			t.Errorf("only %d different waits of 50 before try %d: hosts would retry together", len(w), i+2)
		}
	}
}

// TestRetryLastsAMinute checks that an outage of most of a minute, such as a restart, is survived, and that a longer
// one ends with an error after a minute, for all random waits.
func TestRetryLastsAMinute(t *testing.T) {
	for range 20 {
		synctest.Test(t, func(t *testing.T) {
			start, tries, reported := time.Now(), 0, 0
			faulty := storetest.NewFaulty(mem.New(), storetest.Fault{Err: passing(store.ErrUnreachable)})
			s := store.Retry(store.Observe(faulty, func(store.Request) { tries++ }),
				store.RetryPolicy{Waiting: func(error, time.Duration) { reported++ }})
			_, err := s.Put(t.Context(), "key", strings.NewReader("x"), 1, store.Condition{})
			if took := time.Since(start); !errors.Is(err, store.ErrUnreachable) || took != time.Minute {
				t.Errorf("the retries ended after %v with %v, want a minute", took, err)
			}
			if tries < 10 || reported != tries-1 {
				t.Errorf("%d tries, %d waits were reported", tries, reported)
			}
		})
	}
}

func TestRetryAfter(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		inner := mem.New()
		mustPut(t, inner, "key", []byte("x"))
		throttled := &store.Error{Kind: store.ErrThrottled, Again: true, After: 20 * time.Second}
		s := store.Retry(storetest.NewFaulty(inner, storetest.Fault{Nth: 1, Err: throttled}), store.RetryPolicy{})
		start := time.Now()
		if _, err := getAll(t.Context(), s, "key", store.Range{}); err != nil {
			t.Fatal(err)
		}
		if took := time.Since(start); took < 20*time.Second || took > 21*time.Second {
			t.Errorf("retried after %v, want the requested 20 s", took)
		}
		throttled.After = time.Hour
		s = store.Retry(storetest.NewFaulty(inner, storetest.Fault{Err: throttled}), store.RetryPolicy{})
		start = time.Now()
		if _, err := getAll(t.Context(), s, "key", store.Range{}); !errors.Is(err, store.ErrThrottled) ||
			time.Since(start) > time.Minute {
			t.Errorf("with a requested wait of an hour: %v after %v", err, time.Since(start))
		}
	})
}

func TestRetryIsCancelled(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := store.Retry(storetest.NewFaulty(mem.New(), storetest.Fault{Err: store.ErrThrottled}),
			store.RetryPolicy{First: time.Hour, Longest: time.Hour, Total: 24 * time.Hour})
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		start := time.Now()
		_, _, err := s.Get(ctx, "key", 0)
		if !errors.Is(err, context.DeadlineExceeded) || !errors.Is(err, store.ErrThrottled) ||
			time.Since(start) > time.Second {
			t.Errorf("%v after %v", err, time.Since(start))
		}
	})
}

// TestBodyResumes checks that a body that breaks off continues at the same place, at any offset and any number of
// times.
func TestBodyResumes(t *testing.T) {
	data := make([]byte, 100_000)
	for i := range data {
		data[i] = byte(rand.Uint32())
	}
	for _, c := range []struct {
		cut  int64
		err  error
		part store.Range
	}{
		{1, io.ErrUnexpectedEOF, store.Range{From: 99_990}},
		{1000, io.ErrUnexpectedEOF, store.Range{}},
		{1000, nil, store.Range{}}, // a server that just stops
		{33_333, passing(store.ErrUnreachable), store.Range{From: 5}},
		{33_333, errors.New("connection reset"), store.Range{From: 5, Length: 70_000}},
		{99_999, nil, store.Range{}},
		{50_000, nil, store.Range{From: 10, Length: 50_000}},
	} {
		synctest.Test(t, func(t *testing.T) {
			inner, log := mem.New(), &storetest.Log{}
			mustPut(t, inner, "key", data)
			s := store.Retry(store.Observe(storetest.NewFaulty(inner, storetest.Fault{Cut: c.cut, Err: c.err}), log.Add),
				store.RetryPolicy{})
			got, err := getAll(t.Context(), s, "key", c.part)
			want := data[c.part.From:]
			if c.part.Length > 0 {
				want = want[:c.part.Length]
			}
			if err != nil || !bytes.Equal(got, want) {
				t.Errorf("%+v: %d of %d bytes, %v", c, len(got), len(want), err)
			}
			if log.Bytes() != int64(len(want)) {
				t.Errorf("%+v: %d bytes moved for %d", c, log.Bytes(), len(want))
			}
		})
	}
}

func TestBodyStopsAtRetryLimit(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		inner := mem.New()
		mustPut(t, inner, "key", make([]byte, 1000))
		faulty := storetest.NewFaulty(inner,
			storetest.Fault{Nth: 1, Cut: 600, Err: io.ErrUnexpectedEOF}, storetest.Fault{Err: store.ErrThrottled})
		got, err := getAll(t.Context(), store.Retry(faulty, store.RetryPolicy{}), "key", store.Range{})
		if len(got) != 600 || !errors.Is(err, store.ErrThrottled) {
			t.Errorf("%d bytes, %v", len(got), err)
		}
	})
}

// TestBodyOfAnotherVersion checks that two versions are never mixed.
func TestBodyOfAnotherVersion(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		inner := mem.New()
		mustPut(t, inner, "key", bytes.Repeat([]byte("a"), 1000))
		s := store.Retry(storetest.NewFaulty(inner, storetest.Fault{Nth: 1, Cut: 600, Err: io.ErrUnexpectedEOF}),
			store.RetryPolicy{})
		body, _, err := s.Get(t.Context(), "key", 0)
		if err != nil {
			t.Fatal(err)
		}
		defer body.Close()
		if _, err := io.ReadFull(body, make([]byte, 600)); err != nil {
			t.Fatal(err)
		}
		mustPut(t, inner, "key", bytes.Repeat([]byte("b"), 1000))
		if rest, err := io.ReadAll(body); len(rest) != 0 || !errors.Is(err, store.ErrPrecondition) {
			t.Errorf("%d bytes more, %v", len(rest), err)
		}
	})
}

func TestListResumes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		inner := mem.New()
		for i := range 10 {
			mustPut(t, inner, fmt.Sprintf("key%d", i), nil)
		}
		faulty := storetest.NewFaulty(inner, storetest.Fault{Op: store.OpList, Nth: 1, Cut: 4, Err: store.ErrThrottled},
			storetest.Fault{Op: store.OpList, Nth: 2, Err: store.ErrThrottled})
		keys := ""
		for info, err := range store.Retry(faulty, store.RetryPolicy{}).List(t.Context(), "") {
			if err != nil {
				t.Fatal(err)
			}
			keys += strings.TrimPrefix(info.Key, "key")
		}
		if keys != "0123456789" {
			t.Errorf("the keys are %s", keys)
		}
	})
}
