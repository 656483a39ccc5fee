package releases

import (
	"context"
	"errors"

	"github.com/corpus-agent/corpus-agent/artifact"
	"github.com/corpus-agent/corpus-agent/artifact/publish"
	"github.com/corpus-agent/corpus-agent/artifact/publish/proofs"
	"github.com/corpus-agent/corpus-agent/artifact/trust"
)

// Promote points a channel at the release of another channel of the project. No bytes are copied. A channel that
// requires proof gets it from the store; if there is no valid one, the error is a *trust.Refused. Promoting a channel
// to itself adds a newer proof.
func Promote(ctx context.Context, p *publish.Publisher, project, from, to string) (artifact.Release, error) {
	if err := errors.Join(trust.CheckProject(project), artifact.CheckChannel(from),
		artifact.CheckChannel(to)); err != nil {
		return artifact.Release{}, err
	}
	var release artifact.Release
	err := p.Change(ctx, func(n *publish.Next) error {
		n.Strict = true
		role, err := n.Project(ctx, project)
		if err != nil {
			return err
		}
		release, _, err = n.Client.Named(ctx, artifact.Ref{Project: project, Channel: from})
		if err != nil {
			return err
		}
		return point(ctx, n, role, artifact.Ref{Project: project, Channel: to}, release, origin{"promote", from})
	})
	return release, err
}

// origin has the command by which a channel moves to a release, and the channel that the release comes from or "".
type origin struct{ what, from string }

// point moves a channel of a project to a release.
func point(ctx context.Context, n *publish.Next, role *trust.Role, ref artifact.Ref, r artifact.Release,
	by origin) error {
	channels, err := trust.Channels(role)
	if err != nil {
		return err
	}
	if err := n.CheckChannelName(ref.Channel, channels); err != nil {
		return err
	}
	before := channels[ref.Channel]
	move := moved(n, ref.Project, by.what)
	pointer := trust.Pointer{Version: r.Version, Digest: r.Digest, Serial: before.Serial + 1, Moved: &move}
	if pointer.Proof, err = proofs.Prove(ctx, n, ref, pointer, before, by.from); err != nil {
		return err
	}
	if pointer.Rollout, err = begin(ctx, n, ref, r, before, by); err != nil {
		return err
	}
	channels[ref.Channel] = pointer
	return trust.SetChannels(role, channels)
}
