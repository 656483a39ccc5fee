// Package projects changes the projects in the targets role: their keys, the proofs that their channels require, and
// which projects exist.
package projects

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/corpus-agent/corpus-agent/artifact/publish"
	"github.com/corpus-agent/corpus-agent/artifact/publish/proofs"
	"github.com/corpus-agent/corpus-agent/artifact/trust"
	"github.com/corpus-agent/corpus-agent/artifact/tuf"
	"github.com/corpus-agent/corpus-agent/state/diag"
)

// Add allows keys to sign a project, which is deploy/NAME/* and nothing else, in addition to the project's present
// keys. threshold is the number of keys that have to sign; with 0 it stays unchanged, and is 1 for a new project. Add
// needs the targets key.
func Add(ctx context.Context, p *publish.Publisher, name string, threshold int, keys ...*tuf.Key) error {
	if err := trust.CheckDelegated(name); err != nil {
		return err
	}
	return p.Change(ctx, func(n *publish.Next) error {
		again := !n.Delegates(name)
		role, unpublished, err := n.SignedProject(ctx, name)
		if err != nil {
			return err
		}
		before := n.Client.Delegation(name).Threshold
		if err := n.Delegate(name, keys); err != nil {
			return err
		}
		if err := ownKeys(n); err != nil {
			return err
		}
		if err := setThreshold(n, name, threshold); err != nil || threshold <= before && !again {
			return err
		}
		if again {
			return addAgain(ctx, n, name)
		}
		n.Advice = RevokeSteps(name)
		signed, err := n.SignAgain(name, role)
		if err == nil && !signed && !unpublished && !p.AtOnce {
			err = publish.NewMistake(diag.Keys,
				fmt.Sprintf("add the keys, let %d of them sign what is there (`corpus export %s`, `corpus sign`, `corpus "+
					"import`), then raise the threshold", threshold, name),
				"hosts would refuse %s, which fewer than %d of its keys have signed", name, threshold)
		}
		return err
	})
}

// Revoked is the result of revoking keys.
type Revoked struct {
	Keys   []string `json:"keys"`   // IDs that may no longer sign
	Signed bool     `json:"signed"` // the project is signed by keys that still may sign it
	// Refused are channels, project/channel, whose proofs only these keys have signed.
	Refused []string `json:"refused,omitempty"`
}

// Revoke revokes keys of a project, given by their IDs or the beginnings of these. Content that only they have signed
// is signed again in the same step if the available keys suffice; otherwise hosts refuse the project until it is
// signed. Revoke needs the targets key.
func Revoke(ctx context.Context, p *publish.Publisher, name string, ids ...string) (Revoked, error) {
	var result Revoked
	err := p.Change(ctx, func(n *publish.Next) error {
		result = Revoked{}
		may := n.Client.Delegation(name)
		if may.Threshold == 0 {
			return publish.NoProject(name)
		}
		for _, id := range ids {
			full, err := publish.FindKey(name, id, may)
			if err != nil {
				return err
			}
			result.Keys = append(result.Keys, full)
		}
		var err error
		if result.Signed, err = revoke(ctx, n, name, result.Keys); err == nil && name == trust.AttestationRole {
			result.Refused, err = proofs.RefusedChannels(ctx, n)
		}
		return err
	})
	return result, err
}

// ReplaceKeys replaces all keys of a project, after a key was lost.
func ReplaceKeys(ctx context.Context, p *publish.Publisher, name string, keys ...*tuf.Key) error {
	fresh, err := publish.IDs(keys)
	if err != nil {
		return err
	}
	return p.Change(ctx, func(n *publish.Next) error {
		if !n.Delegates(name) {
			return publish.NoProject(name)
		}
		gone := slices.DeleteFunc(slices.Clone(n.Client.Delegation(name).Keys), func(id string) bool {
			return slices.Contains(fresh, id)
		})
		if err := n.Delegate(name, keys); err != nil {
			return err
		}
		_, err := revoke(ctx, n, name, gone)
		return err
	})
}

func setThreshold(n *publish.Next, name string, threshold int) error {
	roles := n.Targets().Signed.Delegations.Roles
	i := slices.IndexFunc(roles, func(d tuf.DelegatedRole) bool { return d.Name == name })
	if threshold == 0 {
		threshold = roles[i].Threshold
	}
	if threshold < 1 || threshold > len(roles[i].KeyIDs) {
		return publish.NewMistake(diag.Keys, "give as many --key, or a lower --threshold",
			"%s has %s, and %d would have to sign", name, diag.Count(len(roles[i].KeyIDs), "key"), threshold)
	}
	roles[i].Threshold = threshold
	return nil
}

// revoke revokes keys, and reports whether the project will be signed. The project's content stays as the old keys have
// signed it.
func revoke(ctx context.Context, n *publish.Next, name string, ids []string) (signed bool, err error) {
	n.Advice = RevokeSteps(name)
	role, unpublished, err := n.SignedProject(ctx, name)
	if err != nil {
		return false, err
	}
	for _, id := range ids {
		if err := n.Targets().Signed.RevokeKey(id, name); err != nil {
			return false, fmt.Errorf("revoking a key of %s: %w", name, err)
		}
	}
	may := n.Client.Delegation(name)
	if len(may.Keys) < may.Threshold {
		return false, publish.NewMistake(diag.Keys,
			fmt.Sprintf("add another key first: `corpus project add %s --key NEW.pub`", name),
			"%s would have %s left, and %d would have to sign", name, diag.Count(len(may.Keys), "key"), may.Threshold)
	}
	if unpublished {
		return true, nil
	}
	return n.SignAgain(name, role)
}

// RevokeSteps returns a function that returns a hint with the steps to revoke keys, or to require more signatures,
// without a time in which hosts refuse something.
func RevokeSteps(name string) func(of string) string {
	return func(of string) string {
		if name == trust.AttestationRole {
			project, channel, _ := strings.Cut(of, "/")
			return fmt.Sprintf(
				"let a key that stays sign the proof (`corpus attest %s TESTED --renew`) and the channel take it in (`corpus "+
					"promote %s %s %s`), then run this again; with --at-once it is done now, and hosts stay on what they run "+
					"until then",
				project, project, channel, channel)
		}
		return fmt.Sprintf(
			"let a key that stays sign first: `corpus export %s -o %s.draft`, `corpus sign %s.draft`, `corpus import "+
				"%s.draft`, then run this again; with --at-once it is done now, and hosts stay on what they run until then", name,
			name, name, name)
	}
}
