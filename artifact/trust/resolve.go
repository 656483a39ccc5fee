package trust

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/corpus-agent/corpus-agent/artifact"
)

// Resolve returns the release for the hosts of a channel. The errors are ErrNoProject, ErrNoChannel, a *Withdrawn, a
// *Refused, or the store's. If a channel requires proof and has no valid one, the error is a *Refused.
func (c *Client) Resolve(ctx context.Context, ref artifact.Ref) (artifact.Release, error) {
	release, pointer, err := c.Named(ctx, ref)
	if pointer.Version == "" {
		return release, err
	}
	// Without its proof the pointer is invalid, and so is its withdrawal, so the proof comes first.
	if unproven := c.proven(ref, pointer); unproven != nil {
		return artifact.Release{}, unproven
	}
	return release, err
}

// Named returns the release that a channel points at, without checking its proof, and the pointer. The errors are those
// of Resolve; with a *Withdrawn the pointer is set.
func (c *Client) Named(ctx context.Context, ref artifact.Ref) (artifact.Release, Pointer, error) {
	role, err := c.Project(ctx, ref.Project)
	if err != nil {
		return artifact.Release{}, Pointer{}, err
	}
	channels, err := Channels(role)
	if err != nil {
		return artifact.Release{}, Pointer{}, malformed(ref.Project, err)
	}
	pointer, ok := channels[ref.Channel]
	if !ok {
		return artifact.Release{}, Pointer{}, absentAmong(ErrNoChannel, ref.String(), ref.Channel,
			slices.Sorted(maps.Keys(channels)))
	}
	if pointer.Rollout != nil {
		if err := pointer.Rollout.Check(); err != nil {
			return artifact.Release{}, Pointer{}, malformed(ref.String(), err)
		}
	}
	for _, r := range Releases(ref.Project, role) {
		if r.Version == pointer.Version && r.Digest == pointer.Digest {
			return r, pointer, c.withdrawn(ctx, role, r)
		}
	}
	return artifact.Release{}, Pointer{}, malformed(ref.String(),
		fmt.Errorf("it points at %s, %s, which the project does not sign", pointer.Version, pointer.Digest))
}

// Withdrawn returns the withdrawal of a release; nil if it is not withdrawn. A project that no longer exists has
// withdrawn nothing.
func (c *Client) Withdrawn(ctx context.Context, r artifact.Release) (*Withdrawn, error) {
	role, err := c.Project(ctx, r.Project)
	if errors.Is(err, ErrNoProject) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	var w *Withdrawn
	if err := c.withdrawn(ctx, role, r); err != nil && !errors.As(err, &w) {
		return nil, err
	}
	return w, nil
}

// withdrawn returns a *Withdrawn if the project has withdrawn a release. If the head does not list all withdrawals, it
// reads the release's page.
func (c *Client) withdrawn(ctx context.Context, role *Role, r artifact.Release) error {
	yanks, err := Yanks(role)
	if err != nil {
		return malformed(r.Project, err)
	}
	if more, _ := role.Signed.UnrecognizedFields[moreYankedField].(bool); more {
		p, err := c.page(ctx, role, r)
		if err != nil {
			return err
		}
		if p != nil && p.Yanked != nil {
			yanks = p.Yanked
		}
	}
	if yank, ok := yanks[r.Version]; ok && yank.Digest == r.Digest {
		yank.Reason = Printable(yank.Reason)
		return &Withdrawn{Release: r, Yank: yank}
	}
	return nil
}
