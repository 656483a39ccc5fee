package projects

import (
	"context"
	"slices"

	"github.com/corpus-agent/corpus-agent/artifact"
	"github.com/corpus-agent/corpus-agent/artifact/publish"
	"github.com/corpus-agent/corpus-agent/artifact/trust"
	"github.com/corpus-agent/corpus-agent/state/diag"
)

// Required is the requirement of a channel, and the reason why hosts refuse its present release, if they do.
type Required struct {
	Ref         artifact.Ref       `json:"ref"`
	Requirement *trust.Requirement `json:"requirement"` // nil for a channel that requires nothing
	Refused     string             `json:"refused,omitempty"`
	Hint        string             `json:"hint,omitempty"`
}

// Require sets the proof that a channel requires of its releases; nil means none. It needs the targets key, since the
// publishers of the project must not be able to change it.
func Require(ctx context.Context, p *publish.Publisher, ref artifact.Ref, q *trust.Requirement) (Required, error) {
	result := Required{Ref: ref, Requirement: q}
	if err := publish.CheckRef(ref); err != nil {
		return result, err
	}
	if q != nil {
		if err := q.Check(ref.Channel); err != nil {
			return result, publish.MistakeOf(err)
		}
	}
	err := p.Change(ctx, func(n *publish.Next) error {
		if !n.Delegates(ref.Project) {
			return publish.NoProject(ref.Project)
		}
		if q != nil && !n.Delegates(trust.AttestationRole) {
			return publish.NewMistake(diag.Proof,
				"make one with `corpus keys new attestation`, and let it in with `corpus project add attestation --key "+
					"attestation.pub`",
				"no host could be attested: the store has no attestation key")
		}
		if q != nil {
			if err := meantChannels(ctx, n, ref.Project, ref.Channel, q.From); err != nil {
				return err
			}
		}
		all, err := trust.Requirements(n.Targets())
		if err != nil {
			return err
		}
		if delete(all, ref.String()); q != nil {
			all[ref.String()] = *q
		}
		if err := trust.SetRequirements(n.Targets(), all); err != nil {
			return err
		}
		n.Allowed = map[string]bool{ref.String(): true} // the result reports it
		return standsUp(ctx, n, &result)
	})
	return result, err
}

// meantChannels returns an error for names of channels of a project that look mistyped.
func meantChannels(ctx context.Context, n *publish.Next, project string, names ...string) error {
	channels := map[string]trust.Pointer{}
	role, _, err := n.SignedProject(ctx, project)
	if err == nil && role != nil {
		channels, err = trust.Channels(role)
	}
	if err != nil {
		return err
	}
	for _, name := range names {
		if err := n.CheckChannelName(name, channels); err != nil {
			return err
		}
	}
	return nil
}

// standsUp checks whether the release of a channel meets the new requirement.
func standsUp(ctx context.Context, n *publish.Next, r *Required) error {
	role, unpublished, err := n.SignedProject(ctx, r.Ref.Project)
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
	if _, err := n.Client.CheckPointer(r.Ref, pointer, n.Publisher.Time()); err != nil {
		r.Refused, r.Hint = err.Error(), trust.ProveHint(r.Ref, r.Requirement.From)
	}
	return nil
}

// ownKeys returns an error if a key would sign both a project and the proofs that its channels require: its owner could
// publish without independent proof.
func ownKeys(n *publish.Next) error {
	attests := n.Client.Delegation(trust.AttestationRole).Keys
	for _, project := range n.Client.Projects() {
		for _, id := range n.Client.Delegation(project).Keys {
			if slices.Contains(attests, id) {
				return publish.NewMistake(diag.Keys, "make another one with `corpus keys new attestation`",
					"key %s would both publish %s and attest that it works", trust.ShortKey(id), project)
			}
		}
	}
	return nil
}
