package agent

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"

	"github.com/corpus-agent/corpus-agent/agent/connection"
	"github.com/corpus-agent/corpus-agent/agent/exit"
	"github.com/corpus-agent/corpus-agent/agent/failure"
	"github.com/corpus-agent/corpus-agent/agent/layout"
	"github.com/corpus-agent/corpus-agent/agent/ledger"
	"github.com/corpus-agent/corpus-agent/agent/site"
	"github.com/corpus-agent/corpus-agent/artifact"
	"github.com/corpus-agent/corpus-agent/artifact/store"
	"github.com/corpus-agent/corpus-agent/artifact/trust"
	"github.com/corpus-agent/corpus-agent/artifact/walk"
	"github.com/corpus-agent/corpus-agent/state/diag"
)

// pairOf returns the pair that the host runs if the store cannot name the release of one project: that project stays
// unchanged, and the other is deployed. The error stays the result of the run. A host that has no release of the
// service gets base alone, and one that has no release of base gets nothing.
func (r *run) pairOf(ctx context.Context, pair ledger.Pair, has *artifact.Release,
	serviceErr, baseErr error) (ledger.Pair, error) {
	switch good := r.ledger.Good; {
	case serviceErr == nil && baseErr == nil:
		return pair, nil
	case serviceErr != nil && baseErr == nil && pair.Base != nil && good == nil && !stopped(ctx):
		return r.aloneFor(*pair.Base, serviceErr), nil
	case stopped(ctx) || serviceErr != nil && (baseErr != nil || has == nil):
		return pair, firstError(serviceErr, baseErr)
	case serviceErr != nil:
		pair.Service = *has
		r.noteUnresolved(has.Project, serviceErr)
	case good == nil || good.Base == nil:
		return pair, baseErr
	default:
		pair.Base = good.Base
		r.noteUnresolved(artifact.Base, baseErr)
	}
	return pair, nil
}

// aloneFor returns the pair of base alone, which a host runs as long as nothing of its service can be deployed.
func (r *run) aloneFor(base artifact.Release, cause error) ledger.Pair {
	r.unresolvedErr, r.unresolved = cause, []string{r.identity.Service}
	r.record.Note("%s converges alone, since nothing of %s can be deployed yet: %v", base, r.identity.Service, cause)
	return ledger.Pair{Base: &base}
}

// parts returns the pairs that can still be deployed if only one release of a pair is available: that release with the
// deployed release of the other project, or base alone.
func (r *run) parts(pair ledger.Pair) (parts []ledger.Pair) {
	if pair.Base == nil || pair.BaseAlone() || r.unresolvedErr != nil {
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

// withoutOne continues with a part of a pair if one of its releases is not available, and otherwise does what without
// does. It tries no part if the store is unreachable or the host is the cause.
func (r *run) withoutOne(ctx context.Context, client *trust.Client, pair ledger.Pair, cause error) error {
	if stopped(ctx) || r.ledger.Running != nil || errors.Is(cause, store.ErrUnreachable) || failure.HostErrno(cause) {
		return r.without(ctx, cause)
	}
	for _, part := range r.parts(pair) {
		if r.releases.Fetch(ctx, client, part) != nil || r.releases.CheckRequirements(part) != nil {
			continue
		}
		if part.BaseAlone() {
			part = r.aloneFor(*part.Base, cause)
		} else {
			r.noteUnresolved(missingOf(pair, part), cause)
		}
		return r.orUnresolved(r.carryOut(ctx, client, part))
	}
	return r.without(ctx, cause)
}

// missingOf returns the project whose release in part is not that of pair.
func missingOf(pair, part ledger.Pair) string {
	if part.Has(pair.Service) {
		return artifact.Base
	}
	return pair.Service.Project
}

func firstError(errs ...error) error {
	return errs[slices.IndexFunc(errs, func(err error) bool { return err != nil })]
}

// noteUnresolved notes that the store does not provide the release of a project, once for each project.
func (r *run) noteUnresolved(project string, err error) {
	if r.unresolvedErr == nil {
		r.unresolvedErr = err
	}
	if !slices.Contains(r.unresolved, project) {
		r.unresolved = append(r.unresolved, project)
		r.record.Note("%s is not changed, since the store does not provide its release: %v", project, err)
	}
}

// orUnresolved returns err, or else the error for a project whose release the store did not provide.
func (r *run) orUnresolved(err error) error {
	if err != nil || r.unresolvedErr == nil {
		return err
	}
	return connection.ExplainReach(r.unresolvedErr)
}

// deploysBaseWithout reports whether a run deploys base alone because the pillar of the service was refused, and sets
// WithoutPillar if so. It does only if the ledger has no deployed release of the service.
func (r *run) deploysBaseWithout(refused error) bool {
	var without *site.PillarRefused
	runs := r.ledger.Runs()
	if !errors.As(refused, &without) || runs != nil && !runs.BaseAlone() || r.Alone != "" || !r.only.All() ||
		r.ledger.Running != nil || r.ledger.Failing != nil {
		return false
	}
	r.WithoutPillar = true
	return true
}

// baseOf returns base of a pair alone, for a host on which the pillar of the service is not rendered. The refusal stays
// the result of the run.
func (r *run) baseOf(pair ledger.Pair, refused error) (ledger.Pair, error) {
	if pair.Base == nil {
		return pair, refused
	}
	return r.aloneFor(*pair.Base, refused), nil
}

// without continues if the store did not provide what the host is to run. It finishes an interrupted deploy with the
// releases on the disk, or else converges the deployed pair. The error of the store stays the result of the run, unless
// states fail as well.
func (r *run) without(ctx context.Context, cause error) error {
	if stopped(ctx) {
		return cause
	}
	cause = connection.ExplainReach(cause)
	var err error
	switch cut := r.ledger.Running; {
	case cut != nil && !r.test && r.Held().Has(cut.Pair.Releases()...): // else a later run resumes it
		err = r.apply(ctx, r.turns.Resume(cut.Pair))
	case r.ledger.Runs() != nil && (exit.Code(cause) != exit.Usage || errors.Is(cause, connection.ErrLost)):
		r.record.Note("converging what is current: %v", cause)
		r.report.Instead = r.ledger.Runs()
		err = r.convergeGood(ctx)
	default:
		return cause
	}
	if errors.Is(err, errGone) {
		return exit.WithCode(exit.Code(cause),
			diag.KeepHint(fmt.Errorf("%w; and nothing could converge meanwhile: %w", cause, err), diag.HintOf(cause)))
	}
	if err != nil {
		return err
	}
	return cause
}

// baseWithout converges base if a run ends because the pillar of the service was refused: base is signed by its own
// keys and does not depend on that pillar. It renders base with the pillar of the releases alone. If the top file of
// the service decides which states of base run, it runs none.
func (r *run) baseWithout(ctx context.Context, refused error) error {
	var without *site.PillarRefused
	runs := r.ledger.Runs()
	if !errors.As(refused, &without) || runs == nil || runs.Base == nil || r.Alone != "" || r.ledger.Running != nil ||
		r.ledger.Failing != nil {
		return refused
	}
	if !runs.BaseAlone() && r.Config.Top != site.TopMerge {
		service, _ := r.PairDirs(*runs)
		found, err := walk.Named(filepath.Join(r.Layout.Path(layout.StateRoots(service, "")[0]), "top.sls"))
		if err != nil {
			return errors.Join(refused, err)
		}
		if found {
			r.record.Note("%s does not converge alone, since the top file of %s decides what of it runs", runs.Base,
				runs.Service)
			return refused
		}
	}
	r.record.Note("%s converges alone, without the pillar that this host has of %s", runs.Base, without.Project)
	if err := r.releases.Intact(ctx, *runs); err != nil {
		r.record.Note("%s did not converge: %v", runs.Base, err)
		return refused
	}
	r.WithoutPillar = true
	if err := r.convergeBase(ctx, ledger.Pair{Base: runs.Base}); err != nil {
		r.record.Note("%s did not converge: %v", runs.Base, err)
	}
	return refused
}

// convergeBase converges base alone, after lost links were restored.
func (r *run) convergeBase(ctx context.Context, base ledger.Pair) error {
	if !r.test && !r.linking.Linked(base) {
		r.record.Note("the links were not those of %s, which is deployed; they are corrected", base)
		if err := r.relink(ctx, base); err != nil {
			return err
		}
	}
	return r.converge(ctx, base)
}
