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

// Rollout returns the rollout plan of a channel; nil if its hosts all take a release at once.
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

// RolloutOf returns the plan and the current rollout of a channel. If either is nil, its hosts take the release at
// once.
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

// Signed returns a release that a project signs, by version and digest; false if it is not signed. If the project's
// head does not have the release, Signed reads a page of the project.
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

// StoreTime returns the time of the store's clock, based on the response with its timestamp. If the store sends no
// time, as a directory does, it returns that of the local clock.
func (c *Client) StoreTime() time.Time {
	if c.clock.store.IsZero() {
		return c.now().UTC()
	}
	return c.clock.store.Add(c.now().Sub(c.clock.own)).UTC()
}
