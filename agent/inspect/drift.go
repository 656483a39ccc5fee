package inspect

import (
	"fmt"
	"os"
	"slices"

	"github.com/corpus-agent/corpus-agent/agent/exit"
	"github.com/corpus-agent/corpus-agent/agent/ledger"
	"github.com/corpus-agent/corpus-agent/agent/link"
	"github.com/corpus-agent/corpus-agent/agent/report"
	"github.com/corpus-agent/corpus-agent/artifact"
	"github.com/corpus-agent/corpus-agent/artifact/walk"
	"github.com/corpus-agent/corpus-agent/state/diag"
)

// drift returns the differences between the host and the ledger that can be found without converging.
func (h *Host) drift(s Status) []string {
	if s.Failing != nil {
		return []string{fmt.Sprintf("this dev host stays on %s, which failed", s.Failing)}
	}
	runs := s.runs()
	if runs == nil || s.Running != nil || s.CutShort != nil {
		return nil // during a deploy, differences are not drift
	}
	lost, unseen := h.DataLost(*runs)
	found := append(append(lost, unseen...), h.SharedDrift(*runs)...)
	found = append(found, h.astray(*runs)...)
	for _, release := range runs.Releases() {
		links, dir := s.Links[release.Project], release.Dir()
		if text := h.missing(release); text != "" {
			found = append(found, text)
		}
		for _, c := range h.Impassable(release) {
			found = append(found, c.Name+" "+c.What)
		}
		for _, l := range []struct{ name, target, dir string }{{"next", links.Next, dir}, {"current", links.Current, dir},
			{"previous", links.Previous, h.PreviousDir(s.before, release)}} {
			instead, err := link.Of(h.LayoutOf(release.Project)).Instead(l.name)
			switch {
			case err != nil:
				found = append(found, fmt.Sprintf("%s of %s cannot be looked at: %v", l.name, release.Project, err))
			case instead != "":
				found = append(found, fmt.Sprintf("%s of %s is %s and no link; the next run sets it aside and makes the link again",
					l.name, release.Project, instead))
			case l.target != l.dir && l.dir != "":
				found = append(found, fmt.Sprintf("%s of %s leads to %q and not to %q", l.name, release.Project, l.target,
					l.dir))
			}
		}
	}
	if r := s.LastRun; r != nil && r.Exit == exit.OK && r.From != nil && (r.To == nil || r.To.Same(*r.From)) &&
		(r.Left == nil || r.Left.Same(*r.From)) && r.States.Effective() > 0 {
		found = append(found, fmt.Sprintf("the last run found drift, and corrected %s",
			diag.Count(r.States.Effective(), "state")))
	}
	return found
}

// astray describes links in the places of directories that lead to another directory of the agent.
func (h *Host) astray(pair ledger.Pair) (found []string) {
	dirs := []string{h.Layout.Projects()}
	for _, release := range pair.Releases() {
		p := h.LayoutOf(release.Project)
		dirs = append(dirs, p.Dir, p.Releases())
	}
	for _, dir := range dirs {
		what, err := h.Astray(dir)
		if err == nil && what != "" {
			found = append(found, fmt.Sprintf("%s is %s; the next run sets it aside", h.Layout.Inside(dir), what))
		}
	}
	return found
}

// missing describes what is wrong with the directory of a release; "" if it is there.
func (h *Host) missing(release artifact.Release) string {
	info, err := os.Stat(h.LayoutOf(release.Project).Release(release.Dir()))
	there, err := walk.Found(err)
	switch {
	case err != nil:
		return fmt.Sprintf("the directory of %s cannot be looked at: %v", release, err)
	case !there:
		return fmt.Sprintf("the directory of %s is gone", release)
	case !info.IsDir():
		return fmt.Sprintf("the directory of %s is %s, and not a directory", release, walk.TypeName(info.Mode().Type()))
	}
	return ""
}

// lost returns the pair whose files are missing on the disk, which a deploy fetches again from the store: the deployed
// pair, or the one that it stands in for. It returns nil if no files are missing, or if they came by a push, which no
// store has.
func (h *Host) lost(s Status) *ledger.Pair {
	pair := s.StandsFor
	if runs := s.runs(); pair == nil && runs != nil {
		if held, err := h.Held().Holds(runs.Releases()...); err == nil && !held {
			pair = runs
		}
	}
	if pair == nil || slices.ContainsFunc(pair.Releases(), func(r artifact.Release) bool { return r.Local != "" }) {
		return nil
	}
	return pair
}

// actingAlways returns the states of a run that changed something and will do so in each run. They are not drift, since
// converging does not end that.
func actingAlways(r *report.Report) []string {
	if r == nil || r.Test {
		return nil
	}
	var named []string
	for _, s := range r.Steps {
		if s.Always {
			named = append(named, fmt.Sprintf("%s %s in %s", s.Function, s.ID, s.SLS))
		}
	}
	return named
}
