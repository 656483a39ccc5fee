package publish

import (
	"context"
	"errors"
	"fmt"
	"math"

	"github.com/corpus-agent/corpus-agent/artifact/store"
	"github.com/corpus-agent/corpus-agent/artifact/trust"
	"github.com/corpus-agent/corpus-agent/artifact/tuf"
)

// hand makes a draft of the one role that changes, signed by the keys at hand.
func (n *Next) hand(ctx context.Context) error {
	if len(n.Roles) != 1 {
		return mistake("make a draft of each, one after the other", "the change is one of %d roles, and a draft holds one", len(n.Roles))
	}
	p := n.publisher
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
		role.Signed.Expires = p.expires(p.Expiry.withDefaults().Snapshot)
		may := n.Client.Delegation(name)
		good, _, err := p.atHand(name, may)
		if err != nil {
			return err
		}
		data, err := sign(role, good)
		if err != nil {
			return fmt.Errorf("signing %s: %w", name, err)
		}
		return p.Hand(&Draft{Form: draftForm, Role: name, From: from, Needs: []trust.Delegation{may}, Metadata: data})
	}
	return nil
}

// free is the first version after one that nobody has written.
func (p *Publisher) free(ctx context.Context, name string, version int64) (int64, error) {
	for {
		if version == math.MaxInt64 {
			return 0, exhausted(name)
		}
		version++
		body, _, err := p.Store.Get(ctx, trust.RoleKey(name, version), 0)
		// Where the bucket may not be listed, what is absent is forbidden.
		if errors.Is(err, store.ErrNotFound) || errors.Is(err, store.ErrForbidden) {
			return version, nil
		}
		if err != nil {
			return 0, err
		}
		_ = body.Close() // it was asked for its being there
	}
}

// handRoot makes a draft of a root that these have to sign, signed by the keys at hand.
func (p *Publisher) handRoot(root *rootRole, from int64, needs ...trust.Delegation) error {
	root.Signatures = []tuf.Signature{}
	for _, may := range needs {
		good, _, err := p.atHand(tuf.RoleRoot, may)
		if err != nil {
			return err
		}
		if err := addSignatures(root, good); err != nil {
			return fmt.Errorf("signing root: %w", err)
		}
	}
	data, err := root.ToBytes()
	if err != nil {
		return err
	}
	return p.Hand(&Draft{Form: draftForm, Role: tuf.RoleRoot, From: from, Needs: needs, Metadata: data})
}
