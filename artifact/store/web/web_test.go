package web_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/corpus-agent/corpus-agent/artifact/store"
	"github.com/corpus-agent/corpus-agent/artifact/store/mem"
	"github.com/corpus-agent/corpus-agent/artifact/store/storetest"
	"github.com/corpus-agent/corpus-agent/artifact/store/web"
	"github.com/corpus-agent/corpus-agent/state/diag"
)

// mirror is a store behind a web server: written and listed directly, read through the server.
type mirror struct {
	*mem.Store
	outside *web.Store
}

func (m mirror) Get(ctx context.Context, key string, from int64) (io.ReadCloser, store.Info, error) {
	return m.outside.Get(ctx, key, from)
}

func (m mirror) GetRange(ctx context.Context, key string, part store.Range) (io.ReadCloser, store.Info, error) {
	return m.outside.GetRange(ctx, key, part)
}

func (m mirror) Put(ctx context.Context, key string, r io.Reader,
	size int64, cond store.Condition) (store.Info, error) {
	cond.IfMatch = strings.Trim(cond.IfMatch, `"`)
	info, err := m.Store.Put(ctx, key, r, size, cond)
	info.ETag = `"` + info.ETag + `"`
	return info, err
}

// files serves a store like common web servers.
func files(s store.Store) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		body, info, err := s.Get(r.Context(), strings.TrimPrefix(r.URL.Path, "/some/path/"), 0)
		if err != nil {
			http.NotFound(w, r)
			return
		}
		defer body.Close()
		data, err := io.ReadAll(body)
		if err != nil {
			panic(http.ErrAbortHandler)
		}
		w.Header().Set("ETag", `"`+info.ETag+`"`)
		w.Header().Set("Content-Type", "application/octet-stream")
		http.ServeContent(w, r, "", info.Modified, bytes.NewReader(data))
	}
}

// withoutRanges serves a store like a web server without ranges.
func withoutRanges(s store.Store) http.HandlerFunc {
	serve := files(s)
	return func(w http.ResponseWriter, r *http.Request) {
		for _, h := range []string{"Range", "If-Range", "If-Match"} {
			r.Header.Del(h)
		}
		serve(w, r)
	}
}

func openAt(t *testing.T, base string) *web.Store {
	t.Helper()
	u, err := url.Parse(base)
	if err != nil {
		t.Fatal(err)
	}
	return web.New(u, web.Options{})
}

func serve(t *testing.T, h http.Handler) *web.Store {
	t.Helper()
	server := httptest.NewServer(h)
	t.Cleanup(server.Close)
	return openAt(t, server.URL+"/some/path/")
}

func TestConformance(t *testing.T) {
	for name, handler := range map[string]func(store.Store) http.HandlerFunc{"ranges": files, "no ranges": withoutRanges} {
		t.Run(name, func(t *testing.T) {
			storetest.Run(t, func(t *testing.T) store.Store {
				inside := mem.New()
				return mirror{inside, serve(t, handler(inside))}
			})
		})
	}
}

// TestNoValidators checks that without ETags and dates an object can be read once, and versions are never mixed.
func TestNoValidators(t *testing.T) {
	st := serve(t, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, "content") }))
	body, info, err := st.Get(t.Context(), "key", 3)
	if err != nil {
		t.Fatal(err)
	}
	defer body.Close()
	if got, err := io.ReadAll(body); string(got) != "tent" || err != nil {
		t.Errorf("%q, %v", got, err)
	}
	if info.ETag != "" {
		t.Errorf("an unexpected ETag: %q", info.ETag)
	}
}

func TestDateForETag(t *testing.T) {
	modified := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	st := serve(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		http.ServeContent(w, r, "", modified, strings.NewReader("content"))
	}))
	_, info, err := st.Get(t.Context(), "key", 0)
	if err != nil || info.ETag == "" {
		t.Fatalf("%+v, %v", info, err)
	}
	if _, _, err := st.GetRange(t.Context(), "key", store.Range{From: 3, ETag: info.ETag}); err != nil {
		t.Errorf("the same version: %v", err)
	}
	modified = modified.Add(time.Hour)
	_, _, err = st.GetRange(t.Context(), "key", store.Range{From: 3, ETag: info.ETag})
	if !errors.Is(err, store.ErrPrecondition) {
		t.Errorf("another version: %v", err)
	}
}

// TestWrongRangeHeadersAreRefused uses servers with wrong headers about the part that they send.
func TestWrongRangeHeadersAreRefused(t *testing.T) {
	for name, c := range map[string]struct {
		status  int
		headers map[string]string
		body    string
	}{
		"another offset":     {206, map[string]string{"Content-Range": "bytes 0-6/10"}, "0123456"},
		"beyond the end":     {206, map[string]string{"Content-Range": "bytes 3-12/10"}, "3456789012"},
		"backwards":          {206, map[string]string{"Content-Range": "bytes 3-1/10"}, "345"},
		"another length":     {206, map[string]string{"Content-Range": "bytes 3-9/10", "Content-Length": "3"}, "345"},
		"no range":           {206, nil, "3456789"},
		"nonsense":           {206, map[string]string{"Content-Range": "chars a-b/c"}, "3456789"},
		"overflow":           {206, map[string]string{"Content-Range": "bytes 3-99999999999999999999/10"}, "3456789"},
		"no content":         {416, map[string]string{"Content-Range": "bytes */10"}, ""},
		"compressed":         {200, map[string]string{"Content-Encoding": "gzip"}, "0123456789"},
		"compressed part":    {206, map[string]string{"Content-Encoding": "br", "Content-Range": "bytes 3-9/10"}, "3456789"},
		"a redirect to none": {302, nil, ""},
		"an odd success":     {204, nil, ""},
	} {
		t.Run(name, func(t *testing.T) {
			st := serve(t, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
				for name, value := range c.headers {
					w.Header().Set(name, value)
				}
				w.WriteHeader(c.status)
				_, _ = io.WriteString(w, c.body) // the client may have disconnected
			}))
			body, _, err := st.Get(t.Context(), "key", 3)
			if err == nil {
				got, readErr := io.ReadAll(body)
				t.Fatalf("the response was read as %q, %v", got, readErr)
			}
			if !errors.Is(err, store.ErrUnreachable) {
				t.Errorf("%v", err)
			}
		})
	}
}

// TestEndlessBody reads a body that never ends, with a Content-Length: the read ends at that length.
func TestEndlessBody(t *testing.T) {
	st := serve(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Range", "bytes 3-9/10")
		w.WriteHeader(http.StatusPartialContent)
		for r.Context().Err() == nil {
			if _, err := w.Write(bytes.Repeat([]byte("x"), 1000)); err != nil {
				return
			}
		}
	}))
	body, info, err := st.Get(t.Context(), "key", 3)
	if err != nil {
		t.Fatal(err)
	}
	defer body.Close()
	if got, err := io.ReadAll(body); len(got) != 7 || err != nil || info.Size != 10 {
		t.Errorf("%d bytes of %+v, %v", len(got), info, err)
	}
}

// TestShortPart reads a part that is too short, without a Content-Length that would show it.
func TestShortPart(t *testing.T) {
	st := serve(t, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Range", "bytes 3-9/10")
		w.WriteHeader(http.StatusPartialContent)
		w.(http.Flusher).Flush()
		_, _ = io.WriteString(w, "345") // the client may have disconnected
	}))
	body, _, err := st.Get(t.Context(), "key", 3)
	if err != nil {
		t.Fatal(err)
	}
	defer body.Close()
	if got, err := io.ReadAll(body); string(got) != "345" || !errors.Is(err, io.ErrUnexpectedEOF) ||
		!errors.Is(err, store.ErrUnreachable) {
		t.Errorf("%q, %v", got, err)
	}
}

func TestEncodingOfTheFileItself(t *testing.T) {
	st := serve(t, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Encoding", "gzip")
		_, _ = io.WriteString(w, "raw bytes") // the client may have disconnected
	}))
	body, _, err := st.Get(t.Context(), "app.tar.gz", 0)
	if err != nil {
		t.Fatal(err)
	}
	defer body.Close()
	if got, err := io.ReadAll(body); string(got) != "raw bytes" || err != nil {
		t.Errorf("%q, %v", got, err)
	}
}

func TestRedirects(t *testing.T) {
	inside := mem.New()
	if _, err := inside.Put(t.Context(), "key", strings.NewReader("0123456789"), 10, store.Condition{}); err != nil {
		t.Fatal(err)
	}
	target := httptest.NewServer(http.StripPrefix("/moved", files(inside)))
	defer target.Close()
	moved := serve(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		http.Redirect(w, r, target.URL+"/moved"+r.URL.Path, http.StatusFound)
	}))
	body, _, err := moved.Get(t.Context(), "key", 4)
	if err != nil {
		t.Fatal(err)
	}
	defer body.Close()
	if got, err := io.ReadAll(body); string(got) != "456789" || err != nil {
		t.Errorf("through a redirect: %q, %v", got, err)
	}
	loop := serve(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		http.Redirect(w, r, r.URL.Path, http.StatusFound)
	}))
	_, _, err = loop.Get(t.Context(), "key", 0)
	if !errors.Is(err, store.ErrUnreachable) || !strings.Contains(err.Error(), "more than 5 redirects") {
		t.Errorf("a loop: %v", err)
	}
}

func TestRedirectFromTLS(t *testing.T) {
	plain := httptest.NewServer(http.NotFoundHandler())
	defer plain.Close()
	secure := httptest.NewTLSServer(http.RedirectHandler(plain.URL, http.StatusFound))
	defer secure.Close()
	u, err := url.Parse(secure.URL)
	if err != nil {
		t.Fatal(err)
	}
	st := web.New(u, web.Options{Transport: secure.Client().Transport})
	_, _, err = st.Get(t.Context(), "key", 0)
	if !errors.Is(err, store.ErrUnreachable) || !strings.Contains(err.Error(), "from https to http") {
		t.Errorf("%v", err)
	}
}

func TestReadOnly(t *testing.T) {
	st := openAt(t, "https://mirror.example.com/path")
	_, err := st.Put(t.Context(), "key", strings.NewReader("x"), 1, store.Condition{})
	for what, err := range map[string]error{"Put": err, "Delete": st.Delete(t.Context(), "key")} {
		if !errors.Is(err, store.ErrReadOnly) || diag.HintOf(err) == "" {
			t.Errorf("%s: %v", what, err)
		}
	}
	for _, err := range st.List(t.Context(), "deploy/") {
		if !errors.Is(err, errors.ErrUnsupported) || !strings.Contains(diag.HintOf(err), "cannot list") {
			t.Errorf("List: %v", err)
		}
	}
}
