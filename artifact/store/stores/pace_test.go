package stores_test

import (
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/corpus-agent/corpus-agent/artifact/store"
	"github.com/corpus-agent/corpus-agent/artifact/store/stores"
	"github.com/corpus-agent/corpus-agent/state/diag"
)

// trickling starts a server that sends a byte every few milliseconds until the client disconnects.
func trickling(t *testing.T, head http.Header) string {
	t.Helper()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		for name, values := range head {
			w.Header()[name] = values
		}
		for r.Context().Err() == nil {
			if _, err := w.Write([]byte("x")); err != nil {
				return
			}
			w.(http.Flusher).Flush()
			time.Sleep(5 * time.Millisecond)
		}
	}))
	t.Cleanup(server.Close)
	return server.URL + "/file"
}

// TestFetchSlowerThanTheLimitFails checks that a fetch from a server that sends single bytes fails with an error that
// names the setting, whether or not the fetch can be resumed.
func TestFetchSlowerThanTheLimitFails(t *testing.T) {
	for name, c := range map[string]struct {
		pace    stores.Pace
		setting string
	}{
		"a minimum":    {stores.Pace{Slowest: 1 << 20, Window: 300 * time.Millisecond}, "fetch.slowest"},
		"a time limit": {stores.Pace{Longest: 300 * time.Millisecond}, "fetch.timeout"},
	} {
		for _, head := range []http.Header{{}, {"Content-Length": {"1000000"}, "Etag": {`"1"`}}} {
			began := time.Now()
			body, err := stores.Files{Pace: c.pace}.Open(context.Background(), trickling(t, head))
			if err != nil {
				t.Fatal(err)
			}
			_, err = io.Copy(io.Discard, body)
			if closed := body.Close(); closed != nil {
				t.Error(closed)
			}
			if err == nil || !strings.Contains(err.Error(), c.setting) || !strings.Contains(diag.HintOf(err), c.setting) ||
				time.Since(began) > 5*time.Second {
				t.Errorf("%s, %v: %v after %v, hint %q", name, head, err, time.Since(began), diag.HintOf(err))
			}
		}
	}
}

// TestFetchFasterThanTheLimitSucceeds fetches a file at a sufficient rate.
func TestFetchFasterThanTheLimitSucceeds(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		_, _ = io.WriteString(w,
			strings.Repeat("x", 100_000))
	}))
	defer server.Close()
	body, err := stores.Files{Pace: stores.Pace{Longest: time.Minute, Slowest: 10,
		Window: time.Nanosecond}}.Open(context.Background(), server.URL+"/file")
	if err != nil {
		t.Fatal(err)
	}
	defer body.Close()
	if data, err := io.ReadAll(body); err != nil || len(data) != 100_000 {
		t.Errorf("%d bytes, %v", len(data), err)
	}
}

// TestARedirectToAnotherSchemeIsNotRetried checks that the fetch fails at once.
func TestARedirectToAnotherSchemeIsNotRetried(t *testing.T) {
	requests := 0
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		requests++
		w.Header().Set("Location", map[string]string{"/file": "file:///etc/passwd", "/none": "http://[::1"}[r.URL.Path])
		w.WriteHeader(http.StatusFound)
	}))
	defer server.Close()
	for _, name := range []string{"/file", "/none"} {
		requests = 0
		_, err := stores.Files{Options: stores.Options{Retry: store.RetryPolicy{Total: 2 * time.Second}}}.Open(
			context.Background(), server.URL+name)
		if err == nil || !strings.Contains(err.Error(), "it redirects to") || requests != 1 {
			t.Errorf("%s: %v after %d requests", name, err, requests)
		}
	}
}
