package stores_test

import (
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/corpus-agent/corpus-agent/artifact/store"
	"github.com/corpus-agent/corpus-agent/state/diag"
)

// TestPageOfAnotherServerIsNoObject checks that the login page of a network in the place of an object is an error that
// says so where the client notices it, and never the client's own words about headers.
func TestPageOfAnotherServerIsNoObject(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/html")
		_, _ = io.WriteString(w, "<!DOCTYPE html><html><body>captive portal</body></html>") // the client may be gone
	}))
	defer server.Close()
	for kind, s := range overHTTP(t, server.URL) {
		body, _, err := s.Get(t.Context(), "metadata/timestamp.json", 0)
		if err == nil {
			_ = body.Close()
			continue // the signature of the metadata is what refuses the page
		}
		if !errors.Is(err, store.ErrUnreachable) || strings.Contains(err.Error(), "Last-Modified") ||
			!strings.Contains(diag.HintOf(err), "answers in its place") {
			t.Errorf("%s: %v, hint %q", kind, err, diag.HintOf(err))
		}
	}
}
