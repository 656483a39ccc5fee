package publish

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/theupdateframework/go-tuf/v2/metadata"

	"github.com/corpus-agent/corpus-agent/artifact/publish/keyring"
	"github.com/corpus-agent/corpus-agent/artifact/store"
	"github.com/corpus-agent/corpus-agent/artifact/trust"
	"github.com/corpus-agent/corpus-agent/state/diag"
)

// RootChange says how the next root differs from this one. Its maps are by role: root, targets,
// snapshot, timestamp.
type RootChange struct {
	Add       map[string][]*metadata.Key
	Remove    map[string][]string // IDs of keys, or the beginning of them
	Threshold map[string]int
	Renew     bool // sign it anew although nothing else changes
}

func (c RootChange) empty() bool {
	return !c.Renew && len(c.Add) == 0 && len(c.Remove) == 0 && len(c.Threshold) == 0
}

// RootResult says what replacing the root did.
type RootResult struct {
	Version int64     `json:"version"`
	Expires time.Time `json:"expires"`
	// Unsigned are the roles that nobody who may has signed yet under the new root. Hosts refuse the
	// store until they are signed.
	Unsigned []string `json:"unsigned"`
}

// ChangeRoot replaces the root, and signs anew what lies directly below it where its keys changed.
// It takes as many root keys as the root of before wants, and as the new one does.
func (p *Publisher) ChangeRoot(ctx context.Context, c RootChange) (RootResult, error) {
	if c.empty() {
		return RootResult{}, mistake("say what to change; `corpus root change --help` shows how", "the root would stay as it is")
	}
	n, err := p.readRoot(ctx)
	if err != nil {
		return RootResult{}, err
	}
	before := n.client.Trusted().Root
	root, err := c.apply(before)
	if err != nil {
		return RootResult{}, err
	}
	root.Signed.Expires = p.expires(p.Expiry.withDefaults().Root)
	needs := []trust.Delegation{trust.RootDelegation(before, metadata.ROOT), trust.RootDelegation(root, metadata.ROOT)}
	if p.Hand != nil {
		return RootResult{Version: root.Signed.Version, Expires: root.Signed.Expires, Unsigned: []string{}}, p.handRoot(root, before.Signed.Version, needs...)
	}
	var keys []keyring.Key
	for _, may := range needs {
		some, err := p.keysFor(metadata.ROOT, may)
		if err != nil {
			return RootResult{}, err
		}
		keys = append(keys, some...)
	}
	data, err := sign(root, keys)
	if err != nil {
		return RootResult{}, fmt.Errorf("signing root: %w", err)
	}
	return n.putRoot(ctx, root, data)
}

// apply makes the next root.
func (c RootChange) apply(before *rootRole) (*rootRole, error) {
	data, err := before.ToBytes(false)
	if err != nil {
		return nil, err
	}
	root, err := metadata.Root().FromBytes(data)
	if err != nil {
		return nil, err
	}
	root.Signed.Version++
	for _, role := range slices.Sorted(maps.Keys(c.Add)) {
		for _, key := range c.Add[role] {
			if err := root.Signed.AddKey(key, role); err != nil {
				return nil, fmt.Errorf("adding a key of %s: %w", role, err)
			}
		}
	}
	for _, role := range slices.Sorted(maps.Keys(c.Remove)) {
		for _, id := range c.Remove[role] {
			full, err := findKey(role, id, trust.RootDelegation(root, role))
			if err != nil {
				return nil, err
			}
			if err := root.Signed.RevokeKey(full, role); err != nil {
				return nil, fmt.Errorf("removing a key of %s: %w", role, err)
			}
		}
	}
	for role, threshold := range c.Threshold {
		if root.Signed.Roles[role] == nil {
			return nil, fmt.Errorf("root has no role %q", role)
		}
		root.Signed.Roles[role].Threshold = threshold
	}
	return root, sound(root)
}

// sound refuses a root that nobody could sign for.
func sound(root *rootRole) error {
	for _, role := range metadata.TOP_LEVEL_ROLE_NAMES {
		may := trust.RootDelegation(root, role)
		if may.Threshold < 1 || may.Threshold > len(may.Keys) {
			return mistake("add keys first, or change the threshold in the same step", "%s would have %d keys, and a threshold of %d", role, len(may.Keys), may.Threshold)
		}
	}
	return nil
}

// readRoot verifies the store as far as it can be: a root has to be replaceable just when what lies
// below it was spoiled.
func (p *Publisher) readRoot(ctx context.Context) (*next, error) {
	n, err := p.read(ctx)
	var refused *trust.Refused
	if err == nil || !errors.As(err, &refused) || refused.Check == trust.CheckClock {
		return n, err
	}
	client, err := trust.OpenToRenew(p.Store, p.Seen)
	if err != nil {
		return nil, err
	}
	if err := client.Roots(ctx); err != nil {
		return nil, err
	}
	return p.onto(client, ""), nil
}

// putRoot writes the next root and then signs what it changed the keys of.
func (n *next) putRoot(ctx context.Context, root *rootRole, data []byte) (RootResult, error) {
	key := trust.RoleKey(metadata.ROOT, root.Signed.Version)
	_, err := n.publisher.Store.Put(ctx, key, bytes.NewReader(data), int64(len(data)), store.Condition{IfAbsent: true})
	if errors.Is(err, store.ErrPrecondition) {
		return RootResult{}, stale(metadata.ROOT, "root %d is there already", root.Signed.Version)
	}
	if err != nil {
		return RootResult{}, err
	}
	before := n.client.Trusted().Root
	n.client.Trusted().Root = root
	left, err := n.settle(ctx, before)
	return RootResult{Version: root.Signed.Version, Expires: root.Signed.Expires, Unsigned: left}, err
}

// settle signs anew what lies below a new root where it has other keys now, as far as the keys at
// hand suffice, and tells what is left.
func (n *next) settle(ctx context.Context, before *rootRole) (left []string, err error) {
	set := n.client.Trusted()
	left = []string{}
	if set.Targets[metadata.TARGETS] == nil { // it could not be read
		return []string{metadata.TARGETS, metadata.SNAPSHOT, metadata.TIMESTAMP}, nil
	}
	changed := func(role string) bool {
		was, is := trust.RootDelegation(before, role), trust.RootDelegation(set.Root, role)
		return !slices.Equal(was.Keys, is.Keys) || was.Threshold != is.Threshold
	}
	if changed(metadata.TARGETS) {
		if _, err := n.publisher.keysFor(metadata.TARGETS, n.client.Delegation(metadata.TARGETS)); err == nil {
			n.targets()
		} else if set.Root.VerifyDelegate(metadata.TARGETS, set.Targets[metadata.TARGETS]) != nil {
			left = append(left, metadata.TARGETS)
		}
	}
	if len(n.roles) == 0 && !changed(metadata.SNAPSHOT) && !changed(metadata.TIMESTAMP) {
		return left, nil
	}
	err = n.commit(ctx)
	var short *Short
	if errors.As(err, &short) {
		if set.Root.VerifyDelegate(metadata.SNAPSHOT, set.Snapshot) != nil {
			left = append(left, metadata.SNAPSHOT)
		}
		if set.Root.VerifyDelegate(metadata.TIMESTAMP, set.Timestamp) != nil {
			left = append(left, metadata.TIMESTAMP)
		}
		return left, nil
	}
	if err != nil {
		err = diag.WithHint(fmt.Errorf("root %d is in place, and what lies below it was not signed anew: %w", set.Root.Signed.Version, err), "run `corpus refresh --rebuild`")
	}
	return left, err
}
