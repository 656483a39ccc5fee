package trust

import (
	"time"

	"github.com/corpus-agent/corpus-agent/artifact"
	"github.com/corpus-agent/corpus-agent/state/diag"
)

// Grounds are why a channel may point where it does.
type Grounds struct {
	Requires *Requirement `json:"requires,omitempty"`
	By       string       `json:"by,omitempty"` // the file that requires it, with its version
	Proof    *Shown       `json:"proof,omitempty"`
	Refused  string       `json:"refused,omitempty"` // why hosts do not take it
	Hint     string       `json:"hint,omitempty"`
}

// Shown is a proof for people.
type Shown struct {
	Attestation
	Expires time.Time `json:"expires"`
	Keys    []string  `json:"keys"` // IDs of the keys that signed it
}

// Grounds tells why a channel may point where it does; false for one that requires nothing and
// carries no proof. A proof that is shown beside a refusal is not to be believed.
func (c *Client) Grounds(ref artifact.Ref, pointer Pointer) (Grounds, bool) {
	var g Grounds
	required, err := c.Requirement(ref)
	if required != nil {
		g.Requires, g.By = required, c.Delegation(AttestationRole).By
	}
	if proof, parseErr := ParseProof(pointer.Proof); parseErr == nil {
		g.Proof = &Shown{Attestation: proof.Attestation, Expires: proof.Expires, Keys: proof.Keys}
	}
	if err == nil {
		_, err = c.CheckPointer(ref, pointer, c.set.RefTime)
	}
	if err != nil {
		g.Refused, g.Hint = err.Error(), diag.HintOf(err)
	}
	return g, g.Requires != nil || g.Proof != nil || err != nil
}
