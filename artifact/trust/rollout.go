package trust

import (
	"fmt"

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
