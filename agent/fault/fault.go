// Package fault decides why a deploy failed:
//
//	a release failed     it is quarantined, whichever release it is paired with, until unquarantine
//	the host failed      nothing is quarantined; the deploy is retried, at growing intervals
//	it was interrupted   nothing is quarantined; the next run resumes the deploy
//
// The kind of an error decides, and not its text. The one exception is a program that failed (a hook, a procedure, a
// command of a state): its output decides if it contains an error of the host in the words of the C library
// (process.Printed), and so does the same failure of the release that ran before (failure.SameAfterRollback).
package fault

import (
	"context"
	"strings"

	"github.com/corpus-agent/corpus-agent/agent/failure"
	"github.com/corpus-agent/corpus-agent/agent/inspect"
	"github.com/corpus-agent/corpus-agent/agent/ledger"
	"github.com/corpus-agent/corpus-agent/agent/report"
	"github.com/corpus-agent/corpus-agent/agent/retention"
	"github.com/corpus-agent/corpus-agent/agent/selftest"
	"github.com/corpus-agent/corpus-agent/artifact"
)

// Run finds faults in one run of the agent. All of its exported fields have to be set.
type Run struct {
	Host      *inspect.Host
	ID        string
	Ledger    *ledger.Ledger
	Record    *report.Builder
	Report    *report.Report
	SelfTest  *selftest.Run
	Retention *retention.Run
	// Ending reports whether the run was asked to end, or the host is shutting down.
	Ending func(context.Context) bool
}

// Fault is the reason why a deploy failed.
type Fault struct {
	Of      report.FaultOf
	Release *artifact.Release // the release at fault, with report.FaultOfRelease; nil if no release is new
	Cause   error
}

// Find returns why a deploy of a pair failed with the error cause.
func (r *Run) Find(ctx context.Context, pair ledger.Pair, cause error) Fault {
	switch {
	case r.Ending(ctx):
		return Fault{Of: report.FaultOfInterruption, Cause: cause}
	case failure.OfHost(cause) && !(failure.Killed(cause) && r.killedBefore(pair)):
		return Fault{Of: report.FaultOfHost, Cause: cause}
	}
	return Fault{Of: report.FaultOfRelease, Release: r.Release(pair, r.origin(pair, cause)), Cause: cause}
}

// mostKills is how often in a row the deploy of a pair fails since a python3 or the script of a package was killed,
// before a release is at fault.
const mostKills = 3

// killedBefore reports whether a python3 or the script of a package was killed in each of the last attempts to deploy a
// pair, before the last one that is allowed.
func (r *Run) killedBefore(pair ledger.Pair) bool {
	p := r.Ledger.Postponed
	return p != nil && p.Pair.Same(pair) && p.Kills >= mostKills-1
}

// Release returns the release of a pair that is at fault for an error in a file; "" is an error in no file. A release
// that ran before is not at fault if the other one is new. Release returns nil if both ran before.
func (r *Run) Release(pair ledger.Pair, file string) *artifact.Release {
	known := func(release artifact.Release) bool { return r.Ledger.Runs() != nil && r.Ledger.Runs().Has(release) }
	service, base := &pair.Service, pair.Base
	if base != nil && known(*base) {
		base = nil
	}
	if known(*service) {
		return base
	}
	if pair.BaseAlone() || base != nil && r.InBase(pair, file) {
		return base
	}
	return service
}

// InBase reports whether a file is in the release of base in a pair.
func (r *Run) InBase(pair ledger.Pair, file string) bool {
	_, dir := r.Host.PairDirs(pair)
	_, linked := r.Host.LinkedDirs(pair)
	for _, base := range []string{dir, linked} {
		if base != "" && strings.HasPrefix(file, base+"/") {
			return true
		}
	}
	return false
}

// OfBase reports whether an error of a pair is in a file of its base.
func (r *Run) OfBase(pair ledger.Pair, cause error) bool {
	file := r.origin(pair, cause)
	return pair.Base != nil && file != "" && r.InBase(pair, file)
}

// SameCause reports whether a rollback to a pair failed only because of the error of the host that made the deploy
// fail, and notes that. The pair is deployed then, although parts of it may not run.
func (r *Run) SameCause(good ledger.Pair, cause, back error) bool {
	switch {
	case failure.AlsoUnexecuted(r.Host.Layout, cause, back):
		r.Record.Note("%s runs again, but for programs of its own that could not be started either: %v", good, back)
	case failure.AlsoSources(cause, back), failure.AlsoKeys(cause, back):
		r.Record.Note("%s runs again, but was not converged; the next run converges it: %v", good, back)
	case failure.AlsoGrains(cause, back):
		r.Record.Note("%s runs again, but was not converged since grains are unknown; the next run converges it: %v", good,
			back)
	case failure.AlsoPython(cause, back):
		r.Record.Note("%s runs again, but for what needs python3; the next run converges it: %v", good, back)
	default:
		return false
	}
	return true
}
