// Package drafts supports roles that several people sign: Export writes a draft of a role, and Import commits a draft
// that enough of them have signed.
package drafts

import (
	"context"
	"errors"
	"slices"

	"github.com/corpus-agent/corpus-agent/artifact/publish"
	"github.com/corpus-agent/corpus-agent/artifact/publish/recovery"
	"github.com/corpus-agent/corpus-agent/artifact/publish/roots"
	"github.com/corpus-agent/corpus-agent/artifact/trust"
	"github.com/corpus-agent/corpus-agent/artifact/tuf"
	"github.com/corpus-agent/corpus-agent/state/diag"
)

// Export makes a draft of a role with its current content, to be signed again because it expires or because its
// signers' keys were revoked. verified is false for a project whose signatures are not valid; people should read its
// draft before they sign it.
func Export(ctx context.Context, p *publish.Publisher, role string) (d *publish.Draft, verified bool, err error) {
	if role == tuf.RoleSnapshot || role == tuf.RoleTimestamp {
		return nil, false, publish.NewMistake(diag.Draft, "`corpus refresh` signs it again",
			"%s is signed by every publisher and needs no draft", role)
	}
	offline := *p
	offline.Hand = func(made *publish.Draft) error { d = made; return nil }
	if role == tuf.RoleRoot {
		_, err = roots.Apply(ctx, &offline, roots.Change{Renew: true})
		return d, err == nil, err
	}
	n, err := viewBelow(ctx, &offline)
	if err != nil {
		return nil, false, err
	}
	content, verified, err := exported(ctx, n, role)
	if err != nil {
		return nil, false, err
	}
	n.Roles[role] = content
	err = n.MakeDraft(ctx)
	return d, verified, err
}

// viewBelow reads the store as far as its signatures are valid, since the role to sign again may be the one that hosts
// refuse.
func viewBelow(ctx context.Context, p *publish.Publisher) (*publish.Next, error) {
	n, err := p.View(ctx)
	var refused *trust.Refused
	if err == nil || publish.Unanswered(err) != nil || errors.As(err, &refused) &&
		(refused.Check == trust.CheckClock || refused.Check == trust.CheckPin) {
		return n, err
	}
	client, err := p.Open(ctx)
	if err != nil {
		return nil, err
	}
	if err := client.Roots(ctx); err != nil {
		return nil, err
	}
	return p.NextAfter(client, ""), nil
}

// exported returns the content of a role, and whether it has valid signatures.
func exported(ctx context.Context, n *publish.Next, role string) (*trust.Role, bool, error) {
	targets := n.Client.Trusted().Targets[tuf.RoleTargets]
	if role == tuf.RoleTargets && targets != nil {
		return targets, true, nil
	}
	if role != tuf.RoleTargets && targets == nil {
		return nil, false,
			diag.Draft.Hint(errors.New("targets is not signed by keys that may sign it, so the owner of "+role+" is not known"),
				"sign targets first: `corpus export targets -o targets.draft`")
	}
	if role != tuf.RoleTargets {
		content, err := n.Client.Project(ctx, role)
		if err == nil {
			return salvaged(ctx, n, role, content)
		}
		if errors.Is(err, trust.ErrNoProject) || publish.Unanswered(err) != nil ||
			publish.RefusedFor(err, trust.CheckExpiry) {
			return content, false, err
		}
	}
	content, files, err := recovery.NewestLeft(ctx, n, role)
	if err == nil && role == tuf.RoleTargets {
		err = addKnown(n, files, content)
	}
	return content, false, err
}

// salvaged returns a project with the versions that could still be read, and whether these are all.
func salvaged(ctx context.Context, n *publish.Next, project string, head *trust.Role) (*trust.Role, bool, error) {
	left, all, err := n.Client.Salvage(ctx, project, head)
	if err != nil || all {
		return head, err == nil, err
	}
	return left, false, nil
}

// addKnown adds delegations for the projects that snapshots name and that older targets do not delegate, with the
// public keys in files: their delegations were lost with the targets. People read the draft before they sign it.
func addKnown(n *publish.Next, files []string, role *trust.Role) error {
	n.Roles[tuf.RoleTargets] = role
	delegated := map[string]bool{}
	if role.Signed.Delegations != nil {
		for _, d := range role.Signed.Delegations.Roles {
			delegated[d.Name] = true
		}
	}
	for _, file := range files {
		project, _ := trust.IsHead(file)
		if slices.Contains(tuf.TopRoles(), project) || delegated[project] || trust.CheckProject(project) != nil {
			continue
		}
		delegated[project] = true
		keys, err := n.Publisher.Keys.Public(project)
		if err != nil {
			continue // its owner adds it with `corpus project add`
		}
		if err := n.Delegate(project, keys); err != nil {
			return err
		}
	}
	return nil
}
