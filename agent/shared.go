package agent

import (
	"context"
	"errors"
	"path/filepath"

	"github.com/corpus-agent/corpus-agent/agent/layout"
	"github.com/corpus-agent/corpus-agent/agent/ledger"
	"github.com/corpus-agent/corpus-agent/agent/site"
	"github.com/corpus-agent/corpus-agent/artifact/walk"
)

// This file decides what becomes of files and directories that the agent, as root, reads or runs, and that another user
// can change:
//
//	a directory above what is the agent's    the run ends: an operator has to give it back to root
//	a directory or link that the agent made  it becomes root's again, is noted, and is drift in status
//	the content of a project's pillar        it is not rendered until an operator has looked at it
//	the content of a release                 it is compared with the signed list, see intact
//	the configuration                        nothing of it is read, see CheckConfiguration
//	a program that root runs                 the run ends, see CheckPrograms; a hook ends its stage, see CheckScript

// baseWithout converges base where a run ends because the pillar of the service is not rendered: that is no
// reason for base, which its own keys sign, to stand still. It gets the pillar of the releases alone. Where the top file
// of the service decides which states of base run, none do.
func (r *run) baseWithout(ctx context.Context, refused error) error {
	var without *site.PillarRefused
	runs := r.ledger.Runs()
	if !errors.As(refused, &without) || runs == nil || runs.Base == nil || r.Alone != "" || r.ledger.Running != nil || r.ledger.Failing != nil {
		return refused
	}
	if !runs.BaseAlone() && r.Config.Top != site.TopMerge {
		service, _ := r.PairDirs(*runs)
		found, err := walk.Named(filepath.Join(r.Layout.Path(layout.StateRoots(service, "")[0]), "top.sls"))
		if err != nil {
			return errors.Join(refused, err)
		}
		if found {
			r.record.Note("%s does not converge alone, since the top file of %s decides what of it runs", runs.Base, runs.Service)
			return refused
		}
	}
	r.record.Note("%s converges alone, without the pillar that this host has of %s", runs.Base, without.Project)
	if err := r.intact(ctx, *runs); err != nil {
		r.record.Note("%s did not converge: %v", runs.Base, err)
		return refused
	}
	r.WithoutPillar = true
	if err := r.convergeBase(ctx, ledger.Pair{Base: runs.Base}); err != nil {
		r.record.Note("%s did not converge: %v", runs.Base, err)
	}
	return refused
}

// convergeBase converges base alone, after its links were put right where they were lost.
func (r *run) convergeBase(ctx context.Context, base ledger.Pair) error {
	if !r.test && !r.linked(base) {
		r.record.Note("the links were not those of %s, which is deployed; they are put right", base)
		if err := r.relink(ctx, base); err != nil {
			return err
		}
	}
	return r.converge(ctx, base)
}

// deploysBaseWithout reports whether a run deploys base alone, since the pillar of the service is not rendered and nothing
// of the service was deployed here yet, or the host has lost what says so.
func (r *run) deploysBaseWithout(refused error) bool {
	var without *site.PillarRefused
	runs := r.ledger.Runs()
	if !errors.As(refused, &without) || runs != nil && !runs.BaseAlone() || r.Alone != "" || !r.only.All() || r.ledger.Running != nil || r.ledger.Failing != nil {
		return false
	}
	r.WithoutPillar = true
	return true
}

// baseOf is base of a pair alone, for a host on which the pillar of the service is not rendered. The refusal stays the result
// of the run.
func (r *run) baseOf(pair ledger.Pair, refused error) (ledger.Pair, error) {
	if pair.Base == nil {
		return pair, refused
	}
	return r.aloneFor(*pair.Base, refused), nil
}
