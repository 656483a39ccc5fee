// Package blobs reads and writes the objects of a store that are not metadata: artifacts, their sidecar files, packs
// of chunks, and notes of drafts. Objects are named by their content, so they are not signed.
package blobs

import (
	"context"
	"errors"
	"fmt"
	"path"
	"regexp"
	"strings"
	"sync"

	"github.com/corpus-agent/corpus-agent/artifact/store"
)

// Listing has the objects of one project in a store, except metadata.
type Listing struct {
	Packs, Notes []store.Info
	Objects      []store.Info // artifacts and sidecars
}

// List lists the objects under a prefix. It leaves out objects whose names no publisher would choose.
func List(ctx context.Context, s store.Store, prefix string) (there Listing, err error) {
	for info, err := range s.List(ctx, prefix) {
		switch {
		case err != nil:
			return Listing{}, err
		case strings.HasSuffix(info.Key, ".pack") && inChunks(info.Key):
			there.Packs = append(there.Packs, info)
		case strings.HasSuffix(info.Key, noteSuffix) && inChunks(info.Key):
			there.Notes = append(there.Notes, info)
		case !inChunks(info.Key) && objectName().MatchString(path.Base(info.Key)):
			there.Objects = append(there.Objects, info)
		}
	}
	return there, nil
}

func inChunks(key string) bool { return path.Base(path.Dir(key)) == "chunks" }

// objectName matches the names of artifacts and sidecars: a digest, a dot, and a name.
var objectName = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^[0-9a-f]{64}\..`) })

// Missing returns those of keys that the store does not have. An object that the credentials may not read counts as
// present.
func Missing(ctx context.Context, s store.Store, keys []string) (missing []string, err error) {
	for _, key := range keys {
		body, _, err := store.GetRange(ctx, s, key, store.Range{Length: 1})
		switch {
		case err == nil:
			_ = body.Close() // only its presence matters
		case errors.Is(err, store.ErrNotFound):
			missing = append(missing, key)
		case !errors.Is(err, store.ErrForbidden):
			return nil, fmt.Errorf("looking for uploaded objects: %w", err)
		}
	}
	return missing, nil
}
