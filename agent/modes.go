package agent

import (
	"fmt"
	"slices"
	"time"

	"github.com/corpus-agent/corpus-agent/agent/exit"
	"github.com/corpus-agent/corpus-agent/agent/ledger"
	"github.com/corpus-agent/corpus-agent/artifact"
	"github.com/corpus-agent/corpus-agent/artifact/manifest"
	"github.com/corpus-agent/corpus-agent/artifact/recipe"
)

// This file gives releases on the disk the modes again that unpacking gave them, before they are used.

// restoreModes gives what was unpacked of a release its modes again, where they were changed after since. What cannot
// be changed is noted: the release may work all the same.
func (r *run) restoreModes(
	release artifact.Release, says recipe.Recipe, list *manifest.Manifest, since func() time.Time,
) {
	if r.test || list == nil || release.Local != "" {
		return
	}
	done, err := r.RestoreModes(release, says, list, since)
	if len(done) > 0 {
		more := ""
		if len(done) > 1 {
			more = fmt.Sprintf(", and %d more files or directories had others than they were unpacked with", len(done)-1)
		}
		first := done[0]
		r.record.Note("%s of %s has mode %04o, not %04o%s; that is put right",
			first.Name, release, first.Was, first.Mode, more)
	}
	if err != nil {
		r.record.Note("the modes of %s could not all be put right: %v", release, err)
	}
}

// restoreRunning is restoreModes for a release of what is deployed. States, hooks and procedures of it may give other
// modes: those that a successful run left stay.
func (r *run) restoreRunning(release artifact.Release, says recipe.Recipe, list *manifest.Manifest) {
	runs := r.ledger.Runs()
	if runs == nil || !runs.Has(release) || r.remoded[release.String()] {
		return
	}
	if r.remoded == nil {
		r.remoded = map[string]bool{}
	}
	r.remoded[release.String()] = true
	r.restoreModes(release, says, list, r.lastSuccess)
}

// lastSuccess is the end of the last run that changed the host as it should; now where no report says when that was.
func (r *run) lastSuccess() time.Time {
	reports, now := r.Reports(), r.Time()
	ids, _ := reports.IDs()
	for _, id := range slices.Backward(ids) {
		rep, err := reports.Load(id)
		if err == nil && rep.Exit == exit.OK && !rep.Test && !rep.Ended.After(now) {
			return rep.Ended
		}
	}
	return now
}

// restoreOthers is restoreModes for those releases of a pair that are not deployed: all that gives modes to one runs
// again before it is deployed.
func (r *run) restoreOthers(pair ledger.Pair) error {
	runs := r.ledger.Runs()
	for _, release := range pair.Releases() {
		if runs != nil && runs.Has(release) {
			continue
		}
		list, err := r.Held().List(release)
		if err != nil || list == nil {
			continue // intact says so
		}
		says, err := r.RecipeListed(release, list)
		if err != nil {
			return err
		}
		r.restoreModes(release, says, list, func() time.Time { return time.Time{} })
	}
	return nil
}

// heldOf are those releases of a pair that are on the disk.
func (r *run) heldOf(pair ledger.Pair) (held []artifact.Release) {
	for _, release := range pair.Releases() {
		if r.Held().Has(release) {
			held = append(held, release)
		}
	}
	return held
}
