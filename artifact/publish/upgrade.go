package publish

import (
	"context"

	"github.com/corpus-agent/corpus-agent/artifact/trust"
	"github.com/corpus-agent/corpus-agent/artifact/tuf"
)

// Upgrade ends the lists of all versions of a project in one file, which agents and publishers of
// before read: from the next version of each project on, its head is written under that name too. It
// takes the targets key, and reports whether anything was left to do.
func (p *Publisher) Upgrade(ctx context.Context) (done bool, err error) {
	err = p.Change(ctx, func(n *Next) error {
		if done = !trust.Upgraded(n.Client.Trusted().Targets[tuf.RoleTargets]); !done {
			return mistake("there is nothing left to do", "the store was upgraded before")
		}
		trust.SetUpgraded(n.targets())
		return nil
	})
	return done, err
}
