package roots

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/corpus-agent/corpus-agent/artifact"
	"github.com/corpus-agent/corpus-agent/artifact/publish"
	"github.com/corpus-agent/corpus-agent/artifact/publish/proofs"
	"github.com/corpus-agent/corpus-agent/artifact/store"
	"github.com/corpus-agent/corpus-agent/artifact/trust"
	"github.com/corpus-agent/corpus-agent/artifact/tuf"
	"github.com/corpus-agent/corpus-agent/state/diag"
)

// rotateAttestation replaces attestation keys. The same commit signs the proofs of channels with the new keys, so that
// hosts accept them at any moment. If a project's keys are not available, its owner has to put the new proofs into
// pointers first; until then the old keys stay.
func rotateAttestation(ctx context.Context, p *publish.Publisher, fresh []*tuf.Key, old []string) error {
	before, err := p.Keys.Public(trust.AttestationRole)
	if err != nil {
		return err
	}
	var left []artifact.Ref
	err = p.Change(ctx, func(n *publish.Next) error {
		left = nil
		if !n.Delegates(trust.AttestationRole) {
			return publish.NoProject(trust.AttestationRole)
		}
		good, err := signedProofs(ctx, n)
		if err != nil {
			return err
		}
		if err := swapKeys(n, trust.AttestationRole, fresh, old); err != nil {
			return err
		}
		if left, err = resignProofs(ctx, n, good); err != nil || len(left) == 0 {
			return err
		}
		return n.Delegate(trust.AttestationRole, before)
	})
	if err != nil || len(left) == 0 {
		return err
	}
	var promotions []string
	for _, ref := range left {
		promotions = append(promotions, fmt.Sprintf("`corpus promote %s %s %s`", ref.Project, ref.Channel, ref.Channel))
	}
	return diag.Keys.Hint(
		errors.New("the new key is let in, and proofs that channels carry are signed with it; the old key stays until "+
			"the channels take these in"),
		"have the holder of the projects' keys run %s, then run the command again", strings.Join(promotions, ", "))
}

// signedPointer is a channel with a validly signed proof.
type signedPointer struct {
	ref     artifact.Ref
	pointer trust.Pointer
	role    *trust.Role
	proof   *trust.Proof
}

// signedProofs returns the channels whose proofs have valid signatures.
func signedProofs(ctx context.Context, n *publish.Next) (list []signedPointer, err error) {
	targets := n.Client.Trusted().Targets[tuf.RoleTargets]
	err = proofs.EachPointer(ctx, n, func(ref artifact.Ref, pointer trust.Pointer, role *trust.Role) error {
		if proof := proofs.Carried(pointer); proof != nil && trust.SignedProof(proof, targets) == nil {
			list = append(list, signedPointer{ref, pointer, role, proof})
		}
		return nil
	})
	return list, err
}

// resignProofs signs the proofs whose signatures no longer suffice, and returns the channels of projects whose keys are
// not available.
func resignProofs(ctx context.Context, n *publish.Next, good []signedPointer) (left []artifact.Ref, err error) {
	for _, g := range good {
		if trust.SignedProof(g.proof, n.Targets()) == nil {
			continue
		}
		data, err := resignProof(n, g.proof)
		if err != nil {
			return nil, err
		}
		var short *publish.Short
		_, err = n.Publisher.KeysFor(g.ref.Project, n.Client.Delegation(g.ref.Project))
		switch {
		case errors.As(err, &short):
			left = append(left, g.ref)
			key := trust.ProofKey(g.proof.Project, g.proof.Channel, g.proof.Digest)
			_, err = n.Publisher.Store.Put(ctx, key, bytes.NewReader(data), int64(len(data)), store.Condition{})
		case err == nil:
			g.pointer.Proof = data
			err = repoint(n, g)
		}
		if err != nil {
			return nil, err
		}
	}
	return left, nil
}

// repoint writes a channel's changed pointer.
func repoint(n *publish.Next, g signedPointer) error {
	channels, err := trust.Channels(g.role)
	if err != nil {
		return err
	}
	channels[g.ref.Channel] = g.pointer
	n.Roles[g.ref.Project] = g.role
	return trust.SetChannels(g.role, channels)
}

func resignProof(n *publish.Next, proof *trust.Proof) ([]byte, error) {
	keys, _, err := n.Publisher.AtHand(trust.AttestationRole, n.Client.Delegation(trust.AttestationRole))
	if err != nil {
		return nil, err
	}
	if err := publish.AddSignatures(proof.Role, keys); err != nil {
		return nil, err
	}
	return proof.Role.ToBytes()
}
