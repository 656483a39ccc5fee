package store

import (
	"context"
	"io"
)

// Stager is a store in which the content of an object can be written before its key is known.
type Stager interface {
	Store
	// Stage begins an object in a folder of keys.
	Stage(ctx context.Context, folder string) (Staged, error)
}

// Staged is the content of an object that has no key yet, and that readers of the store do not see. Close removes it,
// unless a Put in a context of WithStaged made it an object. If the process is killed, a later writer to the folder
// removes it.
type Staged interface{ io.WriteCloser }

type stagedKey struct{}

// WithStaged returns a context in which a Put makes its object of content that was staged in the store, instead of
// reading it from its source, which has to have the same bytes.
func WithStaged(ctx context.Context, s Staged) context.Context {
	return context.WithValue(ctx, stagedKey{}, s)
}

// StagedOf returns what [WithStaged] was called with; nil without it.
func StagedOf(ctx context.Context) Staged {
	s, _ := ctx.Value(stagedKey{}).(Staged)
	return s
}

// Ahead returns by what means content can be uploaded before its key is known: a Stager, or whether the store makes
// objects of pieces.
func Ahead(s Store) (stager Stager, pieces bool) {
	switch at := innermost(s).(type) {
	case Stager:
		return at, false
	case Uploader:
		return nil, true
	}
	return nil, false
}

// innermost returns the store below the decorators of Stack.
func innermost(s Store) Store {
	for {
		switch at := s.(type) {
		case wrapper:
			s = at.unwrap()
		case *timed:
			s = at.inner
		case *retrying:
			s = at.inner
		default:
			return s
		}
	}
}
