package agent

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/corpus-agent/corpus-agent/agent/failure"
	"github.com/corpus-agent/corpus-agent/agent/layout"
	"github.com/corpus-agent/corpus-agent/agent/ledger"
	"github.com/corpus-agent/corpus-agent/agent/service"
	"github.com/corpus-agent/corpus-agent/artifact"
	"github.com/corpus-agent/corpus-agent/artifact/walk"
)

// This file restarts the units that followed links which somebody changed by hand. A run that puts the links right finds
// those that run another release, or may do so, and no others: what was started before the links were changed runs what
// is deployed.

// noteStrays writes into the ledger which units of a pair do not run it, before its links are put right: should the run be
// cut short, the next one restarts them.
func (r *run) noteStrays(ctx context.Context, pair ledger.Pair) error {
	s, members, err := r.deployedUnits(ctx, pair)
	if err != nil || len(members) == 0 {
		return err
	}
	wrong := map[string]time.Time{}
	for _, release := range pair.Releases() {
		since, is, err := r.wrongSince(release)
		if err != nil {
			return err
		}
		if is {
			wrong[release.Project] = since
		}
	}
	strays, err := service.Strays(ctx, s, members, wrong)
	if err != nil || len(strays) == 0 {
		return failure.OfWork(err)
	}
	if r.ledger.Serving == nil {
		r.ledger.Serving = &ledger.Serving{}
	}
	serving := r.ledger.Serving
	serving.Run, serving.Since = r.id, r.Time().UTC()
	serving.Units, serving.Retry = joined(serving.Units, strays), joined(serving.Retry, strays)
	return r.save()
}

// followReplaced writes into the ledger that units run from copies of releases that this run has fetched again, since they
// were damaged or gone, and reports whether there are such units and nothing else that an earlier run has left to do about units.
func (r *run) followReplaced(ctx context.Context, pair ledger.Pair) (restart bool, err error) {
	nothing := r.ledger.Serving == nil
	if !slices.ContainsFunc(pair.Releases(), r.wasReplaced) {
		return false, nil
	}
	if err := r.follow(ctx, pair, pair.Releases()); err != nil {
		return false, err
	}
	r.moved()
	units := r.ledger.Serving
	if units == nil || len(units.Units) == 0 {
		if nothing {
			r.ledger.Serving = nil
		}
		return false, nil
	}
	r.record.Note("%s may run from files that were damaged or removed; what runs of %s is restarted", strings.Join(units.Units, ", "), pair)
	return nothing, nil
}

// wrongSince reports whether links by which units start lead elsewhere than to a release, and since when; the zero time
// is for ever, where a link is gone.
func (r *run) wrongSince(release artifact.Release) (since time.Time, wrong bool, err error) {
	p := r.LayoutOf(release.Project)
	links := map[string]string{}
	for _, name := range []string{"next", "current"} {
		links[filepath.Join(p.Dir, name)] = filepath.Base(release.Dir())
	}
	if r.Alone == "" {
		links[r.nameOf(p)] = p.Name
	}
	for path, want := range links {
		target, at, err := changedAt(path)
		switch {
		case err != nil:
			return since, wrong, err
		case filepath.Base(target) == want:
			continue
		}
		if !wrong || at.Before(since) {
			since, wrong = at, true
		}
	}
	return since, wrong, nil
}

// nameOf is /srv/base or /srv/service, by which units name a project.
func (r *run) nameOf(p layout.Project) string {
	if p.Name == artifact.Base {
		return r.Layout.BaseLink()
	}
	return r.Layout.ServiceLink()
}

// changedAt is where a link leads, and when it came to be what it is: a link that was moved here keeps its own time. What
// is gone or no link leads nowhere, and has the zero time.
func changedAt(path string) (target string, at time.Time, err error) {
	info, err := os.Lstat(path)
	if found, err := walk.Found(err); err != nil || !found || info.Mode()&os.ModeSymlink == 0 {
		return "", time.Time{}, err
	}
	if st, ok := info.Sys().(*syscall.Stat_t); ok {
		at = time.Unix(st.Ctim.Unix())
	}
	target, err = os.Readlink(path)
	return target, at, err
}

// restartStrays converges what is deployed after its links were put right, and restarts the units that did not run it.
func (r *run) restartStrays(ctx context.Context, good ledger.Pair, converge func(context.Context, ledger.Pair) error) error {
	r.record.Note("%s did not run %s, and is restarted", strings.Join(r.ledger.Serving.Retry, ", "), good)
	return r.convergeAndServe(ctx, good, converge)
}

// convergeAndServe converges what is deployed, restarts the units that the ledger says do not run it, and asks how they are.
func (r *run) convergeAndServe(ctx context.Context, good ledger.Pair, converge func(context.Context, ledger.Pair) error) error {
	errs := []error{converge(ctx, good), r.serveBack(ctx, good), r.save()}
	if stopped(ctx) {
		return errors.Join(append(errs, ctx.Err())...)
	}
	return errors.Join(append(errs, r.healthyBack(ctx, good))...)
}

// proveOthers adds to a proof the units that the run did nothing about, since they run the release already. Of those that
// do not run it the report says so.
func (r *run) proveOthers(ctx context.Context, pair ledger.Pair, proven *ledger.Proven) error {
	s, members, err := r.deployedUnits(ctx, pair)
	if err != nil || s == nil {
		return err
	}
	var others []service.Member
	for _, m := range members {
		d, err := s.Service(ctx, m.Unit)
		if err != nil {
			return err
		}
		if d.Running() && !d.Job && !proven.Has(m.Unit) {
			others = append(others, m)
		}
	}
	w := r.watchOver(s, others)
	if w == nil {
		return nil
	}
	if err := w.Begin(ctx); err != nil {
		return err
	}
	seen, err := w.Look(ctx)
	for _, unit := range seen {
		if unit.Err != nil {
			r.unserves(fmt.Sprintf("%s does not run %s: %v", unit.Unit, unit.Release, unit.Err))
			continue
		}
		d, err := s.Service(ctx, unit.Unit)
		if err != nil {
			return err
		}
		proven.Units = append(proven.Units, ledger.ProvenUnit{Unit: unit.Unit, Restarts: d.Restarts})
	}
	return err
}
