package agent

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"syscall"

	"github.com/corpus-agent/corpus-agent/agent/exit"
	"github.com/corpus-agent/corpus-agent/agent/health"
	"github.com/corpus-agent/corpus-agent/agent/hook"
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
	"github.com/corpus-agent/corpus-agent/state/host/packages"
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
	case hostFailed(cause):
		return fault{of: report.FaultOfHost, cause: cause}
	}
	return fault{of: report.FaultOfRelease, release: r.guilty(pair, r.origin(pair, cause)), cause: cause}
}

// ending reports whether this run was asked to end, or the host is shutting down. What fails from
// then on fails for that.
func (r *run) ending(ctx context.Context) bool { return stopped(ctx) || r.ShuttingDown(ctx) }

// hostErrors are the system call errors for which no release is to blame: another would have met them
// as well.
func hostErrors() []syscall.Errno {
	return []syscall.Errno{
		syscall.ENOSPC, syscall.EDQUOT, syscall.EIO, syscall.EROFS, syscall.ESTALE, syscall.ENODEV, syscall.ENXIO, // a disk or a share
		syscall.EMFILE, syscall.ENFILE, syscall.ENOMEM, syscall.EAGAIN, syscall.ENOBUFS, // a limit, or memory
		syscall.ETIMEDOUT, syscall.ENETUNREACH,
		syscall.ENOSYS, // an old kernel, or a container's filter
	}
}

// hostFailed reports whether the host, and no release, is what an error is about.
func hostFailed(err error) bool {
	var busy *packages.Busy
	var unfinished *packages.Unfinished
	var work *workError
	var occupied *service.Occupied // another process has the port of the release
	var unstarted *noexec
	var states *state.Failure
	var unsafe *walk.UnsafeError // an unprivileged user of this host prepared it
	if errors.As(err, &states) && (states.Outage() || states.Refused()) || errors.As(err, &unsafe) {
		return true
	}
	if errors.As(err, &busy) || errors.As(err, &unfinished) || errors.As(err, &work) || errors.As(err, &occupied) || errors.As(err, &unstarted) {
		return true
	}
	return hostErrno(err)
}

// hostErrno reports whether an error wraps one of hostErrors.
func hostErrno(err error) bool {
	return slices.ContainsFunc(hostErrors(), func(errno syscall.Errno) bool { return errors.Is(err, errno) })
}

// workError is a failure of what the agent itself does on the host between the parts of a release, such
// as moving links.
type workError struct{ error }

func (e *workError) Unwrap() error { return e.error }

// ofWork marks an error as one of the agent's own work.
func ofWork(err error) error {
	if err == nil {
		return nil
	}
	return &workError{err}
}

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
	if file := step.Pos.File; filepath.IsAbs(file) {
		return file
	}
	if source, _ := step.Chunk.Value("source").(string); filepath.IsAbs(source) {
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
		r.record.Note("%s waits until %s: the host failed it %d times, last in run %s: %s", pair, wait.Next.Local().Format("2006-01-02 15:04 MST"), wait.Failures, wait.Run, wait.Reason)
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

// withoutQuarantined replaces each release of a pair that is in quarantine by the one that runs. A host that has run
// without base goes on so while the first base is in quarantine: its service is still brought up to date.
func (r *run) withoutQuarantined(pair *ledger.Pair) {
	good := r.ledger.Runs()
	if good == nil {
		return
	}
	for _, release := range pair.Releases() {
		for _, b := range r.ledger.Bad {
			if b.Is(release) {
				r.record.Note("%s is quarantined since run %s: %s", release, b.Run, b.Reason)
				*pair = inPlace(*pair, release, *good)
				break
			}
		}
	}
}

// inPlace is a pair with what runs in the place of one of its releases.
func inPlace(pair ledger.Pair, release artifact.Release, good ledger.Pair) ledger.Pair {
	if release.Project == artifact.Base && good.Base == nil {
		pair.Base = nil
		return pair
	}
	for _, runs := range good.Releases() {
		if runs.Project == release.Project {
			return pair.With(runs)
		}
	}
	return pair
}

// withhold records that what the channels name does not get onto the host now: the run is about what
// runs.
func (r *run) withhold(named ledger.Pair) bool {
	r.report.Withheld, r.report.To = &named, r.ledger.Good
	return true
}

// condemn records in the ledger what follows from a fault.
func (r *run) condemn(pair ledger.Pair, f fault) {
	told := &report.Fault{Of: f.of, Release: f.release}
	switch {
	case f.of == report.FaultOfHost:
		p := r.ledger.Postpone(pair, firstLine(f.cause), r.id, r.Time().UTC())
		told.Retry = &p.Next
		r.record.Note("the host failed, and not the release: %s", nextTry(p))
	case f.release != nil:
		r.quarantine(pair, *f.release, firstLine(f.cause))
	}
	r.record.Complete(func(rep *report.Report) { rep.Fault = told })
}

// alikeOnTheWayBack reports whether what made the deploy fail, a program, a state, units or probes, failed the release that
// ran before on the way back just so. Both releases met the same host, so that is what failed them.
func alikeOnTheWayBack(cause, back error) bool {
	var failed *hook.Failed
	if !errors.As(cause, &failed) {
		return sameSymptoms(symptoms(cause), symptoms(back))
	}
	for _, other := range programsOf(back) {
		if failed.Alike(other) {
			return true
		}
	}
	return false
}

// programsOf are the programs whose failures an error joins.
func programsOf(err error) []*hook.Failed {
	return eachIn(err, func(err error) ([]*hook.Failed, bool) {
		f, ok := err.(*hook.Failed) //nolint:errorlint // eachIn walks the tree
		if !ok {
			return nil, false
		}
		return []*hook.Failed{f}, true
	})
}

// acquit takes a release out of quarantine whose failure the way back has shown to be the host's.
func (r *run) acquit(pair ledger.Pair, cause error) error {
	r.ledger.Bad = slices.DeleteFunc(r.ledger.Bad, func(b ledger.Bad) bool { return b.Run == r.id && b.Covers(pair) })
	r.condemn(pair, fault{of: report.FaultOfHost, cause: cause})
	return r.save()
}

// nextTry says when a deploy that the host failed is retried.
func nextTry(p ledger.Postponed) string {
	if p.Next.Equal(p.At) {
		return "the next run tries it again"
	}
	return "it is tried again from " + p.Next.Local().Format("2006-01-02 15:04 MST") + " on"
}

// byHand is why a release is quarantined from which a person went back.
const byHand = "rolled back by hand"

// quarantine keeps a release from being deployed again.
func (r *run) quarantine(pair ledger.Pair, release artifact.Release, reason string) {
	r.ledger.Quarantine(ledger.Bad{Pair: pair, Release: &release, Reason: reason, Run: r.id, At: r.Time().UTC()})
}

// leave quarantines what somebody went back from: each release that the host has no more.
func (r *run) leave(left ledger.Pair) {
	for _, release := range left.Releases() {
		if r.ledger.Good == nil || !r.ledger.Good.Has(release) {
			r.quarantine(left, release, byHand)
		}
	}
	r.ledger.Previous = nil
	r.ledger.Previous = r.lastKept()
}

// Unquarantine lets releases be tried again that have this version or directory; "" means all.
func (a *Agent) Unquarantine(version string) (released []ledger.Bad, err error) {
	err = a.Edit("unquarantine", func(book *ledger.Ledger) error {
		known := book.Bad
		if released = book.Unquarantine(version); len(released) == 0 {
			return exit.WithCode(exit.Usage, notQuarantined(version, known))
		}
		return nil
	})
	return released, err
}

// notQuarantined is the error for a version that is not in quarantine.
func notQuarantined(version string, known []ledger.Bad) error {
	if len(known) == 0 {
		return diag.WithHint(errors.New("nothing is quarantined"), "`corpus-agent status` would list it")
	}
	var all []string
	for _, b := range known {
		all = append(all, b.What())
	}
	return diag.WithHint(fmt.Errorf("%q is not quarantined", version), "quarantined: %s", strings.Join(all, ", "))
}
