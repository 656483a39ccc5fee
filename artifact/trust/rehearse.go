package trust

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"maps"
	"time"

	"github.com/corpus-agent/corpus-agent/artifact/store"
	"github.com/corpus-agent/corpus-agent/artifact/tuf"
	"github.com/corpus-agent/corpus-agent/state/diag"
)

// Rehearse returns a client of a host that has seen everything that c has seen. With it, a publisher determines whether
// such a host would accept a store before anything is written. The client makes all checks of a host, with now as its
// clock, and keeps metadata only in memory.
func (c *Client) Rehearse(s store.Store, now func() time.Time) (*Client, error) {
	h := &Client{store: s, seen: seen{held: maps.Clone(c.seen.held), memory: true}, now: now}
	if ahead(h.seen.held[timestampFile], now()) { // hosts with the right time have refused it
		delete(h.seen.held, timestampFile)
	}
	var err error
	if h.set, err = newSet(h.seen.held[rootFile]); err != nil {
		return nil, refuse(rootFile, err)
	}
	h.set.RefTime = now().UTC()
	return h, nil
}

// Belongs returns an error for a store with another root than the trusted one. A publisher calls it first: no host of
// the other store would accept a root that is written on top of its roots. If the store lacks the root, the error is
// ErrRootMissing.
func (c *Client) Belongs(ctx context.Context) error {
	key := RoleKey(tuf.RoleRoot, c.set.Root.Signed.Version)
	there, err := read(ctx, c.store, key, maxMetadata)
	switch {
	case errors.Is(err, store.ErrNotFound), errors.Is(err, store.ErrForbidden):
		return diag.Root.Hint(&Refused{Check: CheckPin, Of: key, Err: fmt.Errorf("%w: %w", ErrRootMissing, err)},
			"give the --store that these keys belong to; if this is it, and it has lost the file, `corpus refresh --rebuild` "+
				"puts it back")
	case err != nil:
		return err
	}
	if err := isRoot(there); err != nil {
		return diag.Root.Hint(&Refused{Check: CheckForm, Of: key,
			Err: fmt.Errorf("%w: the file there is damaged: %w", ErrRootMissing, err)},
			"give the --store that these keys belong to: what this URL serves is not metadata; if it is the right store, "+
				"find out "+
				"who changed it, and `corpus refresh --rebuild` restores the file")
	}
	if kept := c.seen.held[rootFile]; !bytes.Equal(there, kept) {
		return diag.Root.Hint(&Refused{Check: CheckPin, Of: key,
			Err: fmt.Errorf("the store has root %s, and these keys belong to root %s", digestOf(there), digestOf(kept))},
			"give the --store that these keys belong to, or the --keys (and --trust-root) of this store; nothing was written")
	}
	return nil
}

// ErrRootMissing is the error for a store that has no root of the version that a publisher trusts.
var ErrRootMissing = errors.New("the store has no such root")

// RootFile returns the newest root that this client trusts, in its signed form.
func (c *Client) RootFile() []byte { return c.seen.held[rootFile] }

// Recall loads the timestamp and snapshot that this client has kept, so that Rehearse can check that hosts which have
// seen them accept the store.
func (c *Client) Recall() error {
	for _, name := range []string{timestampFile, snapshotFile} {
		if _, err := c.seen.load(name); err != nil {
			return err
		}
	}
	return nil
}

// Kept returns a targets role that this client keeps, unverified; nil if there is none.
func (c *Client) Kept(name string) ([]byte, error) {
	project, _ := IsHead(name) // a head is kept under the project's name
	return c.seen.load(roleFile(project))
}

// PastRoots reads the roots of the store from the pinned one on, each verified by the previous one. If the store lacks
// one, the roots after it are left out.
func (c *Client) PastRoots(ctx context.Context) ([]*tuf.Metadata[tuf.RootType], error) {
	pin, err := c.seen.load(pinFile)
	if err != nil {
		return nil, err
	}
	var set *tuf.Set
	var roots []*tuf.Metadata[tuf.RootType]
	for version := int64(1); version <= c.set.Root.Signed.Version; version++ {
		data, err := read(ctx, c.store, RoleKey(tuf.RoleRoot, version), maxMetadata)
		if errors.Is(err, store.ErrNotFound) || errors.Is(err, store.ErrForbidden) {
			set = nil
			continue
		}
		if err != nil {
			return nil, err
		}
		switch {
		case string(digestOf(data)) == string(pin):
			set, err = newSet(data)
		case set != nil:
			err = guardFile(data, func() error { err := set.UpdateRoot(data); return err })
		}
		if err != nil { // a damaged root is treated as missing
			set = nil
		}
		if set != nil {
			roots = append(roots, set.Root)
		}
	}
	return roots, nil
}
