package wire

import (
	"errors"
	"strings"

	"github.com/corpus-agent/corpus-agent/artifact/store"
)

// UploadMarker is where a page of unfinished uploads ends; the zero value is before the first.
type UploadMarker struct{ Key, ID string }

// UploadPage is a page of unfinished uploads. Its keys are those in the bucket.
type UploadPage struct {
	Uploads []store.Unfinished
	Next    UploadMarker // where the next page begins
	More    bool         // there is a next page
}

// UploadPages requests a page of the uploads in the bucket whose keys begin with a prefix.
type UploadPages func(prefix string, after UploadMarker) (UploadPage, error)

// Unfinished lists the unfinished uploads below a prefix of a store, which has the prefix own in its bucket. MinIO
// treats the prefix as the name of one object, and lists all uploads of the bucket only without a prefix. So if nothing
// is found, the whole bucket is listed; credentials that may not do that see nothing.
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

// allUploads reads all pages of a listing. If the server's marker does not advance, it would send the same page
// forever, so that page is the last.
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

// Aborted returns the result of aborting an upload: it is not an error if the upload does not exist. err is the
// client's error, and explained converts it.
func (c *Call) Aborted(err error, explained func() error) error {
	if err == nil {
		return nil
	}
	return c.Gone(explained())
}
