package store_test

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"io"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/corpus-agent/corpus-agent/artifact/store"
	"github.com/corpus-agent/corpus-agent/artifact/store/mem"
	"github.com/corpus-agent/corpus-agent/artifact/store/storetest"
	"github.com/corpus-agent/corpus-agent/state/diag"
)

var patience = store.TimeoutPolicy{Answer: 5 * time.Second, Idle: 10 * time.Second}

func wantStopped(t *testing.T, what string, err error, start time.Time, after time.Duration) {
	t.Helper()
	if !errors.Is(err, store.ErrUnreachable) || errors.Is(err, context.Canceled) {
		t.Errorf("%s: %v", what, err)
	}
	if took := time.Since(start); took != after {
		t.Errorf("%s: ended after %v, want %v", what, took, after)
	}
}

// requestsOf returns a request of each kind. get makes the one that reads.
func requestsOf(get func(context.Context, store.Store) error) map[string]func(context.Context, store.Store) error {
	return map[string]func(context.Context, store.Store) error{
		"Get":    get,
		"Delete": func(ctx context.Context, s store.Store) error { return s.Delete(ctx, "key") },
		"Put": func(ctx context.Context, s store.Store) error {
			_, err := s.Put(ctx, "key", strings.NewReader("x"), 1, store.Condition{})
			return err
		},
		"List": func(ctx context.Context, s store.Store) error {
			for _, err := range s.List(ctx, "") {
				return err
			}
			return nil
		},
	}
}

func TestNoAnswer(t *testing.T) {
	for what, do := range requestsOf(func(ctx context.Context, s store.Store) error {
		_, _, err := s.Get(ctx, "key", 0)
		return err
	}) {
		synctest.Test(t, func(t *testing.T) {
			start := time.Now()
			err := do(t.Context(), store.Timeout(storetest.NewFaulty(mem.New(), storetest.Fault{Hang: true}), patience))
			wantStopped(t, what, err, start, patience.Answer)
		})
	}
}

func TestStalledBody(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		inner := mem.New()
		mustPut(t, inner, "key", make([]byte, 1000))
		s := store.Timeout(storetest.NewFaulty(inner, storetest.Fault{Stall: 600}), patience)
		start := time.Now()
		got, err := getAll(t.Context(), s, "key", store.Range{})
		wantStopped(t, "stalled", err, start, patience.Idle)
		if len(got) != 600 {
			t.Errorf("%d bytes", len(got))
		}
	})
}

// TestSlowBodyIsNotAStall reads bodies of a KiB per second, and of any rate if that is asked for.
func TestSlowBodyIsNotAStall(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		inner := mem.New()
		mustPut(t, inner, "key", make([]byte, 100))
		mustPut(t, inner, "long", make([]byte, 300<<10))
		any := patience
		any.AnyRate = true
		dripping := store.Timeout(storetest.NewFaulty(inner, storetest.Fault{Drip: 9 * time.Second}), any)
		for key, s := range map[string]store.Store{"key": dripping, "long": store.Timeout(crawling{inner}, patience)} {
			body, _, err := s.Get(t.Context(), key, 0)
			if err != nil {
				t.Fatal(err)
			}
			if _, err := io.Copy(io.Discard, body); err != nil {
				t.Errorf("%s: %v", key, err)
			}
			_ = body.Close() // it was read to its end
		}
	})
}

// TestDrippingStoreIsGivenUpInTime has a store that sends a byte now and then: a request for it ends, with a hint, when
// its retries bring no more.
func TestDrippingStoreIsGivenUpInTime(t *testing.T) {
	for _, total := range []time.Duration{0, 2 * time.Second, 40 * time.Second, 3 * time.Minute} {
		for _, drip := range []time.Duration{20 * time.Millisecond, time.Second, 29 * time.Second} {
			synctest.Test(t, func(t *testing.T) {
				inner, limit := mem.New(), cmp.Or(total, time.Minute)
				mustPut(t, inner, "key", make([]byte, 64<<10))
				s := store.Stack(storetest.NewFaulty(inner, storetest.Fault{Drip: drip}),
					store.Settings{Retry: store.RetryPolicy{Total: total}})
				start := time.Now()
				_, err := getAll(t.Context(), s, "key", store.Range{})
				took := time.Since(start)
				if !errors.Is(err, store.ErrUnreachable) || diag.HintOf(err) == "" ||
					took > limit+min(limit, time.Minute)+2*time.Second {
					t.Errorf("a byte each %v, with --retry %v: after %v: %v (hint %q)", drip, total, took, err, diag.HintOf(err))
				}
			})
		}
	}
}

// TestDripIsResumed has a store whose first body drips after some KiB: the rest is fetched with a second request.
func TestDripIsResumed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		inner, log := mem.New(), &storetest.Log{}
		data := bytes.Repeat([]byte("0123456789"), 10_000)
		mustPut(t, inner, "key", data)
		faulty := storetest.NewFaulty(inner, storetest.Fault{Nth: 1, Drip: 10 * time.Millisecond})
		start := time.Now()
		got, err := getAll(t.Context(), store.Stack(faulty, store.Settings{Observe: log.Add}), "key", store.Range{})
		if err != nil || !bytes.Equal(got, data) || log.Bytes() != int64(len(data)) || len(log.Requests()) != 2 {
			t.Errorf("%d bytes of %d, %v, by requests of %d bytes:\n%v", len(got), len(data), err, log.Bytes(), log)
		}
		if took := time.Since(start); took < time.Minute || took > 62*time.Second {
			t.Errorf("took %v", took)
		}
	})
}

// TestSlowReaderIsNotAStall checks that time that the reader needs, for example for unpacking, does not count.
func TestSlowReaderIsNotAStall(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		inner := mem.New()
		mustPut(t, inner, "key", make([]byte, 1000))
		body, _, err := store.Timeout(inner, patience).Get(t.Context(), "key", 0)
		if err != nil {
			t.Fatal(err)
		}
		defer body.Close()
		for range 10 {
			time.Sleep(time.Minute)
			if _, err := io.ReadFull(body, make([]byte, 100)); err != nil {
				t.Fatal(err)
			}
		}
	})
}

// slowSource returns one byte after a delay.
type slowSource struct {
	r    io.Reader
	wait time.Duration
}

func (s slowSource) Read(p []byte) (int, error) {
	time.Sleep(s.wait)
	return s.r.Read(p[:1])
}

func TestSlowSourceIsNotAStall(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := store.Timeout(mem.New(), patience)
		if _, err := s.Put(t.Context(), "key", slowSource{strings.NewReader("0123456789"), time.Minute},
			10, store.Condition{}); err != nil {
			t.Error(err)
		}
	})
}

func TestStackResumesAfterAStall(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		inner, log := mem.New(), &storetest.Log{}
		data := bytes.Repeat([]byte("0123456789"), 1000)
		mustPut(t, inner, "key", data)
		faulty := storetest.NewFaulty(inner, storetest.Fault{Nth: 1, Hang: true}, storetest.Fault{Nth: 2, Stall: 1234},
			storetest.Fault{Nth: 3, Cut: 100})
		s := store.Stack(faulty, store.Settings{Timeout: patience, Observe: log.Add})
		got, err := getAll(t.Context(), s, "key", store.Range{})
		if err != nil || !bytes.Equal(got, data) {
			t.Errorf("%d bytes, %v", len(got), err)
		}
		if n := len(log.Requests()); n != 4 {
			t.Errorf("%d requests:\n%v", n, log)
		}
	})
}

// TestBodyThatBringsLessAfterEachStallIsGivenUp has a server that sends half of the rest each time, and then stalls:
// the download makes progress at first, and ends when a minute has brought almost nothing.
func TestBodyThatBringsLessAfterEachStallIsGivenUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		inner := mem.New()
		mustPut(t, inner, "key", make([]byte, 64<<10))
		var faults []storetest.Fault
		for half := int64(32 << 10); half > 0; half /= 2 {
			faults = append(faults, storetest.Fault{Nth: len(faults) + 1, Stall: half})
		}
		s := store.Stack(storetest.NewFaulty(inner, faults...), store.Settings{Timeout: patience})
		start := time.Now()
		got, err := getAll(t.Context(), s, "key", store.Range{})
		if took := time.Since(start); !errors.Is(err, store.ErrUnreachable) || took > 100*time.Second {
			t.Errorf("%v after %v", err, took)
		}
		if len(got) < 48<<10 {
			t.Errorf("gave up after %d bytes, although the second half came fast", len(got))
		}
	})
}

func TestLimit(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := store.Stack(mem.New(), store.Settings{Timeout: patience, Limiter: store.NewLimiter(1000)})
		start := time.Now()
		mustPut(t, s, "key", make([]byte, 30_000))
		if took := time.Since(start); took < 28*time.Second || took > 31*time.Second {
			t.Errorf("30,000 bytes up at 1,000 a second took %v", took)
		}
		start = time.Now()
		if _, err := getAll(t.Context(), s, "key", store.Range{}); err != nil {
			t.Fatal(err)
		}
		if took := time.Since(start); took < 28*time.Second || took > 31*time.Second {
			t.Errorf("30,000 bytes down at 1,000 a second took %v", took)
		}
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
		defer cancel()
		if _, err := getAll(ctx, s, "key", store.Range{}); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("with too little time: %v", err)
		}
	})
}

func TestNoLimit(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		start := time.Now()
		s := store.Limit(mem.New(), store.NewLimiter(0))
		mustPut(t, s, "key", make([]byte, 30_000))
		if took := time.Since(start); took > 0 {
			t.Errorf("without a limit it took %v", took)
		}
	})
}

// TestLimitOfAHost checks that a mirror has a separate limit beside that of the run.
func TestLimitOfAHost(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		run := store.NewLimiter(1000)
		inner := mem.New()
		mustPut(t, inner, "key", make([]byte, 600))
		start := time.Now()
		for _, perSecond := range []int64{100, 0} {
			s := store.Stack(inner, store.Settings{Timeout: store.TimeoutPolicy{Answer: time.Hour, Idle: time.Hour},
				Limiter: run, Host: store.NewLimiter(perSecond)})
			if _, err := getAll(t.Context(), s, "key", store.Range{}); err != nil {
				t.Fatal(err)
			}
			took := time.Since(start)
			if slow := perSecond > 0; slow && (took < 4*time.Second || took > 7*time.Second) || !slow && took > 2*time.Second {
				t.Errorf("600 bytes of a host with a limit of %d bytes per second took %v", perSecond, took)
			}
			start = time.Now()
		}
	})
}

func TestTwoStoresShareALimit(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		limiter, inner := store.NewLimiter(1000), mem.New()
		mustPut(t, inner, "key", make([]byte, 10_000))
		start, done := time.Now(), make(chan error)
		for range 2 {
			s := store.Limit(inner, limiter)
			go func() {
				_, err := getAll(t.Context(), s, "key", store.Range{})
				done <- err
			}()
		}
		if err := errors.Join(<-done, <-done); err != nil {
			t.Error(err)
		}
		if took := time.Since(start); took < 18*time.Second || took > 21*time.Second {
			t.Errorf("two times 10,000 bytes at 1,000 a second took %v", took)
		}
	})
}

func TestObserve(t *testing.T) {
	log := &storetest.Log{}
	s := store.Observe(mem.New(), log.Add)
	mustPut(t, s, "key", []byte("0123456789"))
	if _, err := getAll(t.Context(), s, "key", store.Range{From: 4}); err != nil {
		t.Fatal(err)
	}
	_, _, _ = s.Get(t.Context(), "absent", 0) // the log has its error
	for range s.List(t.Context(), "k") {
		break
	}
	if err := s.Delete(t.Context(), "key"); err != nil {
		t.Fatal(err)
	}
	want := "put key, 10 bytes\nget key from 4, 6 bytes\nget absent, 0 bytes: reading absent: no such object\nlist k, 0 " +
		"bytes\ndelete key, 0 bytes"
	if log.String() != want {
		t.Errorf("got\n%v\nwant\n%s", log, want)
	}
	if log.Bytes() != 16 {
		t.Errorf("%d bytes", log.Bytes())
	}
}

// TestSlowStoreIsAbandoned checks that a slow store is abandoned if another one may be faster, at a lower rate each
// time, so that a fetch over a line that is slow for every store still completes.
func TestSlowStoreIsAbandoned(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		inner := mem.New()
		mustPut(t, inner, "key", make([]byte, 40<<10))
		s := store.Retry(store.Timeout(crawling{inner}, store.TimeoutPolicy{Slowest: 4 << 10}), store.RetryPolicy{})
		start, tries := time.Now(), 0
		for {
			tries++
			data, err := getAll(t.Context(), s, "key", store.Range{})
			if err == nil {
				if len(data) != 40<<10 || tries < 3 || tries > 4 {
					t.Errorf("%d bytes at try %d, want all at the third or fourth", len(data), tries)
				}
				return
			}
			if !errors.Is(err, store.ErrUnreachable) || time.Since(start) > time.Minute {
				t.Fatalf("%v after %v", err, time.Since(start))
			}
		}
	})
}

// crawling is a store that sends a KiB per second.
type crawling struct{ store.Store }

func (c crawling) Get(ctx context.Context, key string, from int64) (io.ReadCloser, store.Info, error) {
	body, info, err := c.Store.Get(ctx, key, from)
	return crawl{body}, info, err
}

type crawl struct{ io.ReadCloser }

func (c crawl) Read(p []byte) (int, error) {
	time.Sleep(time.Second)
	return c.ReadCloser.Read(p[:min(len(p), 1<<10)])
}
