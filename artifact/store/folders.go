package store

import (
	"context"
	"iter"
	"strings"
)

// Folders is a Store that can list the folders right below a key prefix without their content: an S3 request then
// answers for a thousand folders, and not for a thousand objects. Call ListFolders, which also works with others.
type Folders interface {
	Store
	// Folders yields the folders right below a prefix that ends with a slash, or is "", in key order. Key ends with a
	// slash; no other field of Info is set. It stops after the first error.
	Folders(ctx context.Context, prefix string) iter.Seq2[Info, error]
}

// ListFolders lists the folders right below a key prefix on any store.
func ListFolders(ctx context.Context, s Store, prefix string) iter.Seq2[Info, error] {
	if f, ok := s.(Folders); ok {
		return f.Folders(ctx, prefix)
	}
	return func(yield func(Info, error) bool) {
		last := ""
		for info, err := range s.List(ctx, prefix) {
			if err != nil {
				yield(Info{}, err)
				return
			}
			name, _, within := strings.Cut(strings.TrimPrefix(info.Key, prefix), "/")
			if name = prefix + name + "/"; !within || name == last {
				continue
			}
			if last = name; !yield(Info{Key: name}, nil) {
				return
			}
		}
	}
}

// lister is List of a store, or ListFolders.
type lister func(ctx context.Context, s Store, prefix string) iter.Seq2[Info, error]

func listObjects(ctx context.Context, s Store, prefix string) iter.Seq2[Info, error] {
	return s.List(ctx, prefix)
}
