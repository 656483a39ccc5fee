package stores_test

import (
	"bytes"
	"context"
	"errors"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/corpus-agent/corpus-agent/artifact/store"
	"github.com/corpus-agent/corpus-agent/artifact/store/stores"
	"github.com/corpus-agent/corpus-agent/artifact/store/storetest/fakes3"
)

// proxy is a faulty proxy between a publisher and the server.
type proxy struct {
	mu    sync.Mutex
	fault func(w http.ResponseWriter, r *http.Request) bool // responds in place of the server, or returns false
	parts []string                                          // numbers of parts that were forwarded
}

func (p *proxy) wrap(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		p.mu.Lock()
		fault := p.fault
		p.mu.Unlock()
		if fault != nil && fault(w, r) {
			return
		}
		if number := r.URL.Query().Get("partNumber"); number != "" && r.Method == http.MethodPut {
			p.mu.Lock()
			p.parts = append(p.parts, number)
			p.mu.Unlock()
		}
		next.ServeHTTP(w, r)
	})
}

func (p *proxy) set(fault func(http.ResponseWriter, *http.Request) bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.fault = fault
}

// bothS3 opens a store by each of the two clients, behind a proxy.
func bothS3(t *testing.T, retry store.RetryPolicy, do func(t *testing.T, s store.Store, p *proxy)) {
	for _, kind := range []string{"s3", "minio"} {
		t.Run(kind, func(t *testing.T) {
			p := &proxy{}
			server := fakes3.Start(t, p.wrap)
			url := map[string]string{"s3": "s3://" + fakes3.Bucket + "/x?endpoint=http://" + server.Host,
				"minio": "minio://" + server.Host + "/" + fakes3.Bucket + "/x?tls=0"}[kind]
			s, err := stores.Open(url, stores.Options{Retry: retry})
			if err != nil {
				t.Fatal(err)
			}
			do(t, s, p)
		})
	}
}

func noise(n int) []byte {
	data := make([]byte, n)
	r := rand.New(rand.NewPCG(1, uint64(n)))
	for i := range data {
		data[i] = byte(r.Uint32())
	}
	return data
}

// TestPutThatWasNotStored checks that a response 200 of a proxy that did not forward a PUT does not count as a write.
func TestPutThatWasNotStored(t *testing.T) {
	swallow := func(times int) func(http.ResponseWriter, *http.Request) bool {
		return func(w http.ResponseWriter, r *http.Request) bool {
			if r.Method != http.MethodPut || times == 0 {
				return false
			}
			times--
			_, _ = io.Copy(io.Discard, r.Body)
			w.Header().Set("ETag", `"0123456789abcdef0123456789abcdef"`)
			return true
		}
	}
	bothS3(t, store.RetryPolicy{Attempts: 3, First: time.Millisecond}, func(t *testing.T, s store.Store, p *proxy) {
		for key, data := range map[string][]byte{"small": []byte("content"), "large": noise(12 << 20)} {
			p.set(swallow(1))
			if _, err := s.Put(t.Context(), key, bytes.NewReader(data), int64(len(data)),
				store.Condition{IfAbsent: true}); err != nil {
				t.Fatalf("%s, swallowed once: %v", key, err)
			}
			if got := readAll(t, s, key); !bytes.Equal(got, data) {
				t.Errorf("%s, swallowed once: the object has %d bytes", key, len(got))
			}
			p.set(swallow(-1))
			_, err := s.Put(t.Context(), "other-"+key, bytes.NewReader(data), int64(len(data)), store.Condition{})
			if !errors.Is(err, store.ErrUnreachable) {
				t.Errorf("%s, always swallowed: %v", key, err)
			}
			p.set(nil)
		}
	})
}

// TestPutThatWasDamaged checks that a write fails, or is repeated, if a proxy changes bytes.
func TestPutThatWasDamaged(t *testing.T) {
	bothS3(t, store.RetryPolicy{Attempts: 3, First: time.Millisecond}, func(t *testing.T, s store.Store, p *proxy) {
		damaged := false
		p.set(func(_ http.ResponseWriter, r *http.Request) bool {
			if r.Method == http.MethodPut && !damaged {
				damaged = true
				body, _ := io.ReadAll(r.Body)
				body[0] ^= 1
				r.Body = io.NopCloser(bytes.NewReader(body))
				r.Header.Del("Content-Md5") // a server without checksums
				r.Header.Del("X-Amz-Checksum-Crc32")
			}
			return false
		})
		if _, err := s.Put(t.Context(), "key", strings.NewReader("content"), 7, store.Condition{}); err != nil {
			t.Fatal(err)
		}
		if got := readAll(t, s, "key"); string(got) != "content" {
			t.Errorf("the object has %q", got)
		}
	})
}

// TestUploadResumes checks that an upload over a connection that breaks repeatedly succeeds, and that no part that
// arrived is sent again, by this process or, after it was killed, by the next one.
func TestUploadResumes(t *testing.T) {
	data := noise(23 << 20)
	bothS3(t, store.RetryPolicy{Attempts: 2, First: time.Millisecond}, func(t *testing.T, s store.Store, p *proxy) {
		ctx, kill := context.WithCancel(t.Context())
		defer kill()
		requests := 0
		p.set(func(_ http.ResponseWriter, r *http.Request) bool {
			if r.URL.Query().Get("partNumber") == "" || r.Method != http.MethodPut {
				return false
			}
			if requests++; requests == 5 {
				kill()
			}
			if requests%2 == 1 {
				_, _ = io.CopyN(io.Discard, r.Body, 1<<20)
				panic(http.ErrAbortHandler)
			}
			return false
		})
		if _, err := s.Put(ctx, "key", bytes.NewReader(data), int64(len(data)), store.Condition{IfAbsent: true}); err == nil {
			t.Fatal("a killed upload succeeded")
		}
		if len(p.parts) == 0 {
			t.Fatal("nothing was sent before the kill")
		}
		if _, err := s.Put(t.Context(), "key", bytes.NewReader(data), int64(len(data)),
			store.Condition{IfAbsent: true}); err != nil {
			t.Fatal(err)
		}
		if got := readAll(t, s, "key"); !bytes.Equal(got, data) {
			t.Errorf("%d bytes arrived, want %d", len(got), len(data))
		}
		if got := strings.Join(p.parts, " "); got != "1 2 3 4 5" {
			t.Errorf("the forwarded parts are %s, want each once", got)
		}
		_, err := s.Put(t.Context(), "key", bytes.NewReader(data), int64(len(data)), store.Condition{IfAbsent: true})
		if !errors.Is(err, store.ErrPrecondition) || len(p.parts) != 5 {
			t.Errorf("over an existing object: %v, after %d parts", err, len(p.parts))
		}
	})
}

func readAll(t *testing.T, s store.Store, key string) []byte {
	t.Helper()
	body, _, err := s.Get(t.Context(), key, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer body.Close()
	data, err := io.ReadAll(body)
	if err != nil {
		t.Fatal(err)
	}
	return data
}

// TestSlowUploadIsNotAStall checks this although the bytes are read from memory.
func TestSlowUploadIsNotAStall(t *testing.T) {
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method != http.MethodPut {
			w.WriteHeader(http.StatusForbidden)
			return
		}
		for range 40 {
			if _, err := io.CopyN(io.Discard, r.Body, 128<<10); err != nil {
				break
			}
			time.Sleep(25 * time.Millisecond)
		}
		w.Header().Set("ETag", `"x"`)
	}))
	server.Config.ConnState = func(c net.Conn, state http.ConnState) {
		if state == http.StateNew {
			_ = c.(*net.TCPConn).SetReadBuffer(64 << 10)
		}
	}
	server.Start()
	defer server.Close()
	fakes3.Login(t, "user", "secret")
	s, err := stores.Open("s3://b?endpoint="+server.URL, stores.Options{Retry: store.RetryPolicy{Attempts: 1},
		Timeout: store.TimeoutPolicy{Answer: 700 * time.Millisecond, Idle: 700 * time.Millisecond}})
	if err != nil {
		t.Fatal(err)
	}
	data := noise(5 << 20)
	if _, err := s.Put(t.Context(), "key", bytes.NewReader(data), int64(len(data)), store.Condition{}); err != nil {
		t.Errorf("an upload that takes a second and progresses: %v", err)
	}
}

// TestUnfinishedUploads checks that every client lists and aborts an interrupted upload.
func TestUnfinishedUploads(t *testing.T) {
	bothS3(t, store.RetryPolicy{Attempts: 2, First: time.Millisecond}, func(t *testing.T, s store.Store, p *proxy) {
		data := noise(12 << 20)
		p.set(func(w http.ResponseWriter, r *http.Request) bool {
			if r.URL.Query().Get("partNumber") != "2" {
				return false
			}
			w.WriteHeader(http.StatusForbidden)
			return true
		})
		if _, err := s.Put(t.Context(), "deploy/a", bytes.NewReader(data), int64(len(data)), store.Condition{}); err == nil {
			t.Fatal("an upload without its second part succeeded")
		}
		p.set(nil)
		uploads := store.Uploads(s)
		unfinished := func() []store.Unfinished {
			all, err := uploads.Unfinished(t.Context(), "deploy/")
			if err != nil {
				t.Fatal(err)
			}
			return all
		}
		before := unfinished()
		if len(before) != 1 || before[0].Key != "deploy/a" || time.Since(before[0].Begun).Abs() > time.Minute {
			t.Fatalf("the unfinished uploads are %+v", before)
		}
		if err := uploads.Abort(t.Context(), before[0]); err != nil {
			t.Error(err)
		}
		if err := uploads.Abort(t.Context(), before[0]); err != nil {
			t.Errorf("an upload that was aborted before: %v", err)
		}
		if left := unfinished(); len(left) > 0 {
			t.Errorf("the uploads are %+v", left)
		}
	})
}
