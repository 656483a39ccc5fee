package trust

import (
	"context"
	"encoding/json"
	"errors"
	"time"

	"github.com/corpus-agent/corpus-agent/artifact"
	"github.com/corpus-agent/corpus-agent/artifact/store"
)

// versionFile keeps the ETag of the store's timestamp, so that a refresh that finds nothing new makes a single request:
// for the timestamp, unless it still has that ETag.
const versionFile = "timestamp.version"

// keptVersion is the content of versionFile.
type keptVersion struct {
	ETag   string          `json:"etag"`   // of the store
	Digest artifact.Digest `json:"digest"` // of the timestamp that was kept
}

// settles is the minimum age of an object whose ETag identifies its content: web servers make ETags from times with a
// resolution of a second.
const settles = 2 * time.Second

// keepVersion keeps the version of the timestamp that was read.
func (c *Client) keepVersion(read *object) error {
	fresh := !read.info.Now.IsZero() && !read.info.Modified.IsZero() && read.info.Now.Sub(read.info.Modified) < settles
	if c.renew || read.info.ETag == "" || fresh {
		return nil
	}
	version := keptVersion{ETag: read.info.ETag, Digest: digestOf(read.data)}
	if c.version() == version {
		return nil
	}
	data, err := json.Marshal(version)
	if err != nil {
		return err
	}
	return c.seen.keep(versionFile, data)
}

// version returns the version that was kept; the zero value if it cannot be read, which only costs requests.
func (c *Client) version() (version keptVersion) {
	data, err := c.seen.load(versionFile)
	if err != nil || json.Unmarshal(data, &version) != nil {
		return keptVersion{}
	}
	return version
}

// askUnchanged fetches the timestamp from the store unless it is the one that was kept. If it is, the timestamp counts
// as the newest while it and the root are valid, and the client looks for no newer root: a publisher signs a timestamp
// after each root, and the client looks for a root again when the timestamp expires. Otherwise askUnchanged returns the
// timestamp of the store, or nil if there was no version to compare with.
func (c *Client) askUnchanged(ctx context.Context, s store.Store) (read *object, unchanged bool, err error) {
	if c.renew {
		return nil, false, nil
	}
	if holds, err := c.holdsTimestamp(); !holds {
		return nil, false, err
	}
	defer func() {
		if !unchanged && err == nil { // roots cannot be updated after a timestamp
			err = c.again()
		}
	}()
	read, err = readObject(ctx, s, TimestampKey, maxTimestamp, c.version().ETag)
	switch {
	case errors.Is(err, store.ErrUnchanged):
		if answer := new(store.Error); errors.As(err, &answer) {
			c.clock.store, c.clock.own = answer.Now, c.now()
		}
		return nil, true, nil
	case errors.Is(err, store.ErrNotFound), errors.Is(err, store.ErrForbidden):
		return nil, false, nil // fetched again after the roots, which may explain the error
	}
	return read, false, err
}

// holdsTimestamp loads the kept timestamp into the set, and reports whether it is valid and its version is known.
func (c *Client) holdsTimestamp() (bool, error) {
	version := c.version()
	if version.ETag == "" || expired(c.set.Root.Signed.Expires, c.set.RefTime) != nil {
		return false, nil
	}
	local, err := c.seen.load(timestampFile)
	if err != nil || local == nil || digestOf(local) != version.Digest {
		return false, nil // the ordinary way reports an error
	}
	if guardFile(local, func() error { return c.set.UpdateTimestamp(local) }) == nil && c.checkClock() == nil {
		return true, nil
	}
	return false, c.again()
}
