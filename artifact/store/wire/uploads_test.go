package wire_test

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/corpus-agent/corpus-agent/artifact/store"
	"github.com/corpus-agent/corpus-agent/artifact/store/wire"
)

// listing has the responses of a server by prefix and marker.
type listing map[string]wire.UploadPage

func (l listing) ask(prefix string, after wire.UploadMarker) (wire.UploadPage, error) {
	page, ok := l[prefix+"|"+after.Key]
	if !ok {
		return page, fmt.Errorf("no page %s|%s: %w", prefix, after.Key, store.ErrForbidden)
	}
	return page, nil
}

func uploads(keys ...string) (all []store.Unfinished) {
	for _, key := range keys {
		all = append(all, store.Unfinished{Key: key, ID: "id"})
	}
	return all
}

// TestUnfinishedUploadsOfAStore uses servers that page, that do not advance, that only list a whole bucket, and that
// fail.
func TestUnfinishedUploadsOfAStore(t *testing.T) {
	for name, c := range map[string]struct {
		server listing
		want   string
		err    error
	}{
		"two pages": {listing{
			"team/deploy/|": {Uploads: uploads("team/deploy/a"),
				Next: wire.UploadMarker{Key: "team/deploy/a"}, More: true},
			"team/deploy/|team/deploy/a": {Uploads: uploads("team/deploy/b")},
		}, "deploy/a deploy/b", nil},
		"a constant marker": {listing{"team/deploy/|": {Uploads: uploads("team/deploy/a"), More: true}}, "deploy/a",
			nil},
		"a page that fails": {listing{
			"team/deploy/|": {Uploads: uploads("team/deploy/a"), Next: wire.UploadMarker{Key: "gone"}, More: true},
		}, "", store.ErrForbidden},
		"only the whole bucket is listed": {listing{
			"team/deploy/|": {}, "|": {Uploads: uploads("deploy/x", "other/deploy/x", "team/deploy/a",
				"team/metadata/x", "teams/deploy/x")},
		}, "deploy/a", nil},
		"the whole bucket may not be listed": {listing{"team/deploy/|": {}}, "", nil},
	} {
		t.Run(name, func(t *testing.T) {
			all, err := wire.Unfinished("team/", "deploy/", c.server.ask)
			var keys []string
			for _, u := range all {
				keys = append(keys, u.Key)
			}
			if !slices.Equal(keys, strings.Fields(c.want)) || !errors.Is(err, c.err) {
				t.Errorf("listed %q, %v; want %q, %v", keys, err, c.want, c.err)
			}
		})
	}
}
