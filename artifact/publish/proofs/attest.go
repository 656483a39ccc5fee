// Package proofs creates proofs that a release was healthy on the hosts of a channel, and finds the proof for a
// promotion to another channel.
package proofs

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/corpus-agent/corpus-agent/artifact"
	"github.com/corpus-agent/corpus-agent/artifact/publish"
	"github.com/corpus-agent/corpus-agent/artifact/publish/keyring"
	"github.com/corpus-agent/corpus-agent/artifact/store"
	"github.com/corpus-agent/corpus-agent/artifact/trust"
	"github.com/corpus-agent/corpus-agent/artifact/tuf"
	"github.com/corpus-agent/corpus-agent/state/diag"
)

// Attested is the result of Attest.
type Attested struct {
	trust.Attestation
	Expires time.Time      `json:"expires"`
	Keys    []string       `json:"keys"`    // IDs of the keys that signed it
	Missing int            `json:"missing"` // signatures that are still needed
	Key     string         `json:"key"`     // key of the proof in the store
	For     []artifact.Ref `json:"for"`     // channels that require it
}

// Case is a release to attest, with the state of the store at the time when it was read.
type Case struct {
	Ref     artifact.Ref
	Release artifact.Release
	// Demand is the strictest requirement of the channels, or the defaults if none requires the proof.
	Demand trust.Requirement
	For    []artifact.Ref // these channels

	store *publish.Next
}

// Prepare reads the release to attest: a version, or the release that the channel names if version is "".
func Prepare(ctx context.Context, p *publish.Publisher, ref artifact.Ref, version string) (Case, error) {
	c := Case{Ref: ref}
	if err := publish.CheckRef(ref); err != nil {
		return c, err
	}
	var err error
	if c.store, err = p.View(ctx); err != nil {
		return c, err
	}
	if c.Release, err = c.store.Release(ctx, ref, version); err != nil {
		return c, err
	}
	c.Demand, c.For, err = demandOn(c.store, ref)
	return c, err
}

// demandOn returns the strictest requirement that channels of a project have of a channel, or the defaults if there is
// none, and these channels.
func demandOn(n *publish.Next, from artifact.Ref) (trust.Requirement, []artifact.Ref, error) {
	demand := trust.Requirement{From: from.Channel, Hosts: trust.DefaultHosts, Fresh: trust.DefaultFresh,
		Holds: trust.DefaultHolds}
	all, err := trust.Requirements(n.Client.Trusted().Targets[tuf.RoleTargets])
	if err != nil {
		return demand, nil, err
	}
	refs := []artifact.Ref{}
	for name, q := range all {
		ref, err := artifact.ParseRef(name)
		if err != nil || ref.Project != from.Project || q.From != from.Channel {
			continue
		}
		if len(refs) == 0 {
			demand = q
		}
		demand.Hosts, demand.Fresh, demand.Holds = max(demand.Hosts, q.Hosts), min(demand.Fresh, q.Fresh),
			min(demand.Holds, q.Holds)
		demand.Signed = demand.Signed || q.Signed
		refs = append(refs, ref)
	}
	slices.SortFunc(refs, func(a, b artifact.Ref) int { return strings.Compare(a.Channel, b.Channel) })
	return demand, refs, nil
}

// Attest signs a proof that hosts of a channel have reported a release healthy, and writes it to the store, where a
// promotion finds it. It needs only the attestation key. If several keys have to sign, each of their owners calls
// Attest: it adds a signature to the proof in the store if its hosts are all among the given ones.
func Attest(ctx context.Context, p *publish.Publisher, c Case, hosts []trust.Healthy) (Attested, error) {
	if len(hosts) < c.Demand.Hosts {
		return Attested{}, fewHosts(c.Ref, c.Release, len(hosts), c.Demand)
	}
	proof := trust.Attestation{
		Project: c.Ref.Project, Channel: c.Ref.Channel, Version: c.Release.Version, Digest: c.Release.Digest,
		At: p.Time().UTC().Truncate(time.Second), Hosts: hosts[:min(len(hosts), trust.MaxHosts)],
	}
	role, err := trust.NewProof(proof, p.Time().Add(c.Demand.HoldsFor()))
	if err != nil {
		return Attested{}, err
	}
	result, err := putProof(ctx, c.store, role, c.Demand, func(there *trust.Proof) bool { return there.Within(hosts) })
	result.For = c.For
	return result, err
}

func fewHosts(ref artifact.Ref, release artifact.Release, n int, q trust.Requirement) error {
	return &Unproven{err: diag.Proof.Hint(fmt.Errorf("%d of %d hosts of %s reported %s healthy in the last %d days", n,
		q.Hosts, ref, release, q.Fresh),
		"let hosts of %s deploy it with `reports.upload` on in agent.yaml, then run this again", ref)}
}

// Unproven is the error for a release whose health was not proven.
type Unproven struct{ err error }

func (u *Unproven) Error() string { return u.err.Error() }

// Unwrap returns the error with the missing proof.
func (u *Unproven) Unwrap() error { return u.err }

// putProof signs a proof and puts it into the store. If the store has a proof that still lacks signatures and that
// agree accepts, putProof signs that one instead, so that the signatures of several people come together.
func putProof(ctx context.Context, n *publish.Next, role *trust.Role, demand trust.Requirement,
	agree func(*trust.Proof) bool) (Attested, error) {
	may := n.Client.Delegation(trust.AttestationRole)
	if may.Threshold == 0 {
		return Attested{},
			publish.NewMistake(diag.Proof,
				"make a key with `corpus keys new attestation`, and have it let in with `corpus project add attestation --key "+
					"attestation.pub`", "the store has no attestation key")
	}
	keys, others, err := n.Publisher.AtHand(trust.AttestationRole, may)
	if err != nil {
		return Attested{}, err
	}
	if len(keys) == 0 {
		return Attested{}, &publish.Short{Role: trust.AttestationRole, May: may, Others: others,
			Advice: diag.HintOf(n.Publisher.Keys.Missing(trust.AttestationRole))}
	}
	for range publish.Attempts {
		result, err := tryPutProof(ctx, n, role, keys, demand, agree)
		if !errors.Is(err, store.ErrPrecondition) {
			return result, err
		}
	}
	return Attested{}, diag.Busy.Hint(errors.New("others kept attesting at the same time"), "run the command again")
}

func tryPutProof(ctx context.Context, n *publish.Next, role *trust.Role, keys []keyring.Key, demand trust.Requirement,
	agree func(*trust.Proof) bool) (Attested, error) {
	fresh, err := proofOf(role)
	if err != nil {
		return Attested{}, err
	}
	key := trust.ProofKey(fresh.Project, fresh.Channel, fresh.Digest)
	there, etag, err := storedProof(ctx, n.Publisher, key)
	if err != nil {
		return Attested{}, err
	}
	now := n.Publisher.Time()
	targets := n.Client.Trusted().Targets[tuf.RoleTargets]
	claim := trust.Claim{Ref: artifact.Ref{Project: fresh.Project},
		Pointer: trust.Pointer{Version: fresh.Version, Digest: fresh.Digest}, Requirement: demand}
	if there != nil && there.Says(claim, now) == nil && there.Holds(claim, targets, now) != nil && agree(there) {
		role = there.Role
	} else {
		role.Signatures = []tuf.Signature{}
	}
	if err := publish.AddSignatures(role, keys); err != nil {
		return Attested{}, err
	}
	data, err := role.ToBytes()
	if err != nil {
		return Attested{}, err
	}
	cond := store.Condition{IfMatch: etag, IfAbsent: etag == ""}
	if _, err := n.Publisher.Store.Put(ctx, key, bytes.NewReader(data), int64(len(data)), cond); err != nil {
		return Attested{}, err
	}
	return attested(n, key, data)
}

// attested describes a proof that was written.
func attested(n *publish.Next, key string, data []byte) (Attested, error) {
	proof, err := trust.ParseProof(data)
	if err != nil {
		return Attested{}, err
	}
	may := n.Client.Delegation(trust.AttestationRole)
	have := 0
	for _, id := range may.Keys {
		if slices.Contains(proof.Keys, id) {
			have++
		}
	}
	return Attested{Attestation: proof.Attestation, Expires: proof.Expires, Keys: proof.Keys,
		Missing: max(0, may.Threshold-have), Key: key}, nil
}

func proofOf(role *trust.Role) (*trust.Proof, error) {
	data, err := role.ToBytes()
	if err != nil {
		return nil, err
	}
	return trust.ParseProof(data)
}

// storedProof reads a proof from the store. It returns nil if there is none that can be read.
func storedProof(ctx context.Context, p *publish.Publisher, key string) (*trust.Proof, string, error) {
	body, info, err := p.Store.Get(ctx, key, 0)
	if errors.Is(err, store.ErrNotFound) || errors.Is(err, store.ErrForbidden) {
		return nil, "", nil
	}
	if err != nil {
		return nil, "", err
	}
	if err := body.Close(); err != nil {
		return nil, "", err
	}
	data, err := trust.ReadMetadata(ctx, p.Store, key)
	if err != nil {
		return nil, "", err
	}
	proof, err := trust.ParseProof(data)
	if err != nil {
		return nil, info.ETag, nil // a proof that cannot be parsed is replaced
	}
	return proof, info.ETag, nil
}
