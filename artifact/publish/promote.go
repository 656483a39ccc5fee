package publish

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	"github.com/corpus-agent/corpus-agent/artifact"
	"github.com/corpus-agent/corpus-agent/artifact/trust"
	"github.com/corpus-agent/corpus-agent/artifact/tuf"
	"github.com/corpus-agent/corpus-agent/state/diag"
)

// Promote points a channel at what another channel of the project points at. Bytes stay where they
// are. A channel that requires proof takes it in from the store; without one that holds the error is
// a *trust.Refused. From a channel to itself takes in a newer proof.
func (p *Publisher) Promote(ctx context.Context, project, from, to string) (artifact.Release, error) {
	if err := errors.Join(trust.CheckProject(project), artifact.CheckChannel(from), artifact.CheckChannel(to)); err != nil {
		return artifact.Release{}, err
	}
	var release artifact.Release
	err := p.Change(ctx, func(n *Next) error {
		n.strict = true
		role, err := n.project(ctx, project)
		if err != nil {
			return err
		}
		release, _, err = n.Client.Named(ctx, artifact.Ref{Project: project, Channel: from})
		if err != nil {
			return err
		}
		return n.point(ctx, role, artifact.Ref{Project: project, Channel: to}, release, from)
	})
	return release, err
}

// point moves a channel of a project's role to a release; from is the channel that the release comes
// from, if it comes from one.
func (n *Next) point(ctx context.Context, role *trust.Role, ref artifact.Ref, r artifact.Release, from string) error {
	channels, err := trust.Channels(role)
	if err != nil {
		return err
	}
	if err := n.meantChannel(ref.Channel, channels); err != nil {
		return err
	}
	before := channels[ref.Channel]
	pointer := trust.Pointer{Version: r.Version, Digest: r.Digest, Serial: before.Serial + 1}
	if pointer.Proof, err = n.prove(ctx, ref, pointer, before, from); err != nil {
		return err
	}
	channels[ref.Channel] = pointer
	return trust.SetChannels(role, channels)
}

// prove finds the proof that a pointer is to carry: the newest of the one in the store and the one
// that the pointer before it carries. A channel that requires none carries one all the same where
// there is one, so that it may be required later.
func (n *Next) prove(ctx context.Context, ref artifact.Ref, pointer, before trust.Pointer, from string) (json.RawMessage, error) {
	required, err := n.Client.Requirement(ref)
	if err != nil {
		return nil, err
	}
	demand := trust.Requirement{From: from, Hosts: trust.DefaultHosts, Fresh: trust.DefaultFresh, Holds: trust.DefaultHolds}
	if required != nil {
		demand = *required
	}
	if demand.From == "" {
		return nil, nil
	}
	stored, _, err := n.publisher.storedProof(ctx, trust.ProofKey(ref.Project, demand.From, pointer.Digest))
	if err != nil {
		return nil, err
	}
	best := n.newest(trust.Claim{Ref: ref, Pointer: pointer, Requirement: demand}, stored, carried(before))
	if required == nil && best == nil {
		return nil, nil
	}
	if best == nil {
		best = stored // what is wrong with it is worth telling
	}
	if best != nil {
		if pointer.Proof, err = best.Role.ToBytes(); err != nil {
			return nil, err
		}
	}
	if _, err := n.Client.CheckPointer(ref, pointer, n.publisher.Time()); err != nil {
		return nil, err
	}
	return pointer.Proof, n.notBehind(ref, demand, best, carried(before))
}

// newest is the newest of the proofs that hold.
func (n *Next) newest(claim trust.Claim, proofs ...*trust.Proof) (best *trust.Proof) {
	targets := n.Client.Trusted().Targets[tuf.RoleTargets]
	for _, p := range proofs {
		if p == nil || p.Holds(claim, targets, n.publisher.Time()) != nil {
			continue
		}
		if best == nil || p.At.After(best.At) || p.At.Equal(best.At) && p.Expires.After(best.Expires) {
			best = p
		}
	}
	return best
}

// notBehind refuses what hosts that have seen the proof before would refuse.
func (n *Next) notBehind(ref artifact.Ref, q trust.Requirement, now, before *trust.Proof) error {
	targets := n.Client.Trusted().Targets[tuf.RoleTargets]
	if before == nil || now == nil || !now.At.Before(before.At) || trust.SignedProof(before, targets) != nil {
		return nil
	}
	return &Unproven{err: diag.WithHint(fmt.Errorf("the proof that %s was healthy on %s is older than the one that %s carries now, and hosts take none that is older", now.Version, q.From, ref),
		"attest it anew: `corpus attest %s %s %s`", ref.Project, q.From, now.Version)}
}

// carried is the proof of a pointer; nil for one without, or with one that cannot be read.
func carried(pointer trust.Pointer) *trust.Proof {
	if len(pointer.Proof) == 0 {
		return nil
	}
	proof, err := trust.ParseProof(pointer.Proof)
	if err != nil {
		return nil
	}
	return proof
}

// unproven lists the channels of all projects whose pointers do not meet what they require.
func (n *Next) unproven(ctx context.Context) ([]string, error) {
	refused := []string{}
	err := n.eachPointer(ctx, func(ref artifact.Ref, pointer trust.Pointer, _ *trust.Role) error {
		if _, err := n.Client.CheckPointer(ref, pointer, n.publisher.Time()); err != nil {
			refused = append(refused, ref.String())
		}
		return nil
	})
	slices.Sort(refused)
	return refused, err
}

// eachPointer shows the channels of all projects that can be read.
func (n *Next) eachPointer(ctx context.Context, see func(artifact.Ref, trust.Pointer, *trust.Role) error) error {
	for _, project := range n.Client.Projects() {
		role, err := n.Client.Project(ctx, project)
		if errors.Is(err, trust.ErrNoProject) || err != nil && trust.OfOne(err) {
			continue
		}
		if err != nil {
			return err
		}
		channels, err := trust.Channels(role)
		if err != nil {
			return err
		}
		for name, pointer := range channels {
			if err := see(artifact.Ref{Project: project, Channel: name}, pointer, role); err != nil {
				return err
			}
		}
	}
	return nil
}
