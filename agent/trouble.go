package agent

import (
	"context"
	"errors"
	"slices"

	"github.com/corpus-agent/corpus-agent/agent/failure"
	"github.com/corpus-agent/corpus-agent/agent/ledger"
	"github.com/corpus-agent/corpus-agent/artifact"
	"github.com/corpus-agent/corpus-agent/artifact/store"
	"github.com/corpus-agent/corpus-agent/artifact/structsort"
	"github.com/corpus-agent/corpus-agent/artifact/trust"
)

// pairOf is the pair that a host runs where the store cannot say of one project what to run: that
// project stays as it is, and the other is deployed. The failure stays the result of the run. A host
// that has no release of the service gets base alone, and one that has none of base gets nothing.
func (r *run) pairOf(ctx context.Context, pair ledger.Pair, has *artifact.Release, serviceErr, baseErr error) (ledger.Pair, error) {
	switch good := r.ledger.Good; {
	case serviceErr == nil && baseErr == nil:
		return pair, nil
	case serviceErr != nil && baseErr == nil && pair.Base != nil && good == nil && !stopped(ctx):
		return r.aloneFor(*pair.Base, serviceErr), nil
	case stopped(ctx) || serviceErr != nil && (baseErr != nil || has == nil):
		return pair, firstError(serviceErr, baseErr)
	case serviceErr != nil:
		pair.Service = *has
		r.inTrouble(has.Project, serviceErr)
	case good == nil || good.Base == nil:
		return pair, baseErr
	default:
		pair.Base = good.Base
		r.inTrouble(artifact.Base, baseErr)
	}
	return pair, nil
}

// aloneFor is the pair of base alone, which a host gets as long as nothing of its service can be deployed.
func (r *run) aloneFor(base artifact.Release, cause error) ledger.Pair {
	r.trouble, r.troubled = cause, []string{r.identity.Service}
	r.record.Note("%s converges alone, since nothing of %s can be deployed yet: %v", base, r.identity.Service, cause)
	return ledger.Pair{Base: &base}
}

// parts are what is left of a pair to deploy where only one of its releases can be had: with what runs in the place of the
// other, or base alone.
func (r *run) parts(pair ledger.Pair) (parts []ledger.Pair) {
	if pair.Base == nil || pair.BaseAlone() || r.trouble != nil {
		return nil
	}
	good := r.ledger.Good
	if good == nil {
		return []ledger.Pair{{Base: pair.Base}}
	}
	for _, release := range pair.Releases() {
		if part := good.With(release); !part.Same(*good) && !part.Same(pair) && good.Service.Project == pair.Service.Project {
			parts = append(parts, part)
		}
	}
	return parts
}

// withoutOne goes on with a part of a pair of which one release cannot be had, and else as without. A store that does not
// answer, or a host that fails, gives no part either.
func (r *run) withoutOne(ctx context.Context, client *trust.Client, pair ledger.Pair, cause error) error {
	if stopped(ctx) || r.ledger.Running != nil || errors.Is(cause, store.ErrUnreachable) || failure.HostErrno(cause) {
		return r.without(ctx, cause)
	}
	for _, part := range r.parts(pair) {
		if r.fetch(ctx, client, part) != nil || r.suits(part) != nil {
			continue
		}
		if part.BaseAlone() {
			part = r.aloneFor(*part.Base, cause)
		} else {
			r.inTrouble(missingOf(pair, part), cause)
		}
		return r.orTrouble(r.carryOut(ctx, client, part))
	}
	return r.without(ctx, cause)
}

// missingOf is the project of which a part of a pair has another release.
func missingOf(pair, part ledger.Pair) string {
	if part.Has(pair.Service) {
		return artifact.Base
	}
	return pair.Service.Project
}

func firstError(errs ...error) error {
	return errs[slices.IndexFunc(errs, func(err error) bool { return err != nil })]
}

// inTrouble notes that the store does not give of a project what it should, once for each project.
func (r *run) inTrouble(project string, err error) {
	if r.trouble == nil {
		r.trouble = err
	}
	if !slices.Contains(r.troubled, project) {
		r.troubled = append(r.troubled, project)
		r.record.Note("%s stays as it is, since the store does not give what to run of it: %v", project, err)
	}
}

// orTrouble is the error of a run, or else that of a project that the store said nothing of.
func (r *run) orTrouble(err error) error {
	if err != nil || r.trouble == nil {
		return err
	}
	return explainReach(r.trouble)
}

// knownWithdrawn is what is known of a release from an earlier run.
func knownWithdrawn(known []ledger.Withdrawn, release artifact.Release) []ledger.Withdrawn {
	return structsort.Without(known, func(w ledger.Withdrawn) bool { return w.Release.Digest != release.Digest })
}

// learnAtOnce is how many pages of metadata a run reads for releases that no channel names any more.
const learnAtOnce = 2

// learn keeps what is signed of the releases on this host, so that they can be verified when no
// channel names them any more. What the store does not give is tried again by the next run.
func (r *run) learn(ctx context.Context, client *trust.Client) {
	read := 0
	for _, release := range r.remembered() {
		if slices.Contains(r.troubled, release.Project) || read == learnAtOnce {
			continue
		}
		fetched, err := client.Learn(ctx, release)
		if err != nil {
			r.record.Note("%s can be verified only by what was noted when it was unpacked: %v", release, err)
		}
		if fetched || err != nil {
			read++
		}
	}
	r.completeDigests(ctx, client)
}

// completeDigests gives the releases of a ledger that was rebuilt from links, whose names have the start of a digest alone,
// their digests: without them nothing of a release can be fetched again, and it compares as another one.
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

// remembered are the releases of base and the service that the ledger names.
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
