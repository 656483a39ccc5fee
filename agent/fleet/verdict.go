package fleet

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/corpus-agent/corpus-agent/agent/exit"
	"github.com/corpus-agent/corpus-agent/agent/ledger"
	"github.com/corpus-agent/corpus-agent/artifact"
)

// says is what a report says of a release. It is healthy where the host has it, and a run asked its units
// and probes and they passed; this run, or an earlier one whose proof it repeats. It is not healthy where a
// run failed on it, a person went back from it, it is quarantined, or its units do not run it any more.
// Otherwise the report says nothing of it.
func (r *Report) says(q Question) *RunResult {
	if r.Test || !slices.Contains(r.Channels, q.Channel) {
		return nil
	}
	if why := r.against(q); why != "" {
		return &RunResult{Host: r.Host, Run: r.ID, At: r.Ended, Why: why, OtherRoot: r.OtherRoot, Signed: r.signed}
	}
	if r.Exit != exit.OK || !holds(r.Left, q) {
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

// against is why a report speaks against a release; "" where it does not.
func (r *Report) against(q Question) string {
	tried := r.To // what a run fails on is what it tried, and not what it went back to
	if tried == nil {
		tried = r.Left
	}
	leaves := r.Leaves
	if leaves == nil && r.Command == "rollback" && r.To != nil && !holds(r.To, q) {
		leaves = r.From // older agents do not say what a rollback leaves
	}
	switch {
	case failed(r.Exit) && holds(tried, q):
		return strings.TrimSuffix(r.Outcome+": "+r.Error, ": ")
	case holds(leaves, q) && !holds(r.To, q):
		return "rolled back by hand"
	case r.Exit == exit.OK && holds(r.Left, q) && len(r.Unserved) > 0:
		return strings.Join(r.Unserved, "; ")
	}
	for _, b := range r.Quarantined {
		if b.Release.Project == q.Channel.Project && b.Release.Digest == q.Digest {
			return fmt.Sprintf("quarantined since run %s: %s", b.Run, b.Reason)
		}
	}
	return ""
}

// proof is the run that asked the units and probes of the release, and when; "" for none.
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

// failed reports whether a run came to the release and it did not do; a store that was out of reach,
// or refused, says nothing of a release.
func failed(code int) bool {
	return code == exit.Failed || code == exit.RolledBack || code == exit.RollbackFailed
}
