package file

import (
	"context"
	"io"
	"path"
)

// Asked is content of any size that a state of another family takes from a source.
type Asked struct {
	Source         any // a URL, or a list of them of which the first counts that is there
	Hash, HashName string
	SkipVerify     bool
	Env            string
	Name           string // the path it is for
}

// Located is where such content is.
type Located struct {
	URL   string
	Shown string // the URL without a password
	Env   string
	Cache string // where a copy of it is kept if it comes from elsewhere, "" for what is on the host
	Notes string // a directory to note things in about such content
	Sum   string // the hash it shall have, in hex; "" for any
	// Open opens it where it is, and Verified checks a copy. What is read fails at its end if it has
	// not the hash.
	Open     func(ctx context.Context) (io.ReadCloser, error)
	Verified func(r io.Reader) io.Reader
}

// Locate settles where content is and which hash it shall have.
func (in Inputs) Locate(ctx context.Context, a Asked) (Located, error) {
	if in.Cache == "" {
		in.Cache = DefaultCache
	}
	f := &family{Inputs: in}
	s := sourced{environment: environment{Env: a.Env}, Source: a.Source, SourceHash: a.Hash, SourceHashName: a.HashName, SkipVerify: a.SkipVerify}
	o, err := f.origin(ctx, s, a.Name)
	if err != nil {
		return Located{}, err
	}
	l := Located{URL: o.url, Shown: redacted(o.url), Env: o.env, Notes: path.Join(in.Cache, "notes"), Sum: o.sum.hex}
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
