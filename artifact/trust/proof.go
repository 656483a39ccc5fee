package trust

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/corpus-agent/corpus-agent/artifact"
	"github.com/corpus-agent/corpus-agent/artifact/tuf"
	"github.com/corpus-agent/corpus-agent/state/diag"
)

// AttestationRole is the role whose keys sign that a release was healthy on a channel. Targets delegates it like a
// project, so its keys are rotated and revoked in the same way.
const AttestationRole = "attestation"

// attestationField holds the Attestation in the signed part of a proof.
const attestationField = "attestation"

// MaxHosts is the maximum number of hosts in a proof.
const MaxHosts = 100

// Attestation is the signed statement that a release was on a channel, and that these hosts reported it
// healthy there.
type Attestation struct {
	Project string          `json:"project"`
	Channel string          `json:"channel"`
	Version string          `json:"version"`
	Digest  artifact.Digest `json:"digest"`
	At      time.Time       `json:"at"` // when the reports were read
	Hosts   []Healthy       `json:"hosts"`
}

// Healthy is a host that reported a release healthy.
type Healthy struct {
	Host string    `json:"host"`
	Run  string    `json:"run"` // ID of its report
	At   time.Time `json:"at"`  // end of that run
	// OtherRoot is set if the run worked below another root, where units and probes are not checked. The attesting
	// person allowed that.
	OtherRoot bool `json:"other_root,omitempty"`
	// Signed is set if the report was signed with the key that the host registered.
	Signed bool `json:"signed,omitempty"`
}

// Proof is a signed Attestation. It has the form of targets metadata of the attestation role, so that thresholds and
// expiry work as for all metadata. It is not in the snapshot: it is part of the pointer that needs it.
type Proof struct {
	Attestation
	Role    *Role // the signed file
	Expires time.Time
	Keys    []string // IDs of keys that signed it, unverified
}

// NewProof returns an unsigned proof.
func NewProof(a Attestation, expires time.Time) (*Role, error) {
	role := tuf.NewTargets(expires.UTC().Truncate(time.Second))
	return role, setField(role, attestationField, a)
}

// ParseProof parses a proof. It must not be trusted before Holds has checked it.
func ParseProof(data []byte) (*Proof, error) {
	var p *Proof
	err := Guard(func() error {
		role, err := Decode[tuf.TargetsType](data)
		if err != nil {
			return err
		}
		var a Attestation
		if err := readField(role, attestationField, &a); err != nil {
			return err
		}
		if a.Project == "" {
			return errors.New("it attests nothing")
		}
		p = &Proof{Attestation: a, Role: role, Expires: role.Signed.Expires, Keys: SignedBy(data)}
		return nil
	})
	return p, err
}

// ProofKey returns the key under which a store keeps a proof until a pointer includes it.
func ProofKey(project, channel string, digest artifact.Digest) string {
	return "attestations/" + project + "/" + channel + "." + digest.Hex() + ".json"
}

// Claim is the fact that a proof must show: a channel's pointer meets the channel's requirement.
type Claim struct {
	Ref     artifact.Ref
	Pointer Pointer
	Requirement
}

// Holds checks a proof against a claim, with the keys that targets has now. If now is zero, checks that depend on the
// time are skipped.
func (p *Proof) Holds(claim Claim, targets *Role, now time.Time) error {
	if err := SignedProof(p, targets); err != nil {
		return err
	}
	return p.Says(claim, now)
}

// SignedProof checks only the signatures of a proof.
func SignedProof(p *Proof, targets *Role) error {
	return Guard(func() error { return targets.VerifyDelegate(AttestationRole, p.Role) })
}

// Says is like Holds without the check of the signatures.
func (p *Proof) Says(claim Claim, now time.Time) error {
	for _, c := range []struct{ what, is, want string }{
		{"project", p.Project, claim.Ref.Project},
		{"channel", p.Channel, claim.From},
		{"version", p.Version, claim.Pointer.Version},
		{"digest", string(p.Digest), string(claim.Pointer.Digest)},
	} {
		if c.is != c.want {
			return fmt.Errorf("its %s is %s, not %s", c.what, Printable(c.is), c.want)
		}
	}
	if n := p.healthy(claim.FreshFor(), claim.Signed); n < claim.Hosts {
		with := ""
		if claim.Signed {
			with = " with signed reports"
		}
		return fmt.Errorf("it names %s%s, and %d are required", diag.Count(n, "host"), with, claim.Hosts)
	}
	if now.IsZero() {
		return nil
	}
	if p.At.After(now.Add(ClockTolerance)) {
		return fmt.Errorf("it says that it was made at %s, and now is %s", p.At.Format(time.RFC3339),
			now.UTC().Format(time.RFC3339))
	}
	return expired(p.Expires, now)
}

// Within reports whether hosts contains every report that the proof names.
func (p *Proof) Within(hosts []Healthy) bool {
	for _, h := range p.Hosts {
		if !slices.ContainsFunc(hosts, func(other Healthy) bool { return other.Host == h.Host && other.Run == h.Run }) {
			return false
		}
	}
	return true
}

// Same reports whether two proofs attest the same facts.
func (p *Proof) Same(q *Proof) bool {
	return p.Project == q.Project && p.Channel == q.Channel && p.Digest == q.Digest && p.At.Equal(q.At) &&
		len(p.Hosts) == len(q.Hosts) && p.Within(q.Hosts)
}

// healthy counts the hosts whose reports were recent enough when they were attested, and signed if that is required.
func (p *Proof) healthy(fresh time.Duration, signed bool) int {
	var names []string
	for _, h := range p.Hosts[:min(len(p.Hosts), MaxHosts)] {
		age := p.At.Sub(h.At)
		if h.Host != "" && (h.Signed || !signed) && age <= fresh && age >= -ClockTolerance &&
			!slices.Contains(names, h.Host) {
			names = append(names, h.Host)
		}
	}
	return len(names)
}

// CheckPointer checks that a channel may point where it does: it has no requirement, or its proof is valid. The proof
// is nil if there is no requirement or the pointer has no proof that can be parsed.
func (c *Client) CheckPointer(ref artifact.Ref, pointer Pointer, now time.Time) (*Proof, error) {
	required, err := c.Requirement(ref)
	if err != nil || required == nil {
		return nil, err
	}
	if len(pointer.Proof) == 0 {
		return nil, c.unproven(ref, *required, nil,
			fmt.Errorf("%s requires proof that %s was healthy on %s, and carries none", ref, pointer.Version, required.From))
	}
	proof, err := ParseProof(pointer.Proof)
	if err != nil {
		return nil, c.unproven(ref, *required, nil, fmt.Errorf("reading its proof: %w", err))
	}
	if err := proof.Holds(Claim{Ref: ref, Pointer: pointer, Requirement: *required},
		c.set.Targets[targetsRole], now); err != nil {
		return proof, c.unproven(ref, *required, proof.Keys, fmt.Errorf("its proof does not hold: %w", err))
	}
	return proof, nil
}

// unproven returns the refusal of a pointer without a valid proof.
func (c *Client) unproven(ref artifact.Ref, q Requirement, by []string, err error) error {
	refused := &Refused{Check: CheckProof, Of: ref.String(), By: by, May: c.Delegation(AttestationRole), Err: err}
	return diag.Proof.Hint(refused, "%s", ProveHint(ref, q.From))
}

// ProveHint returns a hint with the commands that create a proof for a channel.
func ProveHint(ref artifact.Ref, from string) string {
	return fmt.Sprintf("run `corpus attest %s %s` where the attestation key is, then `corpus promote %s %s %s`",
		ref.Project, from, ref.Project, from, ref.Channel)
}

// proven is like CheckPointer for a host, which also refuses a proof older than the newest one seen for the channel: an
// old proof, of bytes that were healthy once, would otherwise be valid until it expires.
func (c *Client) proven(ref artifact.Ref, pointer Pointer) error {
	now := c.set.RefTime
	proof, err := c.CheckPointer(ref, pointer, now)
	if err != nil || proof == nil {
		return err
	}
	last, err := c.seen.proofs()
	if err != nil {
		return err
	}
	before := last[ref.String()]
	switch {
	case proof.At.Before(before):
		return c.unproven(ref, Requirement{From: proof.Channel}, proof.Keys,
			fmt.Errorf("its proof is of %s, and this host has seen one of %s", proof.At.Format(time.RFC3339),
				before.Format(time.RFC3339)))
	case proof.At.Equal(before) || c.renew:
		return nil
	}
	last[ref.String()] = proof.At
	return c.seen.keepProofs(last)
}

const proofsFile = "proofs.json" // project/channel -> time of the newest proof seen

func (s seen) proofs() (map[string]time.Time, error) {
	last := map[string]time.Time{}
	data, err := s.load(proofsFile)
	if err != nil || data == nil {
		return last, err
	}
	if err := json.Unmarshal(data, &last); err != nil {
		return nil, diag.Records.Hint(fmt.Errorf("reading %s: %w", proofsFile, err),
			"remove it from %s: it is created again", s.dir)
	}
	return last, nil
}

func (s seen) keepProofs(last map[string]time.Time) error {
	data, err := json.Marshal(last)
	if err != nil {
		return err
	}
	return s.keep(proofsFile, data)
}
