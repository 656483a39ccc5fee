package network

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"
)

// seen starts a server. header returns the headers of its last request.
func seen(t *testing.T) (url string, header func() http.Header) {
	t.Helper()
	var last http.Header
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		last = r.Header.Clone()
		_, _ = w.Write([]byte("answer"))
	}))
	t.Cleanup(s.Close)
	return s.URL, func() http.Header { return last }
}

// TestRedirectsTakeNoCredentials checks that credentials are not sent to another host after a redirect, directly and
// after a redirect to the same host.
func TestRedirectsTakeNoCredentials(t *testing.T) {
	other, header := seen(t)
	var here *httptest.Server
	var second http.Header
	here = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/other":
			http.Redirect(w, r, other, http.StatusFound)
		case "/around":
			http.Redirect(w, r, here.URL+"/second?sig=s3cret", http.StatusFound)
		case "/second":
			second = r.Header.Clone()
			http.Redirect(w, r, other, http.StatusFound)
		}
	}))
	defer here.Close()
	request := Request{User: "me", Password: "s3cret", Header: map[string]string{"X-Vault-Token": "s3cret",
		"Private-Token": "s3cret", "Cookie": "s=s3cret", "Accept": "text/plain"}}
	for _, path := range []string{"/other?sig=s3cret", "/around?sig=s3cret"} {
		request.URL = here.URL + path
		got, err := Network{}.Get(t.Context(), request)
		if err != nil || got.Body != "answer" {
			t.Fatalf("%s: %+v, %v", path, got, err)
		}
		for name, values := range header() {
			text := strings.Join(values, " ")
			if strings.Contains(text, "s3cret") || name == "Authorization" {
				t.Errorf("%s: the other host got %s: %s", path, name, text)
			}
		}
		if header().Get("Accept") != "text/plain" {
			t.Errorf("%s: the request to the other host lacks headers: %v", path, header())
		}
	}
	if second.Get("X-Vault-Token") != "s3cret" || second.Get("Authorization") == "" {
		t.Errorf("the same host got no credentials after a redirect: %v", second)
	}
}

// TestPagesAreBounded checks servers that send without end, do not answer, or redirect in a cycle.
func TestPagesAreBounded(t *testing.T) {
	hold := make(chan struct{})
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/endless":
			for piece := make([]byte, 1<<20); ; {
				if _, err := w.Write(piece); err != nil {
					return
				}
			}
		case "/silent":
			<-hold
		case "/circle":
			http.Redirect(w, r, "/circle", http.StatusFound)
		}
	}))
	defer s.Close()
	defer close(hold)
	for path, want := range map[string]string{"/endless": "longer than 16 MiB", "/silent": "deadline exceeded",
		"/circle": "more than 5 redirects"} {
		limit := time.Minute
		if path == "/silent" {
			limit = 300 * time.Millisecond
		}
		if _, err := (Network{}).Get(t.Context(), Request{URL: s.URL + path, Limit: limit}); err == nil ||
			!strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", path, err, want)
		}
	}
}
