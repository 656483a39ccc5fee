// Package web reads objects from a web server: a mirror behind a CDN, a public bucket, or a directory store that nginx
// serves.
//
// It only reads; HTTP has no common way to list or to write. It supports servers without ranges and ETags, and trusts
// none: a response must match the request, must not be re-encoded on its way, and must have the announced
// length.
package web

import (
	"context"
	"errors"
	"io"
	"iter"
	"net/http"
	"net/url"
	"path"
	"strconv"
	"strings"

	"github.com/corpus-agent/corpus-agent/artifact/store"
	"github.com/corpus-agent/corpus-agent/artifact/store/wire"
	"github.com/corpus-agent/corpus-agent/state/diag"
	"github.com/corpus-agent/corpus-agent/state/redact"
)

// Store is a read-only store on a web server.
type Store struct {
	base   *url.URL
	client *http.Client
}

// Options configure a store. The zero value is right for an ordinary run.
type Options struct {
	Transport http.RoundTripper // nil means wire.NewTransport
	Private   bool              // a redirect may lead from a public address to a private one
}

// New returns a store for the objects below a URL. The URL's query is sent with every request.
func New(base *url.URL, opts Options) *Store {
	transport := opts.Transport
	if transport == nil {
		transport = wire.NewTransport()
	}
	return &Store{base: base, client: wire.NewClient(transport, opts.Private)}
}

// Get opens an object from an offset on.
func (s *Store) Get(ctx context.Context, key string, from int64) (io.ReadCloser, store.Info, error) {
	return s.GetRange(ctx, key, store.Range{From: from})
}

// GetRange opens a part of an object. A server without ranges sends everything, and the bytes before the part are
// discarded.
func (s *Store) GetRange(ctx context.Context, key string, part store.Range) (io.ReadCloser, store.Info, error) {
	if err := store.CheckKey(key); err != nil {
		return nil, store.Info{}, err
	}
	where := s.url(key)
	ctx, call := wire.Begin(ctx, store.OpGet, key, redact.URLs(where.String()))
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, where.String(), nil)
	if err != nil {
		return nil, store.Info{}, call.Unusable(err, "check the store's URL")
	}
	ask(req.Header, part)
	resp, err := s.client.Do(req)
	if err != nil {
		return nil, store.Info{}, call.Fail(err)
	}
	body, info, err := answer(call, part, resp)
	if err != nil {
		_ = resp.Body.Close() // the rest of it is not used
	}
	return body, info, err
}

func (s *Store) url(key string) *url.URL {
	u := *s.base
	segments := strings.Split(key, "/")
	for i, segment := range segments {
		// Some servers treat a plus sign as a space even in a path.
		segments[i] = strings.ReplaceAll(url.PathEscape(segment), "+", "%2B")
	}
	base := strings.TrimSuffix(s.base.EscapedPath(), "/")
	u.Path = strings.TrimSuffix(s.base.Path, "/") + "/" + key
	u.RawPath = base + "/" + strings.Join(segments, "/")
	return &u
}

// madeUp begins the ETag of an object whose server sends none.
const madeUp = "modified-"

func ask(h http.Header, part store.Range) {
	h.Set("User-Agent", "corpus-agent")
	h.Set("Accept-Encoding", "identity")
	if r := wire.RangeHeader(part); r != "" {
		h.Set("Range", r)
	}
	if strings.HasPrefix(part.ETag, `"`) { // a weak tag, or one made up below, would never match
		h.Set("If-Match", part.ETag)
	}
	if part.Unless != "" && !strings.HasPrefix(part.Unless, madeUp) {
		h.Set("If-None-Match", part.Unless)
	}
}

func answer(call *wire.Call, part store.Range, resp *http.Response) (io.ReadCloser, store.Info, error) {
	opened := wire.Opened{Body: resp.Body, Length: resp.ContentLength, ETag: resp.Header.Get("ETag")}
	opened.Modified, _ = http.ParseTime(resp.Header.Get("Last-Modified"))
	switch resp.StatusCode {
	case http.StatusOK:
	case http.StatusPartialContent:
		opened.ContentRange = resp.Header.Get("Content-Range")
		if opened.ContentRange == "" {
			return nil, store.Info{}, call.Malformed("it sent a part without saying which")
		}
	case http.StatusRequestedRangeNotSatisfiable:
		return pastEnd(call, part, resp, opened)
	default:
		return nil, store.Info{}, call.Refused("", "")
	}
	if e := resp.Header.Get("Content-Encoding"); !harmless(e, call.Key) {
		return nil, store.Info{}, diag.Store.Hint(call.Malformed("it sent Content-Encoding %.20q although none was accepted",
			e),
			"turn off compression for the store's files on the web server")
	}
	if opened.ETag == "" && !opened.Modified.IsZero() {
		opened.ETag = madeUp + strconv.FormatInt(opened.Modified.Unix(), 10) // the best substitute for an ETag
	}
	return call.Open(part, opened)
}

// pastEnd handles a range that begins at or after the end of the object.
func pastEnd(call *wire.Call, part store.Range,
	resp *http.Response, opened wire.Opened) (io.ReadCloser, store.Info, error) {
	size := int64(-1)
	if total, ok := strings.CutPrefix(resp.Header.Get("Content-Range"), "bytes */"); ok {
		if n, err := strconv.ParseInt(total, 10, 64); err == nil && n >= 0 {
			size = n
		}
	}
	_ = resp.Body.Close() // an error page
	return call.PastEnd(part, store.Info{Key: call.Key, Size: size, ETag: opened.ETag, Modified: opened.Modified})
}

// harmless reports whether the bytes are the object's own in spite of a Content-Encoding: servers also send the
// encoding of a file that is compressed itself, as its name shows.
func harmless(encoding, key string) bool {
	switch encoding {
	case "", "identity":
		return true
	case "gzip", "x-gzip":
		return path.Ext(key) == ".gz" || path.Ext(key) == ".tgz"
	case "zstd":
		return path.Ext(key) == ".zst"
	}
	return false
}

// Put always fails: the store is read-only.
func (s *Store) Put(_ context.Context, key string, _ io.Reader, _ int64, _ store.Condition) (store.Info, error) {
	return store.Info{}, s.readOnly(store.OpPut, key)
}

// Delete always fails: the store is read-only.
func (s *Store) Delete(_ context.Context, key string) error {
	return s.readOnly(store.OpDelete, key)
}

func (s *Store) readOnly(op store.Op, key string) error {
	return diag.StoreURL.Hint(&store.Error{Op: op, Object: redact.URLs(s.url(key).String()), Kind: store.ErrReadOnly},
		"publish through the store behind the web server, by its s3://, minio:// or file:// URL")
}

// List always fails with errors.ErrUnsupported.
func (s *Store) List(_ context.Context, prefix string) iter.Seq2[store.Info, error] {
	return func(yield func(store.Info, error) bool) {
		yield(store.Info{}, diag.StoreURL.Hint(&store.Error{Op: store.OpList, Object: redact.URLs(s.url(prefix).String()),
			Kind: errors.ErrUnsupported},
			"a web server cannot list: use the store behind it, by its s3://, minio:// or file:// URL"))
	}
}
