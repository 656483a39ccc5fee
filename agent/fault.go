package agent

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"syscall"

	"github.com/corpus-agent/corpus-agent/agent/exit"
	"github.com/corpus-agent/corpus-agent/agent/failure"
	"github.com/corpus-agent/corpus-agent/agent/health"
	"github.com/corpus-agent/corpus-agent/agent/layout"
	"github.com/corpus-agent/corpus-agent/agent/ledger"
	"github.com/corpus-agent/corpus-agent/agent/report"
	"github.com/corpus-agent/corpus-agent/agent/self"
	"github.com/corpus-agent/corpus-agent/agent/service"
	"github.com/corpus-agent/corpus-agent/artifact"
	"github.com/corpus-agent/corpus-agent/artifact/recipe"
	"github.com/corpus-agent/corpus-agent/artifact/walk"
	"github.com/corpus-agent/corpus-agent/state"
	"github.com/corpus-agent/corpus-agent/state/diag"
)

// This file decides why a run failed, and what follows from that for later runs:
//
//	a release failed     it is quarantined, whatever it is paired with, until unquarantine
//	the host failed      nothing is quarantined; the deploy is retried, at growing intervals
//	it was interrupted   nothing is quarantined; the next run takes the deploy up again
//
// Kinds of errors decide, and not their text. The one exception is a program that failed (a hook, a procedure, a command of
// a state): what it printed decides where it names an error of the host in the words of the C library (process.Printed), and
// so does the same failure of the release that ran before (alikeOnTheWayBack).

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
	return fault{of: report.FaultOfRelease, release: r.guilty(pair, r.origin(pair, cause)), cause: cause}
}

// ending reports whether this run was asked to end, or the host is shutting down. What fails from
// then on fails for that.
func (r *run) ending(ctx context.Context) bool { return stopped(ctx) || r.ShuttingDown(ctx) }

// guilty is the release of a pair that is at fault for an error in a file; "" is an error in none. What
// ran before is not: where the other release is new, that made the difference. It is nil where both ran
// before.
func (r *run) guilty(pair ledger.Pair, file string) *artifact.Release {
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

// inBase reports whether a file lies in base's release of a pair, and not in the service's.
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
		return r.treeOf(pair, units.Project())
	case errors.As(cause, &sick):
		return r.treeOf(pair, sick.Project())
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

// treeOf is corpus.yaml, in which its units and probes are named, of a project's release in a pair; "" for
// no project, as of a probe of the host.
func (r *run) treeOf(pair ledger.Pair, project string) string {
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

// stay reports whether the host keeps what it has, and says why. Where a release of the pair is in
// quarantine, what runs in its place stands in for it, so that the other is still brought up to date.
func (r *run) stay(pair *ledger.Pair) (bool, error) {
	named, good := *pair, r.ledger.Runs()
	_ = r.Requested(r.ledger) // since the run began
	if r.inDoubt(named) {
		return r.withhold(named), nil
	}
	r.withoutQuarantined(pair)
	if p := r.ledger.Postponed; p != nil && !p.Pair.Same(*pair) {
		r.ledger.Postponed = nil // the channels have moved on
	}
	bad, quarantined := r.ledger.IsBad(*pair)
	switch wait, early := r.ledger.Waits(*pair, r.Time()); {
	case quarantined && good == nil:
		return false, exit.WithCode(exit.Failed, diag.WithHint(fmt.Errorf("%s is quarantined (%s) and there is nothing else to run", bad.What(), bad.Reason),
			"publish a corrected version, or retry this one: corpus-agent unquarantine %s", ledger.Release(bad).Version))
	case quarantined && r.ledger.Good == nil && !pair.BaseAlone():
		r.trouble = exit.WithCode(exit.Failed, diag.WithHint(fmt.Errorf("%s is quarantined (%s), and only %s converges", bad.What(), bad.Reason, good),
			"publish a corrected version, or retry this one: corpus-agent unquarantine %s", ledger.Release(bad).Version))
		return r.withhold(named), nil
	case quarantined && !good.Same(*pair):
		r.record.Note("%s is quarantined since run %s: %s", bad.What(), bad.Run, bad.Reason)
		return r.withhold(named), nil
	case r.ledger.Hold != nil && good != nil && !good.Same(named):
		r.record.Note("this host is held since %s; %s waits", r.ledger.Hold.Since.Format("2006-01-02 15:04 MST"), named)
		return r.withhold(named), nil
	case early && good != nil:
		r.record.Note("%s waits until %s: the host failed it %d times, last in run %s: %s; to try it at once: %s",
			pair, wait.Next.Local().Format("2006-01-02 15:04 MST"), wait.Failures, wait.Run, wait.Reason, wait.AtOnce())
		return r.withhold(named), nil
	case wait.Failures > 0:
		r.record.Note(r.orWould("%s is tried again: in run %s the host failed it: %s", "%s would be tried again: in run %s the host failed it: %s"), pair, wait.Run, wait.Reason)
		return false, nil
	}
	if !pair.Same(named) {
		r.report.Withheld = &named
	}
	if good == nil || !good.Same(*pair) || r.ledger.Running != nil || r.ledger.Failing != nil {
		return false, nil
	}
	if there, err := r.Held().Holds(good.Releases()...); err != nil {
		return false, err
	} else if !there {
		r.record.Note(r.orWould("a release of %s, which is deployed, was gone from the disk; it is deployed again",
			"a release of %s, which is deployed, is gone from the disk; it would be deployed again"), good)
		return false, nil
	}
	return true, nil // links that lead elsewhere are put right on the way
}

// withhold records that what the channels name does not get onto the host now: the run is about what
// runs.
func (r *run) withhold(named ledger.Pair) bool {
	r.report.Withheld, r.report.To = &named, r.ledger.Good
	return true
}
