package publish

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/corpus-agent/corpus-agent/artifact"
	"github.com/corpus-agent/corpus-agent/artifact/store"
	"github.com/corpus-agent/corpus-agent/artifact/trust"
	"github.com/corpus-agent/corpus-agent/artifact/tuf"
	"github.com/corpus-agent/corpus-agent/state/diag"
)

// Renew signs anew the proofs of a channel that other channels of the project carry, with the same
// content and a later expiry, and puts them into the store. No report is read: what a channel
// carries, and what holds but for its expiry, was shown once.
func (p *Publisher) Renew(ctx context.Context, from artifact.Ref) ([]Attested, error) {
	if err := checkRef(from); err != nil {
		return nil, err
	}
	n, err := p.Look(ctx)
	if err != nil {
		return nil, err
	}
	demand, refs, err := n.demand(from)
	if err != nil {
		return nil, err
	}
	var renewed []Attested
	err = n.eachPointer(ctx, func(ref artifact.Ref, pointer trust.Pointer, _ *trust.Role) error {
		proof := carried(pointer)
		if ref.Project != from.Project || proof == nil || proof.Channel != from.Channel {
			return nil
		}
		if err := trust.SignedProof(proof, n.Client.Trusted().Targets[tuf.RoleTargets]); err != nil {
			return &Unproven{err: diag.WithHint(fmt.Errorf("the proof that %s carries is not signed by a key that may: %w", ref, err), "attest it by reports: `corpus attest %s %s %s`", from.Project, from.Channel, proof.Version)}
		}
		role, err := trust.NewProof(proof.Attestation, p.Time().Add(demand.HoldsFor()))
		if err != nil {
			return err
		}
		result, err := n.putProof(ctx, role, demand, proof.Same)
		result.For = refs
		renewed = append(renewed, result)
		return err
	})
	if err == nil && len(renewed) == 0 {
		err = mistake("attest by reports, without --renew", "no channel of %s carries a proof of %s", from.Project, from)
	}
	return renewed, err
}

// rotateAttestation replaces attestation keys. What channels carry is signed with the new keys in the
// same commit, so that hosts follow at any moment. A project whose keys are not at hand has to take
// its proofs in first; until then the old keys stay.
func (p *Publisher) rotateAttestation(ctx context.Context, fresh []*tuf.Key, old []string) error {
	before, err := p.Keys.Public(trust.AttestationRole)
	if err != nil {
		return err
	}
	var left []artifact.Ref
	err = p.Change(ctx, func(n *Next) error {
		left = nil
		if !n.delegates(trust.AttestationRole) {
			return noProject(trust.AttestationRole)
		}
		good, err := n.signedProofs(ctx)
		if err != nil {
			return err
		}
		if err := n.swapKeys(trust.AttestationRole, fresh, old); err != nil {
			return err
		}
		if left, err = n.resignProofs(ctx, good); err != nil || len(left) == 0 {
			return err
		}
		return n.delegate(trust.AttestationRole, before)
	})
	if err != nil || len(left) == 0 {
		return err
	}
	var promotions []string
	for _, ref := range left {
		promotions = append(promotions, fmt.Sprintf("`corpus promote %s %s %s`", ref.Project, ref.Channel, ref.Channel))
	}
	return diag.WithHint(errors.New("the new key is let in, and proofs that channels carry are signed with it; the old key stays until the channels take these in"),
		"let who has the projects' keys run %s, then run the command again", strings.Join(promotions, ", "))
}

// signedPointer is a channel whose proof is signed by keys that may.
type signedPointer struct {
	ref     artifact.Ref
	pointer trust.Pointer
	role    *trust.Role
	proof   *trust.Proof
}

// signedProofs lists the channels whose proofs are signed as targets stands.
func (n *Next) signedProofs(ctx context.Context) (list []signedPointer, err error) {
	targets := n.Client.Trusted().Targets[tuf.RoleTargets]
	err = n.eachPointer(ctx, func(ref artifact.Ref, pointer trust.Pointer, role *trust.Role) error {
		if proof := carried(pointer); proof != nil && trust.SignedProof(proof, targets) == nil {
			list = append(list, signedPointer{ref, pointer, role, proof})
		}
		return nil
	})
	return list, err
}

// resignProofs signs with the keys at hand the proofs whose signatures no longer suffice, and tells
// of which channels the project's keys are not at hand.
func (n *Next) resignProofs(ctx context.Context, good []signedPointer) (left []artifact.Ref, err error) {
	for _, g := range good {
		if trust.SignedProof(g.proof, n.targets()) == nil {
			continue
		}
		data, err := n.resignProof(g.proof)
		if err != nil {
			return nil, err
		}
		var short *Short
		_, err = n.publisher.KeysFor(g.ref.Project, n.Client.Delegation(g.ref.Project))
		switch {
		case errors.As(err, &short):
			left = append(left, g.ref)
			key := trust.ProofKey(g.proof.Project, g.proof.Channel, g.proof.Digest)
			_, err = n.publisher.Store.Put(ctx, key, bytes.NewReader(data), int64(len(data)), store.Condition{})
		case err == nil:
			g.pointer.Proof = data
			err = n.repoint(g)
		}
		if err != nil {
			return nil, err
		}
	}
	return left, nil
}

// repoint writes a channel's pointer as it is now.
func (n *Next) repoint(g signedPointer) error {
	channels, err := trust.Channels(g.role)
	if err != nil {
		return err
	}
	channels[g.ref.Channel] = g.pointer
	n.Roles[g.ref.Project] = g.role
	return trust.SetChannels(g.role, channels)
}

func (n *Next) resignProof(proof *trust.Proof) ([]byte, error) {
	keys, _, err := n.publisher.atHand(trust.AttestationRole, n.Client.Delegation(trust.AttestationRole))
	if err != nil {
		return nil, err
	}
	if err := addSignatures(proof.Role, keys); err != nil {
		return nil, err
	}
	return proof.Role.ToBytes()
}
