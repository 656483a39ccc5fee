package fleet

import (
	"slices"
	"strings"
	"time"

	"github.com/corpus-agent/corpus-agent/agent/exit"
	"github.com/corpus-agent/corpus-agent/agent/ledger"
	"github.com/corpus-agent/corpus-agent/artifact"
)

// says returns the result of a release in a report. The release is healthy if the host has it and its units and probes
// passed in this run, or in an earlier one whose proof the report repeats. It is not healthy if a run failed on it, a
// person rolled it back, it is quarantined, or its units no longer run it. Otherwise the report has no result of it.
func (r *Report) says(q Question) *RunResult {
	if r.Test || !slices.Contains(r.Channels, q.Channel) {
		return nil
	}
	if why := r.against(q); why != "" {
		return &RunResult{Host: r.Host, Run: r.ID, At: r.Ended, Why: why, OtherRoot: r.OtherRoot, Signed: r.signed}
	}
	if r.Exit != exit.OK && !r.Excused || !holds(r.Left, q) {
		return nil
	}
	run, at := r.proof(q)
	if run == "" || at.Before(q.Since) || at.After(q.Until) {
		return nil
	}
	elsewhere := r.OtherRoot || r.Proven != nil && r.Proven.OtherRoot
	return &RunResult{Host: r.Host, Run: run, At: at, Healthy: true, OtherRoot: elsewhere,
		Signed: r.signed}
}

// against returns the reason why a release is not healthy according to a report; "" if there is none.
func (r *Report) against(q Question) string {
	tried := r.To // a run fails on the release that it tried, and not on the one that it rolled back to
	if tried == nil {
		tried = r.Left
	}
	leaves := r.Leaves
	if leaves == nil && r.Command == "rollback" && r.To != nil && !holds(r.To, q) {
		leaves = r.From // reports of older agents lack the release that a rollback leaves
	}
	switch {
	case failed(r.Exit) && !r.Excused && holds(tried, q):
		return strings.TrimSuffix(r.Outcome+": "+r.Error, ": ")
	case holds(leaves, q) && !holds(r.To, q):
		return "rolled back by hand"
	case (r.Exit == exit.OK || r.Excused) && holds(r.Left, q) && len(r.Unserved) > 0:
		return strings.Join(r.Unserved, "; ")
	}
	for _, b := range r.Quarantined {
		if b.Release.Project == q.Channel.Project && b.Release.Digest == q.Digest {
			return ledger.QuarantinedSince(b.Run, b.Reason)
		}
	}
	return ""
}

// proof returns the run that checked the units and probes of the release, and its time; "" if there is none.
func (r *Report) proof(q Question) (run string, at time.Time) {
	switch {
	case r.Proven != nil && holds(&r.Proven.Pair, q):
		return r.Proven.Run, r.Proven.At
	case !r.Proves && slices.ContainsFunc(r.Stages, func(s Stage) bool { return s.Name == "release" }):
		return r.ID, r.Ended
	}
	return "", time.Time{}
}

func holds(p *ledger.Pair, q Question) bool {
	return p != nil && slices.ContainsFunc(p.Releases(), func(r artifact.Release) bool {
		return r.Project == q.Channel.Project && r.Digest == q.Digest && r.Local == ""
	})
}

// failed reports whether a run tried the release and failed on it. A store that could not be reached, or was refused,
// is not a failure of the release.
func failed(code int) bool {
	return code == exit.Failed || code == exit.RolledBack || code == exit.RollbackFailed
}
