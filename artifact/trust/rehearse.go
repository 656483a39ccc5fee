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

// Rehearse makes a client of a host that has seen all that c has seen, for a publisher to learn what
// such a host will say of a store before anything is written. The host's clock is now, it checks all
// that hosts check, and it keeps what it sees in memory.
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

// Belongs refuses a store that lies under another root than the one this client trusts. A publisher
// asks it before everything else: a root that is written after another store's roots is one that no
// host of that store accepts. A store that lacks the root is refused too, with ErrRootMissing.
func (c *Client) Belongs(ctx context.Context) error {
	key := RoleKey(tuf.RoleRoot, c.set.Root.Signed.Version)
	there, err := read(ctx, c.store, key, maxMetadata)
	switch {
	case errors.Is(err, store.ErrNotFound), errors.Is(err, store.ErrForbidden):
		return diag.WithHint(&Refused{Check: CheckPin, Of: key, Err: fmt.Errorf("%w: %w", ErrRootMissing, err)},
			"give the --store that these keys belong to; if this is it, and it has lost the file, `corpus refresh --rebuild` puts it back")
	case err != nil:
		return err
	}
	if err := isRoot(there); err != nil {
		return HintRebuild(&Refused{Check: CheckForm, Of: key, Err: fmt.Errorf("%w: what lies there is damaged: %w", ErrRootMissing, err)})
	}
	if kept := c.seen.held[rootFile]; !bytes.Equal(there, kept) {
		return diag.WithHint(&Refused{Check: CheckPin, Of: key, Err: fmt.Errorf("the store has root %s, and these keys belong to root %s", digestOf(there), digestOf(kept))},
			"give the --store that these keys belong to, or the --keys (and --trust-root) of this store; nothing was written")
	}
	return nil
}

// ErrRootMissing says that the store has no root of the version that a publisher trusts.
var ErrRootMissing = errors.New("the store has no such root")

// RootFile is the newest root that this client trusts, as it is signed.
func (c *Client) RootFile() []byte { return c.seen.held[rootFile] }

// Recall loads what this client has seen in force earlier, for Rehearse to check that hosts which have
// seen as much go on.
func (c *Client) Recall() error {
	for _, name := range []string{timestampFile, snapshotFile} {
		if _, err := c.seen.load(name); err != nil {
			return err
		}
	}
	return nil
}

// Kept is a targets role as this client has seen it in force, unverified; nil for none.
func (c *Client) Kept(name string) ([]byte, error) {
	project, _ := IsHead(name) // a head is kept under the project's name
	return c.seen.load(roleFile(project))
}

// PastRoots reads the roots of the store from the pinned one on, each verified by the one before. Where
// the store lacks one, those after it are not among them.
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
		if err != nil { // damaged, as good as missing
			set = nil
		}
		if set != nil {
			roots = append(roots, set.Root)
		}
	}
	return roots, nil
}
