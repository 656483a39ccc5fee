package releases

import (
	"context"
	"errors"
	"fmt"

	"github.com/corpus-agent/corpus-agent/artifact"
	"github.com/corpus-agent/corpus-agent/artifact/publish"
	"github.com/corpus-agent/corpus-agent/artifact/trust"
	"github.com/corpus-agent/corpus-agent/state/diag"
)

// Point points a channel at any version that is published and not withdrawn. The artifact need not be available
// locally.
func Point(ctx context.Context, p *publish.Publisher, ref artifact.Ref, version string) (artifact.Release, error) {
	return pointTo(ctx, p, ref, version, origin{what: "point"})
}

// Back is like Point, for the version that a channel named before its last rollout.
func Back(ctx context.Context, p *publish.Publisher, ref artifact.Ref, version string) (artifact.Release, error) {
	return pointTo(ctx, p, ref, version, origin{what: "back"})
}

func pointTo(ctx context.Context, p *publish.Publisher, ref artifact.Ref, version string,
	by origin) (artifact.Release, error) {
	if err := errors.Join(trust.CheckProject(ref.Project), artifact.CheckChannel(ref.Channel),
		artifact.CheckVersion(version)); err != nil {
		return artifact.Release{}, err
	}
	var release artifact.Release
	err := p.Change(ctx, func(n *publish.Next) error {
		n.Strict = true
		role, err := n.Project(ctx, ref.Project)
		if err != nil {
			return err
		}
		if release, err = n.Release(ctx, ref, version); err != nil {
			return err
		}
		yanks, err := trust.Yanks(role)
		if err != nil {
			return err
		}
		if yank, withdrawn := yanks[version]; withdrawn {
			return diag.WithHint(&trust.Withdrawn{Release: release, Yank: yank},
				"point at another version, or take the withdrawal back with `corpus yank --undo`")
		}
		return point(ctx, n, role, ref, release, by)
	})
	return release, err
}

// Unpoint removes a channel from a project. Its hosts stay on their present releases and report that the channel is
// gone. The release stays published.
func Unpoint(ctx context.Context, p *publish.Publisher, ref artifact.Ref) (trust.Pointer, error) {
	if err := publish.CheckRef(ref); err != nil {
		return trust.Pointer{}, err
	}
	var pointer trust.Pointer
	err := p.Change(ctx, func(n *publish.Next) error {
		n.Strict = true
		role, channels, err := channelsWith(ctx, n, ref)
		if err != nil {
			return err
		}
		pointer = channels[ref.Channel]
		delete(channels, ref.Channel)
		return trust.SetChannels(role, channels)
	})
	return pointer, err
}

// channelsWith returns a project's role with its channels, or an error if the channel is not one of them.
func channelsWith(ctx context.Context, n *publish.Next, ref artifact.Ref) (*trust.Role, map[string]trust.Pointer,
	error) {
	role, err := n.Project(ctx, ref.Project)
	if err != nil {
		return nil, nil, err
	}
	channels, err := trust.Channels(role)
	if err != nil {
		return nil, nil, err
	}
	if _, there := channels[ref.Channel]; !there {
		return nil, nil, diag.WithHint(fmt.Errorf("%w: %s", trust.ErrNoChannel, ref), "`corpus ls` shows what there is")
	}
	return role, channels, nil
}
