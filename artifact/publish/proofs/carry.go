package proofs

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	"github.com/corpus-agent/corpus-agent/artifact"
	"github.com/corpus-agent/corpus-agent/artifact/publish"
	"github.com/corpus-agent/corpus-agent/artifact/trust"
	"github.com/corpus-agent/corpus-agent/artifact/tuf"
	"github.com/corpus-agent/corpus-agent/state/diag"
)

// Prove returns the proof for a new pointer: the newer one of the proof in the store and the proof in the previous
// pointer. A channel that requires no proof has one in its pointer if it exists, so that it can be required later.
func Prove(ctx context.Context, n *publish.Next, ref artifact.Ref, pointer, before trust.Pointer,
	from string) (json.RawMessage, error) {
	required, err := n.Client.Requirement(ref)
	if err != nil {
		return nil, err
	}
	demand := trust.Requirement{From: from, Hosts: trust.DefaultHosts, Fresh: trust.DefaultFresh,
		Holds: trust.DefaultHolds}
	if required != nil {
		demand = *required
	}
	if demand.From == "" {
		return nil, nil
	}
	stored, _, err := storedProof(ctx, n.Publisher, trust.ProofKey(ref.Project, demand.From, pointer.Digest))
	if err != nil {
		return nil, err
	}
	best := newest(n, trust.Claim{Ref: ref, Pointer: pointer, Requirement: demand}, stored, Carried(before))
	if required == nil && best == nil {
		return nil, nil
	}
	if best == nil {
		best = stored // for an error that gives its fault
	}
	if best != nil {
		if pointer.Proof, err = best.Role.ToBytes(); err != nil {
			return nil, err
		}
	}
	if _, err := n.Client.CheckPointer(ref, pointer, n.Publisher.Time()); err != nil {
		return nil, err
	}
	return pointer.Proof, notBehind(n, ref, demand, best, Carried(before))
}

// newest returns the newest of the valid proofs.
func newest(n *publish.Next, claim trust.Claim, proofs ...*trust.Proof) (best *trust.Proof) {
	targets := n.Client.Trusted().Targets[tuf.RoleTargets]
	for _, p := range proofs {
		if p == nil || p.Holds(claim, targets, n.Publisher.Time()) != nil {
			continue
		}
		if best == nil || p.At.After(best.At) || p.At.Equal(best.At) && p.Expires.After(best.Expires) {
			best = p
		}
	}
	return best
}

// notBehind returns an error for a proof that hosts would refuse because they have seen a newer one.
func notBehind(n *publish.Next, ref artifact.Ref, q trust.Requirement, now, before *trust.Proof) error {
	targets := n.Client.Trusted().Targets[tuf.RoleTargets]
	if before == nil || now == nil || !now.At.Before(before.At) || trust.SignedProof(before, targets) != nil {
		return nil
	}
	return &Unproven{err: diag.Proof.Hint(
		fmt.Errorf("the proof that %s was healthy on %s is older than the one that %s carries now, and hosts take none "+
			"that is older", now.Version, q.From, ref),
		"attest it again: `corpus attest %s %s %s`", ref.Project, q.From, now.Version)}
}

// Carried returns the proof in a pointer, or nil if there is none that can be read.
func Carried(pointer trust.Pointer) *trust.Proof {
	if len(pointer.Proof) == 0 {
		return nil
	}
	proof, err := trust.ParseProof(pointer.Proof)
	if err != nil {
		return nil
	}
	return proof
}

// RefusedChannels returns the channels of all projects whose pointers do not meet the channel's requirement.
func RefusedChannels(ctx context.Context, n *publish.Next) ([]string, error) {
	refused := []string{}
	err := EachPointer(ctx, n, func(ref artifact.Ref, pointer trust.Pointer, _ *trust.Role) error {
		if _, err := n.Client.CheckPointer(ref, pointer, n.Publisher.Time()); err != nil {
			refused = append(refused, ref.String())
		}
		return nil
	})
	slices.Sort(refused)
	return refused, err
}

// EachPointer calls see for each channel of all projects that can be read.
func EachPointer(ctx context.Context, n *publish.Next, see func(artifact.Ref, trust.Pointer, *trust.Role) error) error {
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
