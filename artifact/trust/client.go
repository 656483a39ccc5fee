package trust

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"reflect"
	"time"

	"github.com/corpus-agent/corpus-agent/artifact"
	"github.com/corpus-agent/corpus-agent/artifact/store"
	"github.com/corpus-agent/corpus-agent/artifact/tuf"
	"github.com/corpus-agent/corpus-agent/state/diag"
)

const (
	targetsRole = tuf.RoleTargets

	// maxRotations limits how many roots a host follows in one refresh. Each is signed by the threshold of the one
	// before and kept once it is verified, so only the root's own keys can make many, and an interrupted run continues
	// where it stopped.
	maxRotations = 100_000
	maxMetadata  = 8 << 20   // bytes of a metadata file, unless a smaller length is signed
	maxRepair    = 128 << 20 // the same for a publisher, which must read files that were written too large
	maxTimestamp = 64 << 10

	// ClockTolerance is how far a publisher's clock may be ahead of a host's.
	ClockTolerance = time.Hour
)

// Client follows one store from a pinned root. Only Fetch is safe for concurrent use, and methods that say so.
type Client struct {
	store store.Store
	seen  seen
	now   func() time.Time
	renew bool   // accept expired metadata, to sign it again
	given []byte // root that is pinned once it has verified the store; nil if a root is pinned
	knew  bool   // the host had followed the store before this client was opened
	set   *tuf.Set
	known map[string]map[string]*tuf.TargetFiles // by project: signed targets that are not in the head
	clock struct{ store, own time.Time }         // the store's and the own when the store gave its timestamp
}

// Open returns a client of a host that keeps the metadata it has seen in dir, where a root is pinned.
// now is the host's clock; nil means time.Now.
func Open(s store.Store, dir string, now func() time.Time) (*Client, error) {
	return OpenChecked(s, dir, now, nil)
}

// OpenChecked is Open with a root that Damaged has verified. If the root on the disk has changed, it is verified again.
func OpenChecked(s store.Store, dir string, now func() time.Time, checked *CheckedRoot) (*Client, error) {
	if now == nil {
		now = time.Now
	}
	knew, err := Remembers(dir)
	if err != nil {
		return nil, err
	}
	c := &Client{store: s, seen: seen{dir: dir, held: map[string][]byte{}}, now: now, knew: knew}
	root, err := c.seen.load(rootFile)
	if err != nil {
		return nil, fmt.Errorf("reading the root of trust: %w", err)
	}
	if root == nil {
		return nil, diag.WithHint(errors.New("this host has no root of trust"),
			"give --trust-root once: the keys/root.json of `corpus store init`, or sha256:HEX of it")
	}
	if _, err := c.seen.load(pinFile); err != nil { // for PutBack
		return nil, fmt.Errorf("reading which root this host trusts: %w", err)
	}
	if c.set = checked.take(root); c.set == nil {
		if c.set, err = newSet(root); err != nil {
			return nil, refuse(rootFile, err)
		}
	}
	c.set.RefTime = now().UTC()
	return c, nil
}

// OpenToRenew returns a client of a publisher, which must read expired metadata to sign it again.
// Everything but expiry is checked as on a host.
func OpenToRenew(s store.Store, dir string) (*Client, error) {
	c, err := Open(s, dir, nil)
	if err != nil {
		return nil, err
	}
	c.renew = true
	c.set.RefTime = time.Time{}
	if s == nil { // a host that recalls what it has seen, see Recall
		return c, nil
	}
	return c, c.keepPinnedRoot()
}

// Trusted returns the metadata that has been verified so far. A publisher makes the next version from it.
func (c *Client) Trusted() *tuf.Set { return c.set }

// FirstRoot fetches the store's first root and compares it with the digest that a person gave.
func FirstRoot(ctx context.Context, s store.Store, want artifact.Digest) ([]byte, error) {
	key := RoleKey(tuf.RoleRoot, 1)
	root, err := read(ctx, s, key, maxMetadata)
	if err != nil {
		return nil, fmt.Errorf("fetching the first root: %w", err)
	}
	if got := digestOf(root); got != want {
		return nil, &Refused{Check: CheckPin, Of: key, Err: fmt.Errorf("its digest is %s, not %s", got, want)}
	}
	return root, nil
}

// Roots follows the store to its newest root and no further, for a publisher that is about to replace
// it. Refresh starts the same way.
func (c *Client) Roots(ctx context.Context) error {
	_, err := c.followRoots(ctx, c.store)
	return err
}

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

// sameTimestamp refuses a timestamp that has the version of the one seen before and names another snapshot. Publishers
// use each version once, so the store was restored from an older copy and then published to.
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

// refuseOther refuses a file that has the version of one seen before and different content.
func refuseOther(of string, version int64) error {
	return diag.WithHint(&Refused{Check: CheckVersion, Of: of,
		Err: fmt.Errorf("it says something else than the version %d that was seen before", version)},
		"the store was restored from an older copy: restore the newest metadata, or run `corpus refresh --rebuild` with the "+
			"--keys directory that published last, which puts back what it kept")
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

// role returns a targets role, verified under its current delegator, from the kept files or from the store.
func (c *Client) role(ctx context.Context, name, delegator string) (*Role, error) {
	if role, ok := c.set.Targets[name]; ok {
		return role, nil
	}
	meta := c.set.Snapshot.Signed.Meta[MetaName(name)]
	if meta == nil {
		return nil, absent(ErrNoProject, name)
	}
	local, err := c.seen.load(roleFile(name))
	if err != nil {
		return nil, err
	}
	update := func(data []byte) error {
		return guardFile(data, func() error { return c.set.UpdateDelegatedTargets(data, name, delegator) })
	}
	if local != nil && update(local) == nil {
		return c.set.Targets[name], nil
	}
	err = c.eachStore(ctx, RoleKey(name, meta.Version), c.limit(meta), func(data []byte) error {
		if err := update(data); err != nil {
			return refuseFile(MetaName(name), data, c.Delegation(name), err)
		}
		return c.seen.keep(roleFile(name), data)
	})
	if err != nil {
		return nil, err
	}
	return c.set.Targets[name], nil
}

// Project returns a project's role as its key signed it. It is the head if the project has one, with the channels'
// targets and the digests of the pages that hold the other versions.
func (c *Client) Project(ctx context.Context, project string) (*Role, error) {
	if err := CheckProject(project); err != nil {
		return nil, err
	}
	if !c.delegated(project) {
		return nil, absentAmong(ErrNoProject, project, project, c.Projects())
	}
	if over, err := c.Over(project); err != nil {
		return nil, err
	} else if over {
		return nil, absent(ErrNoProject, project)
	}
	if role, ok := c.set.Targets[project]; ok {
		return role, nil
	}
	if head := c.head(project); head != nil {
		return c.loadHead(ctx, project, head)
	}
	return c.role(ctx, project, targetsRole)
}

// Projects lists the projects that targets delegates, in the order of targets.
func (c *Client) Projects() []string {
	var names []string
	for _, d := range c.delegations() {
		if d.Name != AttestationRole {
			names = append(names, d.Name)
		}
	}
	return names
}

func (c *Client) delegations() []tuf.DelegatedRole {
	targets := c.set.Targets[targetsRole]
	if targets == nil || targets.Signed.Delegations == nil {
		return nil
	}
	return targets.Signed.Delegations.Roles
}

// delegated reports whether targets delegates the project's own path to a role of this name.
func (c *Client) delegated(project string) bool {
	for _, d := range c.delegations() {
		if d.Name == project {
			return d.Matches(TargetPath(project, "0", artifact.TarZst))
		}
	}
	return false
}
