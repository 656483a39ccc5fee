package publish

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/corpus-agent/corpus-agent/artifact/store"
	"github.com/corpus-agent/corpus-agent/artifact/trust"
	"github.com/corpus-agent/corpus-agent/artifact/tuf"
	"github.com/corpus-agent/corpus-agent/state/diag"
)

// AddProject lets keys sign a project: deploy/NAME/* and nothing else. Keys of a project that is
// there are added to those it has. threshold is how many of its keys have to sign; 0 leaves it, and
// is 1 for a project that is new. It takes the targets key.
func (p *Publisher) AddProject(ctx context.Context, name string, threshold int, keys ...*tuf.Key) error {
	if err := trust.CheckDelegated(name); err != nil {
		return err
	}
	return p.Change(ctx, func(n *Next) error {
		again := !n.delegates(name)
		role, unpublished, err := n.standing(ctx, name)
		if err != nil {
			return err
		}
		before := n.Client.Delegation(name).Threshold
		if err := n.delegate(name, keys); err != nil {
			return err
		}
		if err := n.ownKeys(); err != nil {
			return err
		}
		if err := n.setThreshold(name, threshold); err != nil || threshold <= before && !again {
			return err
		}
		if again {
			return n.comeBack(ctx, name)
		}
		n.advice = revokeSteps(name)
		signed, err := n.keepSigned(name, role)
		if err == nil && !signed && !unpublished && !p.AtOnce {
			err = mistake(fmt.Sprintf("add the keys, let %d of them sign what is there (`corpus export %s`, `corpus sign`, `corpus import`), then raise the threshold", threshold, name),
				"hosts would refuse %s, which fewer than %d of its keys have signed", name, threshold)
		}
		return err
	})
}

// Revoked says what revoking a key left.
type Revoked struct {
	Keys   []string `json:"keys"`   // IDs that may no longer sign
	Signed bool     `json:"signed"` // the project is signed by keys that still may
	// Refused are channels, project/channel, whose proofs only these keys have signed.
	Refused []string `json:"refused,omitempty"`
}

// Revoke takes keys, named by their IDs or the beginning of them, away from a project. What only
// they have signed is signed anew in the same step if the keys at hand suffice; otherwise hosts
// refuse the project until somebody does. It takes the targets key.
func (p *Publisher) Revoke(ctx context.Context, name string, ids ...string) (Revoked, error) {
	var result Revoked
	err := p.Change(ctx, func(n *Next) error {
		result = Revoked{}
		may := n.Client.Delegation(name)
		if may.Threshold == 0 {
			return noProject(name)
		}
		for _, id := range ids {
			full, err := findKey(name, id, may)
			if err != nil {
				return err
			}
			result.Keys = append(result.Keys, full)
		}
		var err error
		if result.Signed, err = n.revoke(ctx, name, result.Keys); err == nil && name == trust.AttestationRole {
			result.Refused, err = n.unproven(ctx)
		}
		return err
	})
	return result, err
}

// ReplaceKeys lets these keys sign a project and no others: what to do when a key was lost.
func (p *Publisher) ReplaceKeys(ctx context.Context, name string, keys ...*tuf.Key) error {
	fresh, err := ids(keys)
	if err != nil {
		return err
	}
	return p.Change(ctx, func(n *Next) error {
		if !n.delegates(name) {
			return noProject(name)
		}
		gone := slices.DeleteFunc(slices.Clone(n.Client.Delegation(name).Keys), func(id string) bool { return slices.Contains(fresh, id) })
		if err := n.delegate(name, keys); err != nil {
			return err
		}
		_, err := n.revoke(ctx, name, gone)
		return err
	})
}

func noProject(name string) error {
	return diag.WithHint(fmt.Errorf("%w: %s", trust.ErrNoProject, name), "`corpus ls` shows what there is")
}

func ids(keys []*tuf.Key) ([]string, error) {
	list := []string{}
	for _, k := range keys {
		id, err := k.ID()
		if err != nil {
			return nil, err
		}
		list = append(list, id)
	}
	return list, nil
}

// findKey finds the one key whose ID begins like this.
func findKey(role, id string, may trust.Delegation) (string, error) {
	var found []string
	for _, full := range may.Keys {
		if id != "" && strings.HasPrefix(full, strings.ToLower(id)) {
			found = append(found, full)
		}
	}
	if len(found) == 1 {
		return found[0], nil
	}
	if len(found) == 0 {
		return "", mistake("`corpus root show` lists them", "no key of %s has an ID that begins with %q", role, id)
	}
	return "", mistake("`corpus root show` lists them", "%d keys of %s have an ID that begins with %q", len(found), role, id)
}

func (n *Next) delegate(name string, keys []*tuf.Key) error {
	role := n.targets()
	if role.Signed.Delegations == nil {
		role.Signed.Delegations = &tuf.Delegations{Keys: map[string]*tuf.Key{}}
	}
	if !n.delegates(name) {
		role.Signed.Delegations.Roles = append(role.Signed.Delegations.Roles, tuf.DelegatedRole{
			Name: name, Threshold: 1, Terminating: true, Paths: []string{trust.ProjectPaths(name)}, KeyIDs: []string{},
		})
	}
	for _, key := range keys {
		if err := role.Signed.AddKey(key, name); err != nil {
			return fmt.Errorf("delegating %s: %w", name, err)
		}
	}
	return nil
}

func (n *Next) setThreshold(name string, threshold int) error {
	roles := n.targets().Signed.Delegations.Roles
	i := slices.IndexFunc(roles, func(d tuf.DelegatedRole) bool { return d.Name == name })
	if threshold == 0 {
		threshold = roles[i].Threshold
	}
	if threshold < 1 || threshold > len(roles[i].KeyIDs) {
		return mistake("give as many --key, or a lower --threshold", "%s has %d keys, and %d would have to sign", name, len(roles[i].KeyIDs), threshold)
	}
	roles[i].Threshold = threshold
	return nil
}

// revoke takes keys away and reports whether the project is still signed. Its content is taken as
// the old keys have signed it.
func (n *Next) revoke(ctx context.Context, name string, ids []string) (signed bool, err error) {
	n.advice = revokeSteps(name)
	role, unpublished, err := n.standing(ctx, name)
	if err != nil {
		return false, err
	}
	for _, id := range ids {
		if err := n.targets().Signed.RevokeKey(id, name); err != nil {
			return false, fmt.Errorf("revoking a key of %s: %w", name, err)
		}
	}
	may := n.Client.Delegation(name)
	if len(may.Keys) < may.Threshold {
		return false, mistake(fmt.Sprintf("add another key first: `corpus project add %s --key NEW.pub`", name),
			"%s would have %d keys left, and %d of them have to sign", name, len(may.Keys), may.Threshold)
	}
	if unpublished {
		return true, nil
	}
	return n.keepSigned(name, role)
}

// revokeSteps says how keys are taken away, or more signatures are asked for, without hosts refusing
// anything meanwhile.
func revokeSteps(name string) func(of string) string {
	return func(of string) string {
		if name == trust.AttestationRole {
			project, channel, _ := strings.Cut(of, "/")
			return fmt.Sprintf("let a key that stays sign the proof (`corpus attest %s TESTED --renew`) and the channel take it in (`corpus promote %s %s %s`), then run this again; with --at-once it is done now, and hosts stay on what they run until then",
				project, project, channel, channel)
		}
		return fmt.Sprintf("let a key that stays sign first: `corpus export %s -o %s.draft`, `corpus sign %s.draft`, `corpus import %s.draft`, then run this again; with --at-once it is done now, and hosts stay on what they run until then", name, name, name, name)
	}
}

// standing is what a project says; nil where that is not signed as it should be, is lost, or is nothing.
func (n *Next) standing(ctx context.Context, name string) (role *trust.Role, unpublished bool, err error) {
	if name == trust.AttestationRole { // it signs proofs, and no file of its own
		return nil, true, nil
	}
	role, err = n.Client.Project(ctx, name)
	unpublished = errors.Is(err, trust.ErrNoProject)
	if unpublished || refusedBy(err, trust.CheckSignature) || errors.Is(err, store.ErrNotFound) {
		err = nil
	}
	return role, unpublished, err
}

// keepSigned has a project signed anew where its keys changed so that its signatures no longer
// hold, and reports whether they will.
func (n *Next) keepSigned(name string, role *trust.Role) (bool, error) {
	if role == nil {
		return false, nil
	}
	if n.targets().VerifyDelegate(name, role) == nil {
		return true, nil
	}
	var short *Short
	if _, err := n.publisher.KeysFor(name, n.Client.Delegation(name)); errors.As(err, &short) || n.publisher.Hand != nil {
		return false, nil
	} else if err != nil {
		return false, err
	}
	n.Roles[name] = role
	return true, nil
}

func refusedBy(err error, check trust.Check) bool {
	var r *trust.Refused
	return errors.As(err, &r) && r.Check == check
}
