package agent

import (
	"context"

	"github.com/corpus-agent/corpus-agent/agent/failure"
	"github.com/corpus-agent/corpus-agent/agent/ledger"
	"github.com/corpus-agent/corpus-agent/agent/link"
)

// apply deploys an unpacked pair. If a step fails, it rolls the host back, see back.
func (r *run) apply(ctx context.Context, pair ledger.Pair) error {
	if err := r.balance.Leave(ctx, pair); err != nil {
		return err
	}
	r.acted = true
	before, err := r.open(pair)
	if err != nil {
		return err
	}
	r.selfTest.WatchUnits(ctx)
	if err := r.switchTo(ctx, pair, before); err != nil {
		return r.back(ctx, pair, before, err)
	}
	switch {
	case pair.BaseAlone():
		r.ledger.ConvergedAlone(pair)
	case r.leaves != nil:
		r.ledger.WentBack(pair, r.Time().UTC())
	default:
		r.ledger.Deployed(pair, r.Time().UTC())
	}
	r.ledger.Serving = nil
	r.ledger.NoteFirstRun(pair, r.id)
	r.rememberWho()
	if r.leaves != nil {
		r.quarantine.Leave(*r.leaves)
		r.linking.PointPrevious(pair)
	}
	if err := r.save(); err != nil {
		r.record.Note("the deploy is done, but the ledger was not written: %v", err)
	}
	if err := r.project.SaveConfiguration(ctx, pair); err != nil {
		r.record.Note("the project's configuration was not saved: %v", err)
	}
	if err := r.retention.Prune(ctx); err != nil {
		r.record.Note("old releases were not all removed: %v", err)
	}
	return nil
}

// open records in the ledger that a deploy is in progress, and returns the links to restore if it fails. If it resumes
// an interrupted deploy, those are the links from before the first attempt. If the ledger or a report cannot be
// written, it starts nothing and returns the error.
func (r *run) open(pair ledger.Pair) (map[string]link.Set, error) {
	if err := r.Unwritable(); err != nil { // there may be room for the ledger now, and none at the end
		return nil, err
	}
	running := r.underWay(pair)
	running.Leaves = r.leaves
	if cut := r.ledger.Running; cut != nil {
		running.Before = cut.Before
		if cut.Pair.Same(pair) {
			running.Attempts, running.Reboots = cut.Attempts+1, cut.Reboots
			running.Step, running.Cuts = r.interruptedStep, r.cuts
			r.record.Note("the deploy of %s that run %s began is resumed", pair, cut.Run)
		}
	}
	if running.Before == nil {
		running.Before = map[string]link.Set{}
	}
	for _, release := range pair.Releases() {
		if _, known := running.Before[release.Project]; known {
			continue
		}
		s, err := r.linking.Before(release.Project)
		if err != nil {
			return nil, err
		}
		running.Before[release.Project] = s
	}
	r.ledger.Running = running
	return running.Before, r.save()
}

// underWay returns the record of this run that the ledger keeps from the first link that moves to the last.
func (r *run) underWay(pair ledger.Pair) *ledger.Running {
	return &ledger.Running{Run: r.id, Command: r.report.Command, Began: &r.report.Started, Pair: pair, Attempts: 1}
}

// switchTo runs the steps of a deploy that a failure undoes.
func (r *run) switchTo(ctx context.Context, pair ledger.Pair, before map[string]link.Set) error {
	if err := r.releases.RestoreModes(pair); err != nil {
		return err
	}
	if err := r.releases.Intact(ctx, pair); err != nil {
		return err
	}
	if err := r.project.Sync(ctx, pair); err != nil {
		return err
	}
	if err := r.project.ReleaseSync(ctx, pair); err != nil {
		return err
	}
	if err := r.project.Fixperms(ctx, pair); err != nil {
		return err
	}
	err := r.record.Stage("link", pair.String(), func() error {
		if err := r.serving.Follow(ctx, pair, r.serving.LinkedFirst(pair)); err != nil {
			return err
		}
		defer r.serving.Moved()
		return failure.OfWork(r.linking.Link(pair))
	})
	if err != nil {
		return err
	}
	if err := r.hooks(ctx, preRelease, pair); err != nil {
		return err
	}
	r.beforeLinks = true
	err = r.convergeAndInstall(ctx, pair)
	r.beforeLinks = false
	r.serving.StartDelayed()
	if err != nil {
		return err
	}
	r.releases.NoteInterpreters(pair) // states may have installed them
	if stopped(ctx) {
		return ctx.Err()
	}
	err = r.record.Stage("release", pair.String(), func() error {
		if err := r.serving.Follow(ctx, pair, pair.Releases()); err != nil {
			return err
		}
		defer r.serving.Moved()
		return failure.OfWork(r.linking.Promote(pair, before))
	})
	if err != nil {
		return err
	}
	if err := r.serving.Serve(ctx, pair, r.leaves != nil); err != nil {
		return err
	}
	if err := r.hooks(ctx, postRelease, pair); err != nil {
		return err
	}
	if err := r.selfTest.Try(ctx); err != nil {
		return err
	}
	return r.serving.Healthy(ctx, pair)
}
