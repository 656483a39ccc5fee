package trust

import (
	"context"
	"fmt"
	"time"

	"github.com/corpus-agent/corpus-agent/artifact"
	"github.com/corpus-agent/corpus-agent/artifact/rollout"
)

// rolloutsField is a field of targets, which is signed one level above every project, so that a project's key cannot
// change it. It maps project/channel to a rollout.Plan.
const rolloutsField = "rollouts"

// Rollouts returns the plans of channels from targets, by project/channel.
func Rollouts(targets *Role) (map[string]rollout.Plan, error) {
	return fieldOf[rollout.Plan](targets, rolloutsField)
}

// SetRollouts sets the plans of channels before targets is signed.
func SetRollouts(targets *Role, plans map[string]rollout.Plan) error {
	return setField(targets, rolloutsField, plans)
}

// Rollout returns the plan by which a channel's hosts take a release; nil if they all take it at once.
func (c *Client) Rollout(ref artifact.Ref) (*rollout.Plan, error) {
	all, err := Rollouts(c.set.Targets[targetsRole])
	if err != nil {
		return nil, malformed(MetaName(targetsRole), err)
	}
	plan, ok := all[ref.String()]
	if !ok {
		return nil, nil
	}
	if err := plan.Sound(); err != nil {
		return nil, malformed(MetaName(targetsRole), fmt.Errorf("the rollout plan of %s: %w", ref, err))
	}
	return &plan, nil
}

// RolloutOf returns by which plan hosts take what a channel names, and the rollout that is under way. Either is nil
// where there is none: then they take it at once.
func (c *Client) RolloutOf(ctx context.Context, ref artifact.Ref) (*rollout.Plan, *rollout.Start, error) {
	plan, err := c.Rollout(ref)
	if err != nil {
		return nil, nil, err
	}
	role, err := c.Project(ctx, ref.Project)
	if err != nil {
		return nil, nil, err
	}
	channels, err := Channels(role)
	if err != nil {
		return nil, nil, malformed(ref.Project, err)
	}
	start := channels[ref.Channel].Rollout
	if start == nil {
		return plan, nil, nil
	}
	if err := start.Check(); err != nil {
		return nil, nil, malformed(ref.String(), err)
	}
	return plan, start, nil
}

// Signed returns a release that a project signs, by version and digest; false where it signs none. It reads a page of
// the project where its head does not have the release.
func (c *Client) Signed(ctx context.Context, project, version string, digest artifact.Digest) (artifact.Release, bool,
	error) {
	role, err := c.Project(ctx, project)
	if err != nil {
		return artifact.Release{}, false, err
	}
	for _, whole := range []bool{false, true} {
		if whole {
			if role, err = c.Whole(ctx, project); err != nil {
				return artifact.Release{}, false, err
			}
		}
		for _, r := range Releases(project, role) {
			if r.Version == version && r.Digest == digest {
				return r, true, nil
			}
		}
	}
	return artifact.Release{}, false, nil
}

// StoreTime returns what the store's clock says, as of when it gave its timestamp; the own clock's time where the store
// sends none, as a directory does.
func (c *Client) StoreTime() time.Time {
	if c.clock.store.IsZero() {
		return c.now().UTC()
	}
	return c.clock.store.Add(c.now().Sub(c.clock.own)).UTC()
}
