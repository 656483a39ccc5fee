package releases

import (
	"context"
	"fmt"

	"github.com/corpus-agent/corpus-agent/artifact"
	"github.com/corpus-agent/corpus-agent/artifact/publish"
	"github.com/corpus-agent/corpus-agent/artifact/rollout"
	"github.com/corpus-agent/corpus-agent/artifact/trust"
	"github.com/corpus-agent/corpus-agent/state/diag"
)

// Point points a channel at any version that is published and not withdrawn. The artifact need not be available
// locally.
func Point(ctx context.Context, p *publish.Publisher, ref artifact.Ref, version string) (artifact.Release, error) {
	if err := artifact.CheckVersion(version); err != nil {
		return artifact.Release{}, err
	}
	return moveTo(ctx, p, ref, origin{what: "point"}, func(*trust.Role) (string, error) { return version, nil })
}

// Back points a channel at the first release before a rollout that is still signed and not withdrawn. It returns the
// versions before it, which it left out. If the channel has another rollout by now, Back refuses to move it.
func Back(ctx context.Context, p *publish.Publisher, ref artifact.Ref, from rollout.Start) (r artifact.Release,
	withdrawn []string, err error) {
	r, err = moveTo(ctx, p, ref, origin{what: "back"}, func(role *trust.Role) (version string, err error) {
		channels, err := trust.Channels(role)
		if err != nil {
			return "", err
		}
		if now := channels[ref.Channel].Rollout; now == nil || now.ID != from.ID {
			return "", overtaken(ref, "back")
		}
		withdrawn = nil
		for _, before := range from.Trail() {
			if _, err = signed(role, ref, &before); err == nil {
				return before.Version, nil
			}
			withdrawn = append(withdrawn, before.Version)
		}
		return "", err
	})
	return r, withdrawn, err
}

// overtaken returns the error of a move for a rollout that has ended because another publisher was faster.
func overtaken(ref artifact.Ref, what string) error {
	return publish.NewMistake(diag.Rollout, fmt.Sprintf("look at it with `corpus rollout status %s %s`, and give the "+
		"command again",
		ref.Project, ref.Channel), "another rollout of %s has started meanwhile, which this %s is not for", ref, what)
}

// moveTo points a channel at the version that choose returns for the project's role.
func moveTo(ctx context.Context, p *publish.Publisher, ref artifact.Ref, by origin,
	choose func(*trust.Role) (string, error)) (artifact.Release, error) {
	if err := publish.CheckRef(ref); err != nil {
		return artifact.Release{}, err
	}
	var release artifact.Release
	err := p.Change(ctx, func(n *publish.Next) error {
		n.Strict = true
		role, err := n.Project(ctx, ref.Project)
		if err != nil {
			return err
		}
		version, err := choose(role)
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
			return diag.Withdrawn.Hint(&trust.Withdrawn{Release: release, Yank: yank},
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
		return nil, nil, diag.Unpublished.Hint(fmt.Errorf("%w: %s", trust.ErrNoChannel, ref),
			"`corpus ls` shows what there is")
	}
	return role, channels, nil
}
