package trust

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"reflect"

	"github.com/corpus-agent/corpus-agent/artifact/store"
	"github.com/corpus-agent/corpus-agent/artifact/tuf"
	"github.com/corpus-agent/corpus-agent/state/diag"
)

// Refresh updates root, timestamp, snapshot and targets. It may be called once.
func (c *Client) Refresh(ctx context.Context) error {
	if c.renew {
		unlock, err := c.seen.lock(ctx)
		if err != nil {
			return err
		}
		defer unlock()
	}
	if err := errors.Join(c.newest(ctx), c.settle()); err != nil {
		return c.unlessForeign(ctx, err)
	}
	if err := c.refreshSnapshot(ctx); err != nil {
		return err
	}
	_, err := c.role(ctx, targetsRole, tuf.RoleRoot)
	return err
}

// newest updates roots and timestamp from the first store whose files verify, and prefers that store from then on.
func (c *Client) newest(ctx context.Context) error {
	var all error
	for i, s := range store.Each(c.store) {
		if i > 0 {
			if err := c.again(); err != nil {
				return then(all, err)
			}
		}
		err := c.newestOf(ctx, s)
		if err == nil {
			store.Prefer(c.store, i)
			return nil
		}
		if all = then(all, err); ctx.Err() != nil || refusedClock(err) {
			break
		}
	}
	return all
}

// again discards the metadata from a store whose files did not verify. Metadata that was verified and kept remains.
func (c *Client) again() error {
	root, err := c.seen.load(rootFile)
	if err != nil {
		return err
	}
	at := c.set.RefTime
	if c.set, err = newSet(root); err != nil {
		return refuse(rootFile, err)
	}
	c.set.RefTime = at
	return nil
}

// refusedClock reports whether this machine's clock is at fault, which trying other stores cannot fix.
func refusedClock(err error) bool {
	var refused *Refused
	return errors.As(err, &refused) && refused.Check == CheckClock
}

func (c *Client) newestOf(ctx context.Context, s store.Store) error {
	read, unchanged, err := c.askUnchanged(ctx, s)
	if unchanged || err != nil {
		return err
	}
	known := c.set.Root.Signed.Version
	probe, err := c.followRoots(ctx, s)
	if err != nil {
		return err
	}
	if c.set.Root.Signed.Version != known { // the timestamp may have been signed since, with a key of the new root
		read = nil
	}
	if err := expired(c.set.Root.Signed.Expires, c.set.RefTime); err != nil {
		return &Refused{Check: CheckExpiry, Of: rootFile, Err: err}
	}
	err = c.refreshTimestamp(ctx, s, read)
	if errors.Is(err, store.ErrForbidden) && probe != nil {
		return probe
	}
	return err
}

// followRoots updates to every newer root. S3 answers 403 for an absent object if the host may not list the bucket, so
// a forbidden root counts as absent; that error is returned as probe, and is reported if the timestamp is forbidden
// too.
func (c *Client) followRoots(ctx context.Context, s store.Store) (probe, err error) {
	for range maxRotations {
		next := c.set.Root.Signed.Version + 1
		key := RoleKey(tuf.RoleRoot, next)
		data, err := read(ctx, s, key, maxMetadata)
		switch {
		case errors.Is(err, store.ErrNotFound):
			return nil, nil
		case errors.Is(err, store.ErrForbidden):
			return err, nil
		case err != nil:
			return nil, err
		}
		before := c.set.Root
		if err := guardFile(data, func() error { return c.set.UpdateRoot(data) }); err != nil {
			return nil, HintRebuild(refuseFile(key, data, RootDelegation(before, tuf.RoleRoot), err))
		}
		// Forget metadata before keeping the root that revokes its keys: an interrupted run then does both again.
		if lostKeys(before, c.set.Root) {
			if err := c.seen.forget(timestampFile, snapshotFile); err != nil {
				return nil, err
			}
		}
		if c.renew {
			if err := c.seen.keepRoot(next, data); err != nil {
				return nil, err
			}
		}
		if err := c.seen.keep(rootFile, data); err != nil {
			return nil, err
		}
	}
	return nil, &Refused{Check: CheckVersion, Of: rootFile,
		Err: fmt.Errorf("more than %d new roots at once", maxRotations)}
}

// refreshTimestamp updates the timestamp to the one in the store, which is read unless it has been read already.
func (c *Client) refreshTimestamp(ctx context.Context, s store.Store, have *object) error {
	local, err := c.seen.load(timestampFile)
	if err != nil {
		return err
	}
	if local != nil {
		// Load it even if it has expired since, to notice a store that went back in time.
		_ = guardFile(local, func() error { return c.set.UpdateTimestamp(local) })
		if err := c.checkClock(); err != nil {
			return err
		}
	}
	if have == nil {
		have, err = readObject(ctx, s, TimestampKey, maxTimestamp, "")
	}
	if errors.Is(err, store.ErrNotFound) && SetUp(ctx, s) {
		err = LostTimestamp(err)
	}
	if err != nil {
		return err
	}
	c.clock.store, c.clock.own = have.info.Now, c.now()
	data := have.data
	err = guardFile(data, func() error { return c.set.UpdateTimestamp(data) })
	if as[*tuf.SameVersionError](err) {
		if err := c.sameTimestamp(local, data); err != nil {
			return err
		}
		err = expired(c.set.Timestamp.Signed.Expires, c.set.RefTime)
		if err == nil {
			return c.keepVersion(have)
		}
	}
	if err != nil {
		return HintRebuild(refuseFile(timestampFile, data, RootDelegation(c.set.Root, tuf.RoleTimestamp), err))
	}
	if err := c.checkClock(); err != nil {
		return err
	}
	return errors.Join(c.seen.keep(timestampFile, data), c.keepVersion(have))
}

// sameTimestamp returns an error for a timestamp that has the version of the one seen before and names another
// snapshot. Publishers use each version once, so the store was restored from an older copy and then published to.
func (c *Client) sameTimestamp(seen, data []byte) error {
	there, err := Decode[tuf.TimestampType](data)
	if err != nil {
		return refuse(timestampFile, err)
	}
	snapshot := there.Signed.Meta[MetaName(tuf.RoleSnapshot)]
	before := c.set.Timestamp.Signed.Meta[MetaName(tuf.RoleSnapshot)]
	if bytes.Equal(seen, data) || snapshot != nil && snapshot.Version >= before.Version &&
		reflect.DeepEqual(snapshot.Hashes, before.Hashes) {
		return nil
	}
	return refuseOther(timestampFile, there.Signed.Version)
}

// refuseOther returns the error for a file that has the version of one seen before and different content.
func refuseOther(of string, version int64) error {
	return diag.Metadata.Hint(&Refused{Check: CheckVersion, Of: of,
		Err: fmt.Errorf("it says something else than the version %d that was seen before", version)},
		"the store was restored from an older copy: restore the newest metadata; "+onCopy+"; otherwise "+byPublisher)
}

func (c *Client) refreshSnapshot(ctx context.Context) error {
	local, err := c.seen.load(snapshotFile)
	if err != nil {
		return err
	}
	meta := c.set.Timestamp.Signed.Meta[MetaName(tuf.RoleSnapshot)]
	// The library trusts a local snapshot with the right version as the current one. It is only current if its bytes
	// match the timestamp too; otherwise it only serves as a lower bound.
	if local != nil && guardFile(local, func() error { return c.set.UpdateSnapshot(local, true) }) == nil &&
		meta.VerifyLengthHashes(local) == nil {
		return nil
	}
	return c.eachStore(ctx, RoleKey(tuf.RoleSnapshot, meta.Version), c.limit(meta), func(data []byte) error {
		if err := guardFile(data, func() error { return c.set.UpdateSnapshot(data, false) }); err != nil {
			return refuseFile(snapshotFile, data, RootDelegation(c.set.Root, tuf.RoleSnapshot), err)
		}
		return c.seen.keep(snapshotFile, data)
	})
}
