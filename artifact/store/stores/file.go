package stores

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/url"
	"path"
	"strings"

	"github.com/corpus-agent/corpus-agent/artifact/store"
	"github.com/corpus-agent/corpus-agent/artifact/store/web"
	"github.com/corpus-agent/corpus-agent/state/diag"
	"github.com/corpus-agent/corpus-agent/state/redact"
)

// Files opens single files by URL, as states name them: an object of any store, or the response of a web server,
// including to a URL with a query. Plain HTTP is allowed here, since the caller verifies
// the content.
type Files struct {
	Options Options
	Private bool // a redirect may lead from a public address to a private one
	Pace    Pace // how fast a file must arrive
}

// Open opens the file at a URL. If it does not exist, the error wraps fs.ErrNotExist.
func (f Files) Open(ctx context.Context, rawURL string) (io.ReadCloser, error) {
	s, key, err := f.locate(rawURL)
	if err != nil {
		return nil, err
	}
	body, err := f.Pace.keep(ctx, Display(rawURL), func(ctx context.Context) (io.ReadCloser, error) {
		body, _, err := s.Get(ctx, key, 0)
		if errors.Is(err, store.ErrNotFound) {
			return nil, fmt.Errorf("%w: %w", fs.ErrNotExist, err)
		}
		return body, err
	})
	if !strings.HasPrefix(rawURL, "http") {
		return body, err
	}
	if err != nil {
		return nil, ofServer(err)
	}
	return served{body}, nil
}

// served is a file of a web server that is not a store.
type served struct{ io.ReadCloser }

func (s served) Read(p []byte) (int, error) {
	n, err := s.ReadCloser.Read(p)
	if err != nil && !errors.Is(err, io.EOF) {
		err = ofServer(err)
	}
	return n, err
}

// serverError is the error of such a server. The errors of a store call it the store, which is another server.
type serverError struct{ err error }

// serverWords replaces what errors call the store and its objects.
var serverWords = strings.NewReplacer("the store's URL", "the URL", "the store", "the server", "no such object",
	"no such file")

func ofServer(err error) error {
	if errors.Is(err, fs.ErrNotExist) && diag.HintOf(err) == "" {
		err = diag.Source.Hint(err, "see whether the file was moved or deleted on the server, and correct the URL")
	}
	return diag.KeepHint(&serverError{err}, serverWords.Replace(diag.HintOf(err)))
}

func (s *serverError) Error() string { return serverWords.Replace(s.err.Error()) }
func (s *serverError) Unwrap() error { return s.err }

// locate returns the store that has a file, and the file's key in it.
func (f Files) locate(rawURL string) (s store.Store, key string, err error) {
	f.Options.Timeout.AnyRate = true // the Pace limits the rate
	u, err := url.Parse(rawURL)
	if err != nil { // its text contains the URL, or a part of it that may be a password
		return nil, "", diag.StoreURL.Hint(errors.New("the source is not a URL"),
			"write special characters as %%25, %%20 and so on")
	}
	if u.Scheme == "http" || u.Scheme == "https" {
		return f.web(u)
	}
	dir, key := path.Split(strings.TrimSuffix(u.Path, "/"))
	u.Path, u.RawPath = dir, ""
	s, err = Open(u.String(), f.Options)
	return s, key, err
}

func (f Files) web(u *url.URL) (store.Store, string, error) {
	dir, key := path.Split(u.Path)
	if u.Host == "" || key == "" {
		return nil, "", diag.StoreURL.Hint(fmt.Errorf("%s names no file", redact.URLs(u.String())),
			"write https://host/path/file")
	}
	base := *u
	base.Path, base.RawPath, base.Fragment = dir, "", ""
	with := f.Options
	with.Timeout.Name = Display(base.Scheme + "://" + base.Host + base.Path)
	return store.Stack(web.New(&base, web.Options{Private: f.Private}), with), key, nil
}
