package publish

import (
	"context"
	"errors"

	"github.com/corpus-agent/corpus-agent/artifact"
	"github.com/corpus-agent/corpus-agent/artifact/trust"
	"github.com/corpus-agent/corpus-agent/state/diag"
)

// Point points a channel at any version that is published and not withdrawn. The artifact does not have to be at hand.
func (p *Publisher) Point(ctx context.Context, ref artifact.Ref, version string) (artifact.Release, error) {
	if err := errors.Join(trust.CheckProject(ref.Project), artifact.CheckChannel(ref.Channel), artifact.CheckVersion(version)); err != nil {
		return artifact.Release{}, err
	}
	var release artifact.Release
	err := p.change(ctx, func(n *next) error {
		n.strict = true
		role, err := n.project(ctx, ref.Project)
		if err != nil {
			return err
		}
		if release, err = n.find(ctx, ref, version); err != nil {
			return err
		}
		yanks, err := trust.Yanks(role)
		if err != nil {
			return err
		}
		if yank, withdrawn := yanks[version]; withdrawn {
			return diag.WithHint(&trust.Withdrawn{Release: release, Yank: yank}, "point at another version, or take the withdrawal back with `corpus yank --undo`")
		}
		return n.point(ctx, role, ref, release, "")
	})
	return release, err
}
