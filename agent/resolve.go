package agent

import (
	"context"
	"errors"
	"slices"

	"github.com/corpus-agent/corpus-agent/agent/fleet"
	"github.com/corpus-agent/corpus-agent/agent/inspect"
	"github.com/corpus-agent/corpus-agent/agent/ledger"
	"github.com/corpus-agent/corpus-agent/artifact"
	"github.com/corpus-agent/corpus-agent/artifact/structsort"
	"github.com/corpus-agent/corpus-agent/artifact/trust"
	"github.com/corpus-agent/corpus-agent/state/diag"
)

// resolve returns the pair that this host is to run, by the store.
func (r *run) resolve(ctx context.Context, client *trust.Client) (ledger.Pair, error) {
	if err := client.Refresh(ctx); err != nil {
		return ledger.Pair{}, r.connection.ExplainOlder(err)
	}
	if err := r.connection.KeepStore(); err != nil {
		return ledger.Pair{}, err
	}
	channel := r.Config.ServiceChannel
	if channel == "" {
		channel = r.identity.Instance
	}
	r.ledger.Channels = []artifact.Ref{{Project: artifact.Base, Channel: r.Config.BaseChannel},
		{Project: r.identity.Service, Channel: channel}}
	r.withdrawnNames = nil
	var has *artifact.Release
	if good := r.ledger.Good; good != nil && good.Service.Project == r.identity.Service {
		has = &good.Service
	}
	service, serviceErr := r.resolveOr(ctx, client, r.ledger.Channels[1], has)
	base, baseErr := r.resolveBase(ctx, client)
	pair, err := r.pairOf(ctx, ledger.Pair{Base: base, Service: service}, has, serviceErr, baseErr)
	if err != nil {
		return ledger.Pair{}, err
	}
	r.learn(ctx, client)
	return pair, r.noteWithdrawn(ctx, client)
}

// resolveOr returns the release that a channel names. If that release was withdrawn, it returns has, or the error if
// has is nil.
func (r *run) resolveOr(ctx context.Context, client *trust.Client, ref artifact.Ref,
	has *artifact.Release) (artifact.Release, error) {
	release, err := client.Resolve(ctx, ref)
	if errors.Is(err, trust.ErrNoChannel) {
		err = diag.Unpublished.Hint(err, "%s; %s", diag.HintOf(err), fleet.Elsewhere(ref.String()))
	}
	if err == nil {
		err = client.SameBytes(release, r.known()...)
	}
	if err == nil {
		return r.turns.Choose(ctx, client, ref, release, has)
	}
	var withdrawn *trust.Withdrawn
	if !errors.As(err, &withdrawn) || has == nil {
		return release, err
	}
	if has.Is(withdrawn.Release) {
		return *has, nil
	}
	r.record.Note("%s names a release that is withdrawn (%v); this host keeps %s", ref, withdrawn, has.Version)
	r.withdrawnNames = append(r.withdrawnNames, ledger.Withdrawn{Release: withdrawn.Release,
		Reason: withdrawn.Yank.Reason, At: withdrawn.Yank.At, Channel: ref})
	return *has, r.turns.Withdraw(ref, withdrawn.Release)
}

// known returns the releases that the ledger names.
func (r *run) known() []artifact.Release { return inspect.ReleasesOf(r.ledger) }

// noteWithdrawn notes which releases of this host were withdrawn, and records them in the ledger, with those that its
// channels name.
func (r *run) noteWithdrawn(ctx context.Context, client *trust.Client) error {
	found := slices.Clone(r.withdrawnNames)
	for _, pair := range r.ledger.Pairs() {
		for _, release := range pair.Releases() {
			// Projects that the host had under another identity are ignored.
			ours := release.Project == artifact.Base || release.Project == r.identity.Service
			if !ours || slices.ContainsFunc(found, func(f ledger.Withdrawn) bool { return f.Release.Is(release) }) {
				continue
			}
			w, err := client.Withdrawn(ctx, release)
			if err != nil {
				r.noteUnresolved(release.Project, err)
				found = append(found, knownWithdrawn(r.ledger.Withdrawn, release)...)
				continue
			}
			if w == nil {
				continue
			}
			found = append(found, ledger.Withdrawn{Release: release, Reason: w.Yank.Reason, At: w.Yank.At})
			if r.ledger.Good != nil && slices.Contains(r.ledger.Good.Releases(), release) {
				r.record.Note("this host runs a release that is withdrawn: %v", w)
			}
		}
	}
	if slices.Equal(found, r.ledger.Withdrawn) {
		return nil
	}
	r.ledger.Withdrawn = found
	return r.save()
}

// resolveBase returns the release of base. A store without a base is not an error: the host keeps the base that it has,
// if any.
func (r *run) resolveBase(ctx context.Context, client *trust.Client) (*artifact.Release, error) {
	var has *artifact.Release
	if r.ledger.Good != nil {
		has = r.ledger.Good.Base
	}
	base, err := r.resolveOr(ctx, client, artifact.Ref{Project: artifact.Base, Channel: r.Config.BaseChannel}, has)
	switch {
	case err == nil:
		return &base, nil
	case !errors.Is(err, trust.ErrNoProject):
		return nil, err
	case r.ledger.Good != nil && r.ledger.Good.Base != nil:
		r.record.Note("the store has no base any more; this host keeps base %s", r.ledger.Good.Base.Version)
		return r.ledger.Good.Base, nil
	}
	r.record.Note("%s", r.record.DoesOrWould("the store has no base, so the service is deployed alone",
		"the store has no base, so the service would be deployed alone"))
	return nil, nil
}

// learnAtOnce bounds how many pages of metadata a run reads for releases that no channel names any more.
const learnAtOnce = 2

// learn keeps the signed metadata of the releases on this host, so that they can be verified when no channel names them
// any more. The next run retries what the store did not provide.
func (r *run) learn(ctx context.Context, client *trust.Client) {
	read := 0
	for _, release := range r.remembered() {
		if slices.Contains(r.unresolved, release.Project) || read == learnAtOnce {
			continue
		}
		fetched, err := client.Learn(ctx, release)
		if err != nil {
			r.record.Note("%s can be verified only with the list from when it was unpacked: %v", release, err)
		}
		if fetched || err != nil {
			read++
		}
	}
	r.completeDigests(ctx, client)
}

// completeDigests completes the digests of releases in a ledger that was rebuilt from links, whose names contain only
// the start of a digest. A release with such a digest cannot be fetched again, and does not equal the same release with
// the whole digest.
func (r *run) completeDigests(ctx context.Context, client *trust.Client) {
	for _, pair := range r.ledger.Pairs() {
		for _, release := range []*artifact.Release{pair.Base, &pair.Service} {
			if release == nil || !release.Digest.Part() {
				continue
			}
			if _, err := client.Learn(ctx, *release); err == nil { // else a later run learns it
				*release = client.CompleteDigest(*release)
			}
		}
	}
	if good, before := r.ledger.Good, r.ledger.Previous; good != nil && before != nil && good.Same(*before) {
		r.ledger.Previous = nil
	}
}

// remembered returns the releases of base and the service that the ledger names and that are on the disk.
func (r *run) remembered() []artifact.Release {
	pairs := r.ledger.Pairs()
	slices.Reverse(pairs)
	var releases []artifact.Release
	for _, pair := range pairs {
		for _, release := range pair.Releases() {
			ours := release.Project == artifact.Base || release.Project == r.identity.Service
			if ours && r.Held().Has(release) && !slices.Contains(releases, release) {
				releases = append(releases, release)
			}
		}
	}
	return releases
}

// knownWithdrawn returns the entries that an earlier run recorded for a release.
func knownWithdrawn(known []ledger.Withdrawn, release artifact.Release) []ledger.Withdrawn {
	return structsort.Without(known, func(w ledger.Withdrawn) bool { return !w.Release.Is(release) })
}
