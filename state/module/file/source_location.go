package file

import (
	"context"
	"io"
	"path"

	"github.com/corpus-agent/corpus-agent/state/redact"
)

// SourceRequest holds the arguments with which another family of states names a source of content of any size.
type SourceRequest struct {
	Source         any // a URL, or a list of URLs of which the first that exists is used
	Hash, HashName string
	SkipVerify     bool
	Env            string
	Name           string // the path that the content is for
}

// SourceLocation says where the content of a source is and how to read it.
type SourceLocation struct {
	URL   string
	Shown string // the URL without its password
	Env   string
	Cache string // the path at which a remote source is cached, "" for a source on the host
	Notes string // a directory for notes about such content
	Sum   string // the expected hash in hex; "" for any
	// Open opens the source itself, and Verified checks a copy. Reading fails at the end if the content does not
	// have the expected hash.
	Open     func(ctx context.Context) (io.ReadCloser, error)
	Verified func(r io.Reader) io.Reader
}

// Locate returns the place of the content and its expected hash.
func (in Inputs) Locate(ctx context.Context, a SourceRequest) (SourceLocation, error) {
	if in.Cache == "" {
		in.Cache = DefaultCache
	}
	f := &family{Inputs: in}
	s := sourced{environment: environment{Env: a.Env}, Source: a.Source, SourceHash: a.Hash, SourceHashName: a.HashName,
		SkipVerify: a.SkipVerify}
	o, err := f.origin(ctx, s, a.Name)
	if err != nil {
		return SourceLocation{}, err
	}
	l := SourceLocation{URL: o.url, Shown: redact.URLs(o.url), Env: o.env,
		Notes: path.Join(in.Cache, "notes"), Sum: o.sum.hex}
	if remote(o.url) {
		l.Cache = f.cachePlace(o.url, o.env)
	}
	l.Open = func(ctx context.Context) (io.ReadCloser, error) {
		source, err := f.open(ctx, o)
		if err != nil {
			return nil, err
		}
		return source.ReadCloser, nil
	}
	l.Verified = func(r io.Reader) io.Reader { return verified(r, l.Shown, o.sum) }
	return l, nil
}
