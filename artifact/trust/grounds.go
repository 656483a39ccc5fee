package trust

import (
	"fmt"
	"time"

	"github.com/corpus-agent/corpus-agent/artifact"
	"github.com/corpus-agent/corpus-agent/artifact/tuf"
	"github.com/corpus-agent/corpus-agent/state/diag"
)

// Grounds are the reasons why a channel may point where it does.
type Grounds struct {
	Promoted Promotion    `json:"promoted"`
	Requires *Requirement `json:"requires,omitempty"`
	By       string       `json:"by,omitempty"` // the file with the requirement, and its version
	Proof    *Shown       `json:"proof,omitempty"`
	Refused  string       `json:"refused,omitempty"` // reason why hosts refuse it
	Hint     string       `json:"hint,omitempty"`
}

// Promotion has the signature of a channel's pointer.
type Promotion struct {
	By     string   `json:"by"`     // the project's file with the pointer, and its version
	Serial int64    `json:"serial"` // number of moves of the channel
	Keys   []string `json:"keys"`   // IDs of the keys that signed it, each verified
}

// Shown is a proof in the output of a command.
type Shown struct {
	Attestation
	Expires time.Time `json:"expires"`
	Keys    []string  `json:"keys"` // IDs of the authorized keys that signed it, each verified
}

// grounds returns the reasons why a channel may point where it does. If the result has a refusal, its proof is not
// valid.
func (c *Client) grounds(ref artifact.Ref, pointer Pointer, project *Role) Grounds {
	g := Grounds{Promoted: Promotion{
		By: fmt.Sprintf("%s %d", ref.Project, project.Signed.Version), Serial: pointer.Serial,
		Keys: c.signers(ref.Project, project),
	}}
	required, err := c.Requirement(ref)
	if required != nil {
		g.Requires, g.By = required, c.Delegation(AttestationRole).By
	}
	if proof, parseErr := ParseProof(pointer.Proof); parseErr == nil {
		g.Proof = &Shown{Attestation: proof.Attestation, Expires: proof.Expires, Keys: c.signers(AttestationRole, proof.Role)}
	}
	if err == nil {
		_, err = c.CheckPointer(ref, pointer, c.set.RefTime)
	}
	if err != nil {
		g.Refused, g.Hint = err.Error(), diag.HintOf(err)
	}
	return g
}

// signers returns the keys that may sign a delegated role and have signed this version, each verified separately.
func (c *Client) signers(name string, role *Role) []string {
	ids := []string{}
	for _, id := range c.Delegation(name).Keys {
		alone := tuf.NewTargets(time.Now().UTC())
		alone.Signed.Delegations = &tuf.Delegations{
			Keys:  c.set.Targets[targetsRole].Signed.Delegations.Keys,
			Roles: []tuf.DelegatedRole{{Name: name, KeyIDs: []string{id}, Threshold: 1}},
		}
		if Guard(func() error { return alone.VerifyDelegate(name, role) }) == nil {
			ids = append(ids, id)
		}
	}
	return ids
}
