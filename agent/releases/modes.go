package releases

import (
	"fmt"
	"slices"
	"time"

	"github.com/corpus-agent/corpus-agent/agent/exit"
	"github.com/corpus-agent/corpus-agent/agent/ledger"
	"github.com/corpus-agent/corpus-agent/artifact"
	"github.com/corpus-agent/corpus-agent/artifact/manifest"
	"github.com/corpus-agent/corpus-agent/artifact/recipe"
	"github.com/corpus-agent/corpus-agent/state/diag"
)

// correctModes restores the modes of a release's files that were changed after since. It notes a mode that it cannot
// change, and continues: the release may work nevertheless.
func (r *Run) correctModes(
	release artifact.Release, says recipe.Recipe, list *manifest.Manifest, since func() time.Time,
) {
	if r.Test || list == nil || release.Local != "" {
		return
	}
	done, err := r.Host.RestoreModes(release, says, list, since)
	if len(done) > 0 {
		more := ""
		if len(done) > 1 {
			more = fmt.Sprintf(", and %s had others than they were unpacked with", diag.Count(len(done)-1, "other name"))
		}
		first := done[0]
		r.Record.Note("%s of %s has mode %04o, not %04o%s; it is corrected",
			first.Name, release, first.Was, first.Mode, more)
	}
	if err != nil {
		r.Record.Note("the modes of %s could not all be corrected: %v", release, err)
	}
}

// correctDeployed is correctModes for a deployed release, once in a run. States, hooks and procedures of the release
// may set other modes, so it keeps the modes that the last successful run left.
func (r *Run) correctDeployed(release artifact.Release, says recipe.Recipe, list *manifest.Manifest) {
	runs := r.Ledger.Runs()
	if runs == nil || !runs.Has(release) || r.corrected[release.String()] {
		return
	}
	if r.corrected == nil {
		r.corrected = map[string]bool{}
	}
	r.corrected[release.String()] = true
	r.correctModes(release, says, list, r.lastSuccess)
}

// lastSuccess returns the end of the last successful run; the present time if there is no report of one.
func (r *Run) lastSuccess() time.Time {
	reports, now := r.Host.Reports(), r.Host.Time()
	ids, _ := reports.IDs()
	for _, id := range slices.Backward(ids) {
		rep, err := reports.Load(id)
		if err == nil && rep.Exit == exit.OK && !rep.Test && !rep.Ended.After(now) {
			return rep.Ended
		}
	}
	return now
}

// RestoreModes restores the modes of those releases of a pair that are not deployed. States, hooks and procedures that
// set other modes run again when the pair is deployed. It skips what this run has unpacked, until a program runs, but
// not where the recipe has writable paths: code in them is unpacked writable.
func (r *Run) RestoreModes(pair ledger.Pair) error {
	runs := r.Ledger.Runs()
	for _, release := range pair.Releases() {
		if runs != nil && runs.Has(release) {
			continue
		}
		list, err := r.Host.Held().List(release)
		if err != nil || list == nil {
			continue // Intact returns the error
		}
		says, err := r.Host.RecipeListed(release, list)
		if err != nil {
			return err
		}
		if r.unpacked[release.String()] && len(says.Writable) == 0 {
			continue
		}
		r.correctModes(release, says, list, func() time.Time { return time.Time{} })
	}
	return nil
}

// CorrectAgain makes Intact correct the modes of the deployed releases once more, after states of a failed release may
// have changed them.
func (r *Run) CorrectAgain() { r.corrected, r.unpacked = nil, nil }

// BeforeProgram makes RestoreModes look at all releases again: a program of a release can change their modes.
func (r *Run) BeforeProgram() { r.unpacked = nil }
