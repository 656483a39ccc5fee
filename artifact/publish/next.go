package publish

import (
	"context"
	"errors"
	"time"

	"github.com/corpus-agent/corpus-agent/artifact/trust"
	"github.com/corpus-agent/corpus-agent/artifact/tuf"
)

// Next is the next version of a store.
type Next struct {
	publisher *Publisher
	Client    *trust.Client
	ETag      string
	Roles     map[string]*trust.Role // targets and projects that change
	ready     map[string]ready       // roles that come signed, as they are
	brief     bool                   // only the timestamp is signed anew

	newName bool                   // a channel's name is meant that was probably typed by mistake
	strict  bool                   // hosts must accept the store in the end, whatever they did before
	allowed map[string]bool        // what hosts may refuse in the end: it was asked for
	advice  func(of string) string // says which steps hosts accept, where these are not
}

// targets is the top targets role, to be changed.
func (n *Next) targets() *trust.Role {
	if role, ok := n.Roles[tuf.RoleTargets]; ok {
		return role
	}
	role := n.Client.Trusted().Targets[tuf.RoleTargets]
	n.Roles[tuf.RoleTargets] = role
	return role
}

// project is a project's role, to be changed. A project that never published has an empty one.
func (n *Next) project(ctx context.Context, name string) (*trust.Role, error) {
	if role, ok := n.Roles[name]; ok {
		return role, nil
	}
	role, err := n.Client.Whole(ctx, name)
	if errors.Is(err, trust.ErrNoProject) {
		role = tuf.NewTargets(time.Now().UTC())
		role.Signed.Version = n.Client.Last(name) // 0, unless the project was removed and begins again
	} else if err != nil {
		return nil, err
	}
	n.Roles[name] = role
	return role, nil
}

// delegates reports whether targets lets somebody sign the project.
func (n *Next) delegates(project string) bool { return n.Client.Delegation(project).Threshold > 0 }
