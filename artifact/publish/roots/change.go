// Package roots initializes a store, and changes its root and the keys of its roles.
package roots

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/corpus-agent/corpus-agent/artifact/publish"
	"github.com/corpus-agent/corpus-agent/artifact/trust"
	"github.com/corpus-agent/corpus-agent/artifact/tuf"
	"github.com/corpus-agent/corpus-agent/state/diag"
)

// Change describes the differences between the next root and the current one. The keys of its maps are roles: root,
// targets, snapshot, timestamp.
type Change struct {
	Add       map[string][]*tuf.Key
	Remove    map[string][]string // IDs of keys, or the beginning of them
	Threshold map[string]int
	Renew     bool // sign it again although nothing else changes
}

func (c Change) empty() bool {
	return !c.Renew && len(c.Add) == 0 && len(c.Remove) == 0 && len(c.Threshold) == 0
}

// Result is the result of replacing the root.
type Result struct {
	Version int64     `json:"version"`
	Expires time.Time `json:"expires"`
	// Unsigned are the roles that lack valid signatures under the new root. Hosts refuse the store until they are
	// signed.
	Unsigned []string `json:"unsigned"`
}

// Apply replaces the root, and signs the roles directly below it again if their keys have changed. It needs as many
// root keys as the previous and the new root require.
//
// Hosts accept the store at any moment: the roles below are signed by old and new keys before an old key is removed,
// which may need an intermediate root. If the available keys do not suffice for that, Apply writes nothing.
func Apply(ctx context.Context, p *publish.Publisher, c Change) (Result, error) {
	if c.empty() {
		return Result{}, publish.NewMistake(diag.Keys, "name the change; `corpus root change --help` shows how",
			"the root would stay unchanged")
	}
	var result Result
	placed := false
	err := p.Retry(ctx, func() error {
		n, err := Read(ctx, p)
		if err != nil {
			return err
		}
		before := n.Client.Trusted().Root
		if placed { // another publisher wrote a timestamp after the root was written
			c.Renew = false
		} else if c, err = c.resolved(before); err != nil {
			return err
		}
		final, err := c.apply(before)
		if err != nil {
			return err
		}
		final.Signed.Expires = p.Expires(p.Expiry.WithDefaults().Root)
		if p.Hand != nil {
			result = Result{Version: final.Signed.Version, Expires: final.Signed.Expires, Unsigned: []string{}}
			return p.MakeRootDraft(final, before.Signed.Version, trust.RootDelegation(before, tuf.RoleRoot),
				trust.RootDelegation(final, tuf.RoleRoot))
		}
		if !c.Renew && publish.SameRoles(before, final) {
			final = before
		}
		result, err = moveTo(ctx, n, before, final, c, &placed)
		return err
	})
	return result, err
}

// resolved returns the change with the full IDs of the keys to remove.
func (c Change) resolved(before *publish.RootRole) (Change, error) {
	remove := map[string][]string{}
	for role, list := range c.Remove {
		for _, id := range list {
			full, err := publish.FindKey(role, id, trust.RootDelegation(before, role))
			if err != nil {
				return c, err
			}
			remove[role] = append(remove[role], full)
		}
	}
	c.Remove = remove
	return c, nil
}

// apply makes the next root. The IDs of keys to remove are full; keys that were removed already are ignored.
func (c Change) apply(before *publish.RootRole) (*publish.RootRole, error) {
	data, err := before.ToBytes()
	if err != nil {
		return nil, err
	}
	root, err := trust.Decode[tuf.RootType](data)
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
			if !slices.Contains(root.Signed.Roles[role].KeyIDs, id) {
				continue
			}
			if err := root.Signed.RevokeKey(id, role); err != nil {
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
	return root, checkThresholds(root)
}

// checkThresholds returns an error for a root whose thresholds its keys cannot meet.
func checkThresholds(root *publish.RootRole) error {
	for _, role := range tuf.TopRoles() {
		may := trust.RootDelegation(root, role)
		if may.Threshold < 1 || may.Threshold > len(may.Keys) {
			return publish.NewMistake(diag.Keys, "add keys first, or change the threshold in the same step",
				"%s would have %s, and a threshold of %d", role, diag.Count(len(may.Keys), "key"), may.Threshold)
		}
	}
	return nil
}

// Read verifies the store as far as it is valid, since a root must be replaceable if the metadata below it is damaged.
func Read(ctx context.Context, p *publish.Publisher) (*publish.Next, error) {
	n, err := p.Read(ctx)
	var refused *trust.Refused
	if err == nil || !errors.As(err, &refused) || refused.Check == trust.CheckClock {
		return n, err
	}
	client, err := p.Open(ctx)
	if err != nil {
		return nil, err
	}
	if err := client.Roots(ctx); err != nil {
		return nil, err
	}
	etag, err := p.TimestampETag(ctx)
	if err != nil {
		return nil, err
	}
	return p.NextAfter(client, etag), client.Recall()
}
