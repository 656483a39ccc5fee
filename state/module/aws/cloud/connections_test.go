package cloud

import (
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
)

// TestAnswersAreLimited asks a server whose answers do not end, that redirects for ever, or to another host.
func TestAnswersAreLimited(t *testing.T) {
	elsewhere, asked := "", map[string]int{}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		asked[r.Host+r.URL.Path]++
		switch r.URL.Path {
		case "/huge":
			block := strings.Repeat("x", 1<<20)
			for range 2 * largestAnswer >> 20 {
				if _, err := io.WriteString(w, block); err != nil {
					return
				}
			}
		case "/loop":
			http.Redirect(w, r, "/loop", http.StatusTemporaryRedirect)
		case "/away":
			http.Redirect(w, r, elsewhere, http.StatusTemporaryRedirect)
		}
	}))
	defer server.Close()
	elsewhere = strings.Replace(server.URL, "127.0.0.1", "localhost", 1) + "/other"
	read := func(path string) (int, error) {
		request, err := http.NewRequestWithContext(context.Background(), http.MethodGet, server.URL+path, nil)
		if err != nil {
			t.Fatal(err)
		}
		response, err := limited(nil).Do(request)
		if err != nil {
			t.Fatal(err)
		}
		defer response.Body.Close()
		_, err = io.Copy(io.Discard, response.Body)
		return response.StatusCode, err
	}
	if _, err := read("/huge"); err == nil || !strings.Contains(err.Error(), "larger than 64") {
		t.Errorf("an answer without an end: %v", err)
	}
	for _, path := range []string{"/loop", "/away"} {
		if status, err := read(path); err != nil || status != http.StatusTemporaryRedirect {
			t.Errorf("%s answers %d, %v", path, status, err)
		}
	}
	for place, n := range asked {
		if n > mostRedirects+1 || strings.HasSuffix(place, "/other") {
			t.Errorf("%s was asked %d times", place, n)
		}
	}
}

// TestListsEnd reads a list each of whose pages names another one.
func TestListsEnd(t *testing.T) {
	n := 0
	_, err := Pages(func(*string) ([]int, *string, error) {
		n++
		next := strings.Repeat("x", n%7+1)
		return nil, &next, nil
	})
	if err == nil || n != mostPages {
		t.Errorf("after %d pages the error is %v", n, err)
	}
}
