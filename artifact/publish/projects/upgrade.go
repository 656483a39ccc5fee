package projects

import (
	"context"

	"github.com/corpus-agent/corpus-agent/artifact/publish"
	"github.com/corpus-agent/corpus-agent/artifact/trust"
	"github.com/corpus-agent/corpus-agent/artifact/tuf"
	"github.com/corpus-agent/corpus-agent/state/diag"
)

// Upgrade ends the lists of all versions of a project in one file, which old agents and publishers read: from its next
// version on, the head of each project is written under that name too. It needs the targets key. done reports whether
// the store was changed.
func Upgrade(ctx context.Context, p *publish.Publisher) (done bool, err error) {
	err = p.Change(ctx, func(n *publish.Next) error {
		if done = !trust.Upgraded(n.Client.Trusted().Targets[tuf.RoleTargets]); !done {
			return publish.NewMistake(diag.Usage, "there is nothing left to do", "the store was upgraded before")
		}
		trust.SetUpgraded(n.Targets())
		return nil
	})
	return done, err
}
