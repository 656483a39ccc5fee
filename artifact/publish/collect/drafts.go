package collect

import (
	"context"
	"errors"
	"maps"
	"time"

	"github.com/corpus-agent/corpus-agent/artifact/publish"
	"github.com/corpus-agent/corpus-agent/artifact/publish/blobs"
	"github.com/corpus-agent/corpus-agent/artifact/store"
)

// pending returns the keys of the objects that unsigned drafts name, and removes the notes of drafts that are signed or
// older than the grace period.
func pending(ctx context.Context, p *publish.Publisher, project string, there blobs.Listing, used map[string]bool,
	grace time.Duration, dry bool) (map[string]bool, error) {
	named := map[string]bool{}
	for _, info := range there.Notes {
		n, err := blobs.ReadNote(ctx, p.Store, info.Key)
		if errors.Is(err, store.ErrNotFound) {
			continue // another collection removed it
		}
		if err != nil {
			return nil, err
		}
		keys := n.Keys(project, there.Objects)
		maps.DeleteFunc(keys, func(key string, _ bool) bool { return used[key] })
		done := !info.Modified.IsZero() && p.Time().Sub(info.Modified) >= grace
		if !done && len(keys) > 0 {
			maps.Copy(named, keys)
		} else if !dry {
			if err := p.Store.Delete(ctx, info.Key); err != nil {
				return nil, err
			}
		}
	}
	return named, nil
}
