package publish

import (
	"context"
	"fmt"
	"slices"

	"github.com/corpus-agent/corpus-agent/artifact"
	"github.com/corpus-agent/corpus-agent/artifact/trust"
	"github.com/corpus-agent/corpus-agent/state/diag"
)

// Required says what a channel requires from now on, and whether hosts take what it names.
type Required struct {
	Ref         artifact.Ref       `json:"ref"`
	Requirement *trust.Requirement `json:"requirement"` // nil for a channel that requires nothing
	Refused     string             `json:"refused,omitempty"`
	Hint        string             `json:"hint,omitempty"`
}

// Require has a channel require proof of what it is to point at, or, with nil, nothing. It is signed
// with the targets key, since who publishes the project must not be able to change it.
func (p *Publisher) Require(ctx context.Context, ref artifact.Ref, q *trust.Requirement) (Required, error) {
	result := Required{Ref: ref, Requirement: q}
	if err := checkRef(ref); err != nil {
		return result, err
	}
	if q != nil {
		if err := q.Check(ref.Channel); err != nil {
			return result, mistakeOf(err)
		}
	}
	err := p.Change(ctx, func(n *Next) error {
		if !n.delegates(ref.Project) {
			return noProject(ref.Project)
		}
		if q != nil && !n.delegates(trust.AttestationRole) {
			return mistake("make one with `corpus keys new attestation`, and let it in with `corpus project add attestation --key attestation.pub`",
				"no host could be attested: the store has no attestation key")
		}
		if q != nil {
			if err := n.meantChannels(ctx, ref.Project, ref.Channel, q.From); err != nil {
				return err
			}
		}
		all, err := trust.Requirements(n.targets())
		if err != nil {
			return err
		}
		if delete(all, ref.String()); q != nil {
			all[ref.String()] = *q
		}
		if err := trust.SetRequirements(n.targets(), all); err != nil {
			return err
		}
		n.allowed = map[string]bool{ref.String(): true} // the result says so
		return n.standsUp(ctx, &result)
	})
	return result, err
}

// meantChannels refuses names of channels of a project that were probably typed by mistake.
func (n *Next) meantChannels(ctx context.Context, project string, names ...string) error {
	channels := map[string]trust.Pointer{}
	role, _, err := n.standing(ctx, project)
	if err == nil && role != nil {
		channels, err = trust.Channels(role)
	}
	if err != nil {
		return err
	}
	for _, name := range names {
		if err := n.meantChannel(name, channels); err != nil {
			return err
		}
	}
	return nil
}

// standsUp looks whether what a channel names meets what it requires now.
func (n *Next) standsUp(ctx context.Context, r *Required) error {
	role, unpublished, err := n.standing(ctx, r.Ref.Project)
	if err != nil || unpublished || role == nil {
		return err
	}
	channels, err := trust.Channels(role)
	if err != nil {
		return err
	}
	pointer, ok := channels[r.Ref.Channel]
	if !ok {
		return nil
	}
	r.Refused, r.Hint = "", ""
	if _, err := n.Client.CheckPointer(r.Ref, pointer, n.publisher.Time()); err != nil {
		r.Refused, r.Hint = err.Error(), trust.ProveHint(r.Ref, r.Requirement.From)
	}
	return nil
}

func checkRef(ref artifact.Ref) error {
	if err := trust.CheckProject(ref.Project); err != nil {
		return err
	}
	return artifact.CheckChannel(ref.Channel)
}

// ownKeys refuses a key that would sign both a project and the proofs that its channels require:
// whoever publishes could prove to themselves.
func (n *Next) ownKeys() error {
	attests := n.Client.Delegation(trust.AttestationRole).Keys
	for _, project := range n.Client.Projects() {
		for _, id := range n.Client.Delegation(project).Keys {
			if slices.Contains(attests, id) {
				return mistake("make another one with `corpus keys new attestation`", "key %s would both publish %s and attest that it works", trust.ShortKey(id), project)
			}
		}
	}
	return nil
}

// mistakeOf makes a Mistake of an error that says how to ask.
func mistakeOf(err error) error {
	return mistake(diag.HintOf(err), "%s", fmt.Sprint(err))
}
