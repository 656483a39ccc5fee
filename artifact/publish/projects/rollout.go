package projects

import (
	"context"
	"errors"

	"github.com/corpus-agent/corpus-agent/artifact"
	"github.com/corpus-agent/corpus-agent/artifact/publish"
	"github.com/corpus-agent/corpus-agent/artifact/rollout"
	"github.com/corpus-agent/corpus-agent/artifact/trust"
	"github.com/corpus-agent/corpus-agent/state/diag"
)

// Planned is the rollout plan of a channel.
type Planned struct {
	Ref  artifact.Ref  `json:"ref"`
	Plan *rollout.Plan `json:"plan"` // nil for a channel whose hosts all take it at once
	// Underway is the rollout during which the plan was changed; nil if there is none.
	Underway *rollout.Start `json:"underway,omitempty"`
}

// Rollout changes the plan of a channel. It calls change with the channel's plan, or the default plan; a nil change
// removes the plan. It needs the targets key, since the publishers of the project must not be able to change it.
func Rollout(ctx context.Context, p *publish.Publisher, ref artifact.Ref,
	change func(*rollout.Plan) error) (Planned, error) {
	result := Planned{Ref: ref}
	if err := publish.CheckRef(ref); err != nil {
		return result, err
	}
	err := p.Change(ctx, func(n *publish.Next) error {
		if !n.Delegates(ref.Project) {
			return publish.NoProject(ref.Project)
		}
		if change != nil {
			if err := meantChannels(ctx, n, ref.Project, ref.Channel); err != nil {
				return err
			}
		}
		all, err := trust.Rollouts(n.Targets())
		if err != nil {
			return err
		}
		if result.Plan, err = changed(all, ref, change); err != nil {
			return err
		}
		if delete(all, ref.String()); result.Plan != nil {
			all[ref.String()] = *result.Plan
		}
		if result.Underway, err = underway(ctx, n, ref); err != nil {
			return err
		}
		return trust.SetRollouts(n.Targets(), all)
	})
	return result, err
}

// changed returns the next plan of a channel.
func changed(all map[string]rollout.Plan, ref artifact.Ref, change func(*rollout.Plan) error) (*rollout.Plan, error) {
	plan, planned := all[ref.String()]
	if change == nil {
		if !planned {
			return nil, publish.NewMistake(diag.Plan,
				"`corpus project rollout "+ref.Project+" "+ref.Channel+"` shows what it has",
				"%s has no rollout plan", ref)
		}
		return nil, nil
	}
	if !planned {
		plan = rollout.Default()
	}
	if err := change(&plan); err != nil {
		return nil, err
	}
	return &plan, plan.Check()
}

// underway returns the rollout that a channel's pointer names; nil if there is none, or if the project cannot be read.
func underway(ctx context.Context, n *publish.Next, ref artifact.Ref) (*rollout.Start, error) {
	role, _, err := n.SignedProject(ctx, ref.Project)
	if err != nil || role == nil {
		return nil, err
	}
	channels, err := trust.Channels(role)
	start := channels[ref.Channel].Rollout
	if start == nil || start.Aborted {
		return nil, err
	}
	return start, err
}

// Plan reads the plan of a channel.
func Plan(client *trust.Client, ref artifact.Ref) (Planned, error) {
	plan, err := client.Rollout(ref)
	if err == nil && client.Delegation(ref.Project).Threshold == 0 {
		err = errors.Join(publish.NoProject(ref.Project))
	}
	return Planned{Ref: ref, Plan: plan}, err
}
