// Package refresh signs the roles of a store again before they expire.
package refresh

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/corpus-agent/corpus-agent/artifact"
	"github.com/corpus-agent/corpus-agent/artifact/publish"
	"github.com/corpus-agent/corpus-agent/artifact/publish/proofs"
	"github.com/corpus-agent/corpus-agent/artifact/publish/roots"
	"github.com/corpus-agent/corpus-agent/artifact/store"
	"github.com/corpus-agent/corpus-agent/artifact/trust"
	"github.com/corpus-agent/corpus-agent/artifact/tuf"
)

// Standing describes the expiry of a role, and whether it was renewed.
type Standing struct {
	Role    string    `json:"role"`
	Expires time.Time `json:"expires,omitzero"` // zero if the role cannot be read
	Renewed bool      `json:"renewed"`
	Left    bool      `json:"left"`          // it should have been signed again, and was not
	Why     string    `json:"why,omitempty"` // reason why it was not
}

// Roles signs the roles again that expire within a time, as far as the available keys suffice: the timestamp always,
// the snapshot when it is due, and root, targets and projects if their keys are available. It needs only the keys of
// snapshot and timestamp, and reports the roles that it could not sign.
func Roles(ctx context.Context, p *publish.Publisher, within time.Duration) ([]Standing, error) {
	root, err := refreshRoot(ctx, p, within)
	if err != nil {
		return nil, err
	}
	var list []Standing
	err = p.Change(ctx, func(n *publish.Next) error {
		list = []Standing{root}
		for _, name := range append([]string{tuf.RoleTargets}, n.Client.Projects()...) {
			s, err := refreshRole(ctx, n, name, within)
			if err != nil {
				return err
			}
			list = append(list, s...)
		}
		proofs, err := expiringProofs(ctx, n, within)
		if err != nil {
			return err
		}
		list = append(list, proofs...)
		lost, torn, err := lost(ctx, n)
		if err != nil {
			return err
		}
		list = append(list, lost...)
		snapshot := n.Client.Trusted().Snapshot.Signed.Expires
		fresh, err := freshKey(p, tuf.RoleSnapshot, n.Client.Delegation(tuf.RoleSnapshot),
			n.Client.Trusted().Snapshot.Signatures)
		if err != nil {
			return err
		}
		n.Brief = len(n.Roles) == 0 && !fresh && !torn && p.Time().Add(within).Before(snapshot)
		expiry := p.Expiry.WithDefaults()
		if !n.Brief {
			snapshot = p.Expires(expiry.Snapshot)
		}
		list = append(list, Standing{Role: tuf.RoleSnapshot, Expires: snapshot, Renewed: !n.Brief},
			Standing{Role: tuf.RoleTimestamp, Expires: p.Expires(expiry.Timestamp), Renewed: true})
		return nil
	})
	return list, err
}

func refreshRoot(ctx context.Context, p *publish.Publisher, within time.Duration) (Standing, error) {
	n, err := p.Read(ctx)
	if err != nil {
		return Standing{}, err
	}
	s := Standing{Role: tuf.RoleRoot, Expires: n.Client.Trusted().Root.Signed.Expires}
	if p.Time().Add(within).Before(s.Expires) {
		return s, nil
	}
	result, err := roots.Apply(ctx, p, roots.Change{Renew: true})
	var short *publish.Short
	if errors.As(err, &short) {
		s.Left, s.Why = true, err.Error()
		return s, nil
	}
	s.Expires, s.Renewed = result.Expires, err == nil
	return s, err
}

// refreshRole adds a role to the change if it is due. It does nothing for a project that never published.
func refreshRole(ctx context.Context, n *publish.Next, name string, within time.Duration) ([]Standing, error) {
	p := n.Publisher
	role := n.Client.Trusted().Targets[tuf.RoleTargets]
	if name != tuf.RoleTargets {
		var err error
		role, err = n.Client.Project(ctx, name)
		var refused *trust.Refused
		switch {
		case errors.Is(err, trust.ErrNoProject):
			return nil, nil
		case errors.As(err, &refused):
			return []Standing{{Role: name, Left: true, Why: err.Error()}}, nil
		case errors.Is(err, store.ErrNotFound):
			return []Standing{{Role: name, Left: true,
				Why: fmt.Sprintf(
					"its file is lost: %v; `corpus refresh --rebuild` restores it if it can; otherwise `corpus export %s`, "+
						"sign and import the rest", err, name)}}, nil
		case err != nil:
			return nil, err
		}
	}
	s := Standing{Role: name, Expires: role.Signed.Expires}
	if p.Time().Add(within).Before(s.Expires) {
		fresh, err := freshKey(p, name, n.Client.Delegation(name), role.Signatures)
		if !fresh || err != nil {
			return []Standing{s}, err
		}
	}
	_, err := p.KeysFor(name, n.Client.Delegation(name))
	var short *publish.Short
	switch {
	case errors.As(err, &short):
		s.Left, s.Why = true, err.Error()
	case err != nil:
		return nil, err
	default:
		n.Roles[name] = role
		s.Renewed, s.Expires = true, p.Expires(p.Expiry.WithDefaults().Snapshot)
	}
	return []Standing{s}, nil
}

// freshKey reports whether the available keys suffice to sign a role and one of them has not signed it. Such a key was
// added since, and has to sign before the key that it replaces can be removed.
func freshKey(p *publish.Publisher, role string, may trust.Delegation, signed []tuf.Signature) (bool, error) {
	held, err := p.Held(role)
	if err != nil {
		return false, err
	}
	held = slices.DeleteFunc(held, func(id string) bool { return !slices.Contains(may.Keys, id) })
	return len(held) >= may.Threshold && slices.ContainsFunc(held, func(id string) bool {
		return !slices.ContainsFunc(signed, func(s tuf.Signature) bool { return s.KeyID == id })
	}), nil
}

// expiringProofs returns the proofs of channels that expire within a time. Signing them again needs the attestation
// key, and putting them into pointers needs the project's key.
func expiringProofs(ctx context.Context, n *publish.Next, within time.Duration) (list []Standing, err error) {
	err = proofs.EachPointer(ctx, n, func(ref artifact.Ref, pointer trust.Pointer, _ *trust.Role) error {
		required, err := n.Client.Requirement(ref)
		proof := proofs.Carried(pointer)
		if err != nil || required == nil || proof == nil || n.Publisher.Time().Add(within).Before(proof.Expires) {
			return err
		}
		list = append(list, Standing{Role: "the proof of " + ref.String(), Expires: proof.Expires, Left: true,
			Why: fmt.Sprintf("it is renewed by `corpus attest %s %s --renew`, then `corpus promote %s %s %s`", ref.Project,
				required.From, ref.Project, ref.Channel, ref.Channel)})
		return nil
	})
	slices.SortFunc(list, func(a, b Standing) int { return strings.Compare(a.Role, b.Role) })
	return list, err
}
