package publish

import (
	"context"
	"errors"

	"github.com/corpus-agent/corpus-agent/artifact/trust"
	"github.com/corpus-agent/corpus-agent/artifact/tuf"
	"github.com/corpus-agent/corpus-agent/state/diag"
)

// Export makes a draft of a role as it stands, to be signed again: because it expires, or because
// who signed it no longer may. verified is false for a project whose signatures do not hold, which
// wants to be read before it is signed.
func (p *Publisher) Export(ctx context.Context, role string) (d *Draft, verified bool, err error) {
	if role == tuf.RoleSnapshot || role == tuf.RoleTimestamp {
		return nil, false, mistake("`corpus refresh` signs it anew", "%s is signed by every publisher and needs no draft", role)
	}
	offline := *p
	offline.Hand = func(made *Draft) error { d = made; return nil }
	if role == tuf.RoleRoot {
		_, err = offline.ChangeRoot(ctx, RootChange{Renew: true})
		return d, err == nil, err
	}
	n, err := offline.lookBelow(ctx)
	if err != nil {
		return nil, false, err
	}
	content, verified, err := n.exported(ctx, role)
	if err != nil {
		return nil, false, err
	}
	n.Roles[role] = content
	err = n.hand(ctx)
	return d, verified, err
}

// lookBelow reads the store as far as its signatures hold: what is to be signed again may be just what
// hosts refuse.
func (p *Publisher) lookBelow(ctx context.Context) (*Next, error) {
	n, err := p.Look(ctx)
	var refused *trust.Refused
	if err == nil || notAnswered(err) != nil || errors.As(err, &refused) && (refused.Check == trust.CheckClock || refused.Check == trust.CheckPin) {
		return n, err
	}
	client, err := p.open(ctx)
	if err != nil {
		return nil, err
	}
	if err := client.Roots(ctx); err != nil {
		return nil, err
	}
	return p.onto(client, ""), nil
}

// exported is what a role says, and whether keys that may have signed it.
func (n *Next) exported(ctx context.Context, role string) (*trust.Role, bool, error) {
	targets := n.Client.Trusted().Targets[tuf.RoleTargets]
	if role == tuf.RoleTargets && targets != nil {
		return targets, true, nil
	}
	if role != tuf.RoleTargets && targets == nil {
		return nil, false, diag.WithHint(errors.New("targets is not signed by keys that may, so that it cannot be told whose "+role+" is"),
			"sign targets first: `corpus export targets -o targets.draft`")
	}
	if role != tuf.RoleTargets {
		content, err := n.Client.Project(ctx, role)
		if err == nil {
			return n.salvaged(ctx, role, content)
		}
		if errors.Is(err, trust.ErrNoProject) || notAnswered(err) != nil || refusedBy(err, trust.CheckExpiry) {
			return content, false, err
		}
	}
	content, b, err := n.newestLeft(ctx, role)
	if err == nil && role == tuf.RoleTargets {
		err = n.addKnown(b, content)
	}
	return content, false, err
}

// salvaged is a project with what is left of its versions, and whether that is all of them.
func (n *Next) salvaged(ctx context.Context, project string, head *trust.Role) (*trust.Role, bool, error) {
	left, all, err := n.Client.Salvage(ctx, project, head)
	if err != nil || all {
		return head, err == nil, err
	}
	return left, false, nil
}
