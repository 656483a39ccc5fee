package proofs

import (
	"context"
	"fmt"

	"github.com/corpus-agent/corpus-agent/artifact"
	"github.com/corpus-agent/corpus-agent/artifact/publish"
	"github.com/corpus-agent/corpus-agent/artifact/trust"
	"github.com/corpus-agent/corpus-agent/artifact/tuf"
	"github.com/corpus-agent/corpus-agent/state/diag"
)

// Renew signs again the proofs of a channel that are in pointers of other channels of the project, with the same
// content and a later expiry, and writes them to the store. It reads no reports: each proof was valid when it was put
// into the pointer, and only its expiry has passed since.
func Renew(ctx context.Context, p *publish.Publisher, from artifact.Ref) ([]Attested, error) {
	if err := publish.CheckRef(from); err != nil {
		return nil, err
	}
	n, err := p.View(ctx)
	if err != nil {
		return nil, err
	}
	demand, refs, err := demandOn(n, from)
	if err != nil {
		return nil, err
	}
	var renewed []Attested
	err = EachPointer(ctx, n, func(ref artifact.Ref, pointer trust.Pointer, _ *trust.Role) error {
		proof := Carried(pointer)
		if ref.Project != from.Project || proof == nil || proof.Channel != from.Channel {
			return nil
		}
		if err := trust.SignedProof(proof, n.Client.Trusted().Targets[tuf.RoleTargets]); err != nil {
			return &Unproven{err: diag.Proof.Hint(fmt.Errorf("the proof that %s carries is not signed by a key that may: %w",
				ref, err), "attest it by reports: `corpus attest %s %s %s`", from.Project, from.Channel, proof.Version)}
		}
		role, err := trust.NewProof(proof.Attestation, p.Time().Add(demand.HoldsFor()))
		if err != nil {
			return err
		}
		result, err := putProof(ctx, n, role, demand, proof.Same)
		result.For = refs
		renewed = append(renewed, result)
		return err
	})
	if err == nil && len(renewed) == 0 {
		err = publish.NewMistake(diag.Proof, "attest by reports, without --renew",
			"no channel of %s carries a proof of %s", from.Project,
			from)
	}
	return renewed, err
}
