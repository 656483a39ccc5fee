package trust

import (
	"context"
	"errors"
	"fmt"
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

	// ClockTolerance is the maximum time by which a publisher's clock may be ahead of a host's.
	ClockTolerance = time.Hour
)

// Client follows one store from a pinned root. Only Fetch is safe for concurrent use, and methods that say so.
type Client struct {
	store store.Store
	seen  seen
	now   func() time.Time
	renew bool   // accept expired metadata, to sign it again
	given []byte // root to pin after it has verified the store; nil if a root is pinned
	knew  bool   // the host had read the store before this client was opened
	set   *tuf.Set
	known map[string]map[string]*tuf.TargetFiles // by project: signed targets that are not in the head
	clock struct{ store, own time.Time }         // times of both when the store sent its timestamp
}

// Open returns a client of a host that keeps the metadata that it has seen in dir, where a root is pinned. now is the
// host's clock; nil means time.Now.
func Open(s store.Store, dir string, now func() time.Time) (*Client, error) {
	return OpenChecked(s, dir, now, nil)
}

// OpenChecked is like Open with a root that Damaged has verified. If the root on the disk has changed, it is verified
// again.
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
		return nil, diag.Root.Hint(errors.New("this host has no root of trust"),
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
	if s == nil { // see Recall
		return c, nil
	}
	return c, c.keepPinnedRoot()
}

// Trusted returns the metadata that has been verified so far. A publisher makes the next version from it.
func (c *Client) Trusted() *tuf.Set { return c.set }

// FirstRoot fetches the store's first root and compares its digest with the expected one.
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

// Roots reads the store up to its newest root and no further, for a publisher that is about to replace the root.
// Refresh starts the same way.
func (c *Client) Roots(ctx context.Context) error {
	_, err := c.followRoots(ctx, c.store)
	return err
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
