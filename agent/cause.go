package agent

import (
	"context"
	"errors"
	"path/filepath"
	"slices"
	"strings"
	"syscall"

	"github.com/corpus-agent/corpus-agent/agent/failure"
	"github.com/corpus-agent/corpus-agent/agent/health"
	"github.com/corpus-agent/corpus-agent/agent/layout"
	"github.com/corpus-agent/corpus-agent/agent/ledger"
	"github.com/corpus-agent/corpus-agent/agent/link"
	"github.com/corpus-agent/corpus-agent/agent/report"
	"github.com/corpus-agent/corpus-agent/agent/self"
	"github.com/corpus-agent/corpus-agent/agent/service"
	"github.com/corpus-agent/corpus-agent/artifact"
	"github.com/corpus-agent/corpus-agent/artifact/recipe"
	"github.com/corpus-agent/corpus-agent/artifact/walk"
	"github.com/corpus-agent/corpus-agent/state"
	"github.com/corpus-agent/corpus-agent/state/diag"
	"github.com/corpus-agent/corpus-agent/state/redact"
)

// This file decides why a run failed, and what follows from that for later runs:
//
//	a release failed     it is quarantined, whatever it is paired with, until unquarantine
//	the host failed      nothing is quarantined; the deploy is retried, at growing intervals
//	it was interrupted   nothing is quarantined; the next run takes the deploy up again
//
// Kinds of errors decide, and not their text. The one exception is a program that failed (a hook, a procedure, a
// command of a state): what it printed decides where it names an error of the host in the words of the C library
// (process.Printed), and so does the same failure of the release that ran before (alikeOnTheWayBack).

// fault is why a run failed.
type fault struct {
	of      report.FaultOf
	release *artifact.Release // with report.FaultOfRelease; nil where nothing is new that could be at fault
	cause   error
}

// faultOf finds out why a deploy of a pair failed.
func (r *run) faultOf(ctx context.Context, pair ledger.Pair, cause error) fault {
	switch {
	case r.ending(ctx):
		return fault{of: report.FaultOfInterruption, cause: cause}
	case failure.OfHost(cause):
		return fault{of: report.FaultOfHost, cause: cause}
	}
	return fault{of: report.FaultOfRelease, release: r.releaseAtFault(pair, r.origin(pair, cause)), cause: cause}
}

// ending reports whether this run was asked to end, or the host is shutting down. What fails from
// then on fails for that.
func (r *run) ending(ctx context.Context) bool { return stopped(ctx) || r.ShuttingDown(ctx) }

// releaseAtFault is the release of a pair that is at fault for an error in a file; "" is an error in none. What
// ran before is not: where the other release is new, that made the difference. It is nil where both ran
// before.
func (r *run) releaseAtFault(pair ledger.Pair, file string) *artifact.Release {
	known := func(release artifact.Release) bool { return r.ledger.Runs() != nil && r.ledger.Runs().Has(release) }
	service, base := &pair.Service, pair.Base
	if base != nil && known(*base) {
		base = nil
	}
	if known(*service) {
		return base
	}
	if pair.BaseAlone() || base != nil && r.inBase(pair, file) {
		return base
	}
	return service
}

// inBase reports whether a file is in base's release of a pair, and not in the service's.
func (r *run) inBase(pair ledger.Pair, file string) bool {
	_, dir := r.PairDirs(pair)
	_, linked := r.LinkedDirs(pair)
	for _, base := range []string{dir, linked} {
		if base != "" && strings.HasPrefix(file, base+"/") {
			return true
		}
	}
	return false
}

// origin is the file, as the host calls it, in which what failed is declared; "" where that is in none,
// as for a hook or a probe.
func (r *run) origin(pair ledger.Pair, cause error) string {
	var states *state.Failure
	var list diag.List
	var one *diag.Diagnostic
	var broken *self.Broken
	var units *service.Failed
	var sick *health.Unhealthy
	switch {
	case errors.As(cause, &units):
		return r.recipeOf(pair, units.Project())
	case errors.As(cause, &sick):
		return r.recipeOf(pair, sick.Project())
	case errors.As(cause, &broken):
		return r.changedSelf(pair)
	case errors.As(cause, &states):
		return r.declaredIn(pair, states)
	case errors.As(cause, &list) && len(list) > 0:
		return list[0].Pos.File
	case errors.As(cause, &one):
		return one.Pos.File
	}
	return ""
}

// metAgain reports, and notes, whether all that failed during a rollback to a pair is what the host failed the deploy
// by. The pair runs then as far as the host lets it.
func (r *run) metAgain(good ledger.Pair, cause, back error) bool {
	switch {
	case failure.AlsoUnexecuted(r.Layout, cause, back):
		r.record.Note("%s runs again, but for programs of its own that could not be started either: %v", good, back)
	case failure.AlsoSources(cause, back):
		r.record.Note("%s runs again, but was not converged; the next run converges it: %v", good, back)
	default:
		return false
	}
	return true
}

// relocated is the cause of a fault with the positions that a rollback leaves: in the directories of releases, and in
// the archive for the release that is moved there. The links are other files then. The report is corrected, too.
func (r *run) relocated(pair ledger.Pair, f fault, before map[string]link.Set) error {
	places := failure.Places{}
	service, base := r.LinkedDirs(pair)
	if !pair.BaseAlone() {
		places[service] = r.keptIn(pair.Service, f, before)
	}
	if pair.Base != nil {
		places[base] = r.keptIn(*pair.Base, f, before)
	}
	r.record.Complete(func(rep *report.Report) {
		redact.Each(&rep.Stages, places.Text)
		redact.Each(&rep.Steps, places.Text)
	})
	return places.Error(f.cause)
}

// keptIn is the directory, as the host calls it, that has the files of a release after a rollback.
func (r *run) keptIn(release artifact.Release, f fault, before map[string]link.Set) string {
	project, dir := r.LayoutOf(release.Project), release.Dir()
	links := before[release.Project]
	failed := f.of == report.FaultOfRelease && f.release != nil && f.release.Project == release.Project &&
		f.release.Dir() == dir
	if failed && !r.isUsed(project, dir, links) {
		return r.Layout.Inside(filepath.Join(project.Archives(), r.id, layout.FailedTree))
	}
	return r.Layout.Inside(project.Release(dir))
}

// recipeOf is corpus.yaml, in which its units and probes are named, of a project's release in a pair; "" for
// no project, as of a probe of the host.
func (r *run) recipeOf(pair ledger.Pair, project string) string {
	service, base := r.PairDirs(pair)
	switch {
	case pair.Base != nil && project == pair.Base.Project:
		return filepath.Join(base, recipe.Name)
	case project == pair.Service.Project:
		return filepath.Join(service, recipe.Name)
	}
	return ""
}

// declaredIn is the file in which the first state that failed is declared. Templates of a release are
// declared by their source; other engines tell the name of the SLS alone.
func (r *run) declaredIn(pair ledger.Pair, failed *state.Failure) string {
	step := failed.First.Step
	source, _ := step.Chunk.Value("source").(string)
	if step.SLS() == recipe.Name && filepath.IsAbs(source) {
		return source
	}
	if file := step.Pos.File; filepath.IsAbs(file) {
		return file
	}
	if filepath.IsAbs(source) {
		return source
	}
	return r.findSLS(pair, step.SLS())
}

// findSLS is the file of an SLS in the releases of a pair, service first; "" where none has it. A file that cannot be
// read is there.
func (r *run) findSLS(pair ledger.Pair, name string) string {
	if name == "" {
		return ""
	}
	path := strings.ReplaceAll(name, ".", "/")
	for _, dir := range layout.StateRoots(r.PairDirs(pair)) {
		for _, file := range []string{filepath.Join(dir, path+".sls"), filepath.Join(dir, path, "init.sls")} {
			if found, err := walk.Exists(r.Layout.Path(file)); found || err != nil && !errors.Is(err, syscall.ENOTDIR) {
				return file
			}
		}
	}
	return ""
}

// changedSelf is the file with the state that changed the agent, which decides whose release is at fault
// for it; "" where no state says so.
func (r *run) changedSelf(pair ledger.Pair) string {
	files := r.selfTest.Changed()
	for _, step := range slices.Backward(r.report.Steps) {
		if step.Changes.Len() == 0 {
			continue
		}
		about := slices.Contains(files, r.Layout.Path(step.Name)) || strings.Contains(step.Name, self.Name)
		for _, name := range step.Changes.Names() {
			about = about || strings.HasPrefix(name, self.Name)
		}
		if file := r.findSLS(pair, step.SLS); about && file != "" {
			return file
		}
	}
	return ""
}
