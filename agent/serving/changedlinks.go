package serving

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

// This file restarts units after links of releases were changed by hand. A run that repairs the links restarts the
// units that run another release, or may do so, and no others: a unit that was started before the links were changed
// runs what is deployed.

// NoteWrongUnits writes into the ledger which units of a pair do not run it, before its links are repaired. If the run
// is interrupted, the next one restarts them.
func (r *Run) NoteWrongUnits(ctx context.Context, pair ledger.Pair) error {
	s, members, err := r.deployedUnits(ctx, pair)
	if err != nil || len(members) == 0 {
		return err
	}
	wrong, err := r.wrongLinks(pair)
	if err != nil {
		return err
	}
	strays, err := service.MismatchedUnits(ctx, s, members, wrong)
	if err != nil || len(strays) == 0 {
		return failure.OfWork(err)
	}
	serving := r.servingOf()
	serving.Run, serving.Since = r.ID, r.Host.Time().UTC()
	serving.Units, serving.Retry = joined(serving.Units, strays), joined(serving.Retry, strays)
	return r.Save()
}

// wrongLinks returns the projects of a pair whose links led elsewhere, and since when.
func (r *Run) wrongLinks(pair ledger.Pair) (map[string]time.Time, error) {
	wrong := map[string]time.Time{}
	for _, release := range pair.Releases() {
		since, is, err := r.wrongSince(release)
		if err != nil {
			return nil, err
		}
		if is {
			wrong[release.Project] = since
		}
	}
	return wrong, nil
}

// servingOf returns the ledger's record of units that do not serve yet, and creates it if there is none.
func (r *Run) servingOf() *ledger.Serving {
	if r.Ledger.Serving == nil {
		r.Ledger.Serving = &ledger.Serving{}
	}
	return r.Ledger.Serving
}

// FollowReplaced writes into the ledger which units run from files of releases that this run has fetched again, since
// the files were damaged or gone. It reports whether there are such units and an earlier run has left no units to
// restart.
func (r *Run) FollowReplaced(ctx context.Context, pair ledger.Pair) (restart bool, err error) {
	nothing := r.Ledger.Serving == nil
	if !slices.ContainsFunc(pair.Releases(), r.Replaced) {
		return false, nil
	}
	if err := r.Follow(ctx, pair, pair.Releases()); err != nil {
		return false, err
	}
	r.Moved()
	units := r.Ledger.Serving
	if units == nil || len(units.Units) == 0 {
		if nothing {
			r.Ledger.Serving = nil
		}
		return false, nil
	}
	r.Record.Note(
		"%s may run from files that were damaged or removed; what runs of %s is restarted",
		strings.Join(units.Units, ", "),
		pair,
	)
	return nothing, nil
}

// wrongSince reports whether links through which units start lead elsewhere than to a release, and since when. The time
// is zero if it is unknown, as for a link that is gone.
func (r *Run) wrongSince(release artifact.Release) (since time.Time, wrong bool, err error) {
	p := r.Host.LayoutOf(release.Project)
	links := map[string]string{}
	for _, name := range []string{"next", "current"} {
		links[filepath.Join(p.Dir, name)] = filepath.Base(release.Dir())
	}
	if r.Host.Alone == "" {
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

// nameOf returns /srv/base or /srv/service, the name under which units find a project.
func (r *Run) nameOf(p layout.Project) string {
	if p.Name == artifact.Base {
		return r.Host.Layout.BaseLink()
	}
	return r.Host.Layout.ServiceLink()
}

// changedAt returns the target of a link, and when the link was made or renamed to its path. For a path that is gone or
// no link it returns "" and the zero time.
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

// ConvergeAndRestart converges the deployed pair after its links were repaired, and restarts the units that did not run
// it.
func (r *Run) ConvergeAndRestart(
	ctx context.Context,
	good ledger.Pair,
	converge func(context.Context, ledger.Pair) error,
) error {
	r.Record.Note("%s did not run %s, and is restarted", strings.Join(r.Ledger.Serving.Retry, ", "), good)
	return r.ConvergeAndServe(ctx, good, converge)
}

// ConvergeAndServe converges the deployed pair, restarts the units that do not run it as the ledger says, and checks
// their health.
func (r *Run) ConvergeAndServe(
	ctx context.Context,
	good ledger.Pair,
	converge func(context.Context, ledger.Pair) error,
) error {
	errs := []error{converge(ctx, good), r.ServeBack(ctx, good), r.Save()}
	if ctx.Err() != nil {
		return errors.Join(append(errs, ctx.Err())...)
	}
	return errors.Join(append(errs, r.HealthyBack(ctx, good))...)
}

// proveOthers adds to a proof the units that the run did not act on, since they run the release already. Those that do
// not run it are named in the report.
func (r *Run) proveOthers(ctx context.Context, pair ledger.Pair, proven *ledger.Proven) error {
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
