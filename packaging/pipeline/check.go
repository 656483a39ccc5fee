package pipeline

import (
	"context"
	"os"
	"slices"

	"github.com/corpus-agent/corpus-agent/artifact/durable"
	"github.com/corpus-agent/corpus-agent/packaging/statement"
)

// Different builds the tree twice, in two places, and returns the names of the files that differ.
func Different(ctx context.Context, r Request) ([]string, error) {
	var listings [2]map[string]string
	for i := range listings {
		work, done, err := durable.Scratch()
		if err != nil {
			return nil, err
		}
		defer done()
		b := newBuild(r, work)
		b.unnamed = true
		if err := b.staged(ctx); err != nil {
			return nil, b.keepLog(err)
		}
		if listings[i], err = statement.Listing(ctx, os.DirFS(b.stage)); err != nil {
			return nil, err
		}
	}
	var names []string
	for name, digest := range listings[0] {
		if listings[1][name] != digest {
			names = append(names, name)
		}
		delete(listings[1], name)
	}
	for name := range listings[1] {
		names = append(names, name)
	}
	slices.Sort(names)
	return names, nil
}
