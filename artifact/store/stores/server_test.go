package stores_test

import (
	"errors"
	"io/fs"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/corpus-agent/corpus-agent/artifact/store"
	"github.com/corpus-agent/corpus-agent/artifact/store/stores"
	"github.com/corpus-agent/corpus-agent/state/diag"
)

// TestErrorsOfWebServersNameNoStore checks that a source on a web server is not taken for the store in messages.
func TestErrorsOfWebServersNameNoStore(t *testing.T) {
	t.Parallel()
	server := httptest.NewServer(http.NotFoundHandler())
	gone := httptest.NewServer(http.NotFoundHandler())
	gone.Close()
	t.Cleanup(server.Close)
	files := stores.Files{Options: stores.Options{Retry: store.RetryPolicy{Attempts: 1}}}
	for url, want := range map[string]string{server.URL + "/x": "no such file",
		gone.URL + "/x": "the server cannot be reached"} {
		_, err := files.Open(t.Context(), url)
		hint := diag.HintOf(err)
		if err == nil || !strings.Contains(err.Error(), want) || hint == "" ||
			strings.Contains(err.Error()+hint, "the store") {
			t.Errorf("%s: %v, hint %q", url, err, hint)
		}
		if errors.Is(err, fs.ErrNotExist) != (want == "no such file") {
			t.Errorf("%s: the kind of %v", url, err)
		}
	}
}
