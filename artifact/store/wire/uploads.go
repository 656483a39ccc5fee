package wire

import (
	"errors"
	"strings"

	"github.com/corpus-agent/corpus-agent/artifact/store"
)

// UploadMarker is where a page of a listing of unfinished uploads ends; the zero one is before the first.
type UploadMarker struct{ Key, ID string }

// UploadPage is one answer to a listing of unfinished uploads. Keys are those in the bucket.
type UploadPage struct {
	Uploads []store.Unfinished
	Next    UploadMarker // where the next page begins
	More    bool         // there is one
}

// UploadPages asks a server for a page of the uploads of all objects in the bucket whose keys begin so.
type UploadPages func(prefix string, after UploadMarker) (UploadPage, error)

// Unfinished lists the unfinished uploads of a store that has the prefix own in its bucket, of objects below a prefix of its
// own. MinIO takes the prefix for the name of one object, and lists all that it remembers for the bucket only without
// one. So where there is nothing, the whole bucket is listed; credentials that may not do that see nothing.
func Unfinished(own, prefix string, ask UploadPages) ([]store.Unfinished, error) {
	all, err := allUploads(own+prefix, ask)
	if err == nil && len(all) == 0 && own+prefix != "" {
		if all, err = allUploads("", ask); errors.Is(err, store.ErrForbidden) {
			return nil, nil
		}
	}
	var found []store.Unfinished
	for _, u := range all {
		if key, mine := strings.CutPrefix(u.Key, own); mine && strings.HasPrefix(key, prefix) {
			u.Key = key
			found = append(found, u)
		}
	}
	return found, err
}

// allUploads reads a listing page by page. A server whose marker does not move would answer the same page for ever, so
// that page is the last.
func allUploads(prefix string, ask UploadPages) ([]store.Unfinished, error) {
	var all []store.Unfinished
	for after := (UploadMarker{}); ; {
		p, err := ask(prefix, after)
		if err != nil {
			return nil, err
		}
		all = append(all, p.Uploads...)
		if !p.More || p.Next == after {
			return all, nil
		}
		after = p.Next
	}
}

// Aborted is the result of aborting an upload: one that is gone is no error. err is the client's, and explained what it
// means.
func (c *Call) Aborted(err error, explained func() error) error {
	if err == nil {
		return nil
	}
	return c.Gone(explained())
}
