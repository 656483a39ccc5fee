package trust

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"maps"
	"time"

	"github.com/theupdateframework/go-tuf/v2/metadata"

	"github.com/corpus-agent/corpus-agent/artifact/store"
	"github.com/corpus-agent/corpus-agent/state/diag"
)

// Rehearse makes a client of a host that has seen all that c has seen, for a publisher to learn what
// such a host will say of a store before anything is written. The host's clock is now, it checks all
// that hosts check, and it keeps what it sees in memory.
func (c *Client) Rehearse(s store.Store, now func() time.Time) (*Client, error) {
	h := &Client{store: s, seen: seen{held: maps.Clone(c.seen.held), memory: true}, now: now}
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
	key := RoleKey(metadata.ROOT, c.set.Root.Signed.Version)
	there, err := read(ctx, c.store, key, maxMetadata)
	switch {
	case errors.Is(err, store.ErrNotFound), errors.Is(err, store.ErrForbidden):
		return diag.WithHint(&Refused{Check: CheckPin, Of: key, Err: fmt.Errorf("%w: %w", ErrRootMissing, err)},
			"give the --store that these keys belong to; if this is it, and it has lost the file, `corpus refresh --rebuild` puts it back")
	case err != nil:
		return err
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
