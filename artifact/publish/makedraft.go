package publish

import (
	"context"
	"fmt"

	"github.com/corpus-agent/corpus-agent/artifact/trust"
	"github.com/corpus-agent/corpus-agent/artifact/tuf"
	"github.com/corpus-agent/corpus-agent/state/diag"
)

// MakeDraft makes a draft of the one role that changes, signed with the available keys.
func (n *Next) MakeDraft(ctx context.Context) error {
	if len(n.Roles) != 1 {
		return NewMistake(diag.Draft, "make a draft of each, one after the other",
			"the change is one of %d roles, and a draft holds one",
			len(n.Roles))
	}
	p := n.Publisher
	for name, role := range n.Roles {
		if name != tuf.RoleTargets {
			d, err := n.draftProject(ctx, name, role)
			if err != nil {
				return err
			}
			return p.Hand(d)
		}
		from := role.Signed.Version
		version, err := p.free(ctx, name, from)
		if err != nil {
			return err
		}
		role.Signed.Version = version
		role.Signed.Expires = p.Expires(p.Expiry.WithDefaults().Snapshot)
		may := n.Client.Delegation(name)
		good, _, err := p.AtHand(name, may)
		if err != nil {
			return err
		}
		data, err := Sign(role, good)
		if err != nil {
			return fmt.Errorf("signing %s: %w", name, err)
		}
		return p.Hand(&Draft{Form: DraftForm, Role: name, From: from, Needs: []trust.Delegation{may}, Metadata: data})
	}
	return nil
}

// MakeRootDraft makes a draft of a root, signed with the available keys. needs are the delegations whose keys have to
// sign it.
func (p *Publisher) MakeRootDraft(root *RootRole, from int64, needs ...trust.Delegation) error {
	root.Signatures = []tuf.Signature{}
	for _, may := range needs {
		good, _, err := p.AtHand(tuf.RoleRoot, may)
		if err != nil {
			return err
		}
		if err := AddSignatures(root, good); err != nil {
			return fmt.Errorf("signing root: %w", err)
		}
	}
	data, err := root.ToBytes()
	if err != nil {
		return err
	}
	return p.Hand(&Draft{Form: DraftForm, Role: tuf.RoleRoot, From: from, Needs: needs, Metadata: data})
}
