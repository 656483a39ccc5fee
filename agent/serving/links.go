package serving

import (
	"context"
	"time"

	"github.com/corpus-agent/corpus-agent/agent/failure"
	"github.com/corpus-agent/corpus-agent/agent/inspect"
	"github.com/corpus-agent/corpus-agent/agent/ledger"
	"github.com/corpus-agent/corpus-agent/agent/link"
	"github.com/corpus-agent/corpus-agent/agent/service"
	"github.com/corpus-agent/corpus-agent/artifact"
)

// Follow writes into the ledger that the links of the moving releases are about to lead to a pair, and which units run
// now and have to follow them. If the run is interrupted, the next one restarts those units.
func (r *Run) Follow(ctx context.Context, pair ledger.Pair, moving []artifact.Release) error {
	s, err := r.Host.System()
	if err != nil || s.Allowed() != nil || r.Test {
		return err
	}
	members, err := r.members(ctx, s, pair)
	if err != nil {
		return err
	}
	running, err := service.Running(ctx, s, members, r.Began, r.ran)
	if err != nil {
		return failure.OfWork(err)
	}
	r.ran = joined(r.ran, running)
	moves := r.Moving(moving)
	if len(moves) == 0 && r.Ledger.Serving == nil {
		return nil
	}
	serving := r.servingOf()
	serving.Run = r.ID
	serving.Projects = joined(serving.Projects, moves)
	serving.Units, r.moves = joined(serving.Units, running), moves
	return r.Save()
}

// Moved records that the links which Follow announced have moved, and when.
func (r *Run) Moved() {
	if r.movedAt == nil {
		r.movedAt = map[string]time.Duration{}
	}
	for _, project := range r.moves {
		r.movedAt[project] = r.Host.UnitClock()
		r.NoteMoved(project)
	}
	r.moves = nil
}

// Moving returns the projects of releases that are not current, or whose directories this run has replaced.
func (r *Run) Moving(releases []artifact.Release) []string {
	var projects []string
	for _, release := range releases {
		if now, err := link.Of(r.Host.LayoutOf(release.Project)).Read(); err != nil || now.Current != release.Dir() ||
			r.Replaced(release) {
			projects = append(projects, release.Project)
		}
	}
	return projects
}

// LinkedFirst lists the releases of a pair whose link current moves before states run: that of base, since states are
// read through it, and that of the service on a first deploy.
func (r *Run) LinkedFirst(pair ledger.Pair) []artifact.Release {
	var first []artifact.Release
	for _, release := range pair.Releases() {
		now, err := link.Of(r.Host.LayoutOf(release.Project)).Read()
		if release.Project == artifact.Base || err == nil && now.Current == "" {
			first = append(first, release)
		}
	}
	return first
}

// FollowBack is Follow for a rollback. It does nothing for a nil pair, and only notes errors: a rollback continues
// without knowing which units run.
func (r *Run) FollowBack(ctx context.Context, pair *ledger.Pair) {
	r.started = nil // by states of the release that is left
	if pair == nil {
		return
	}
	if err := r.Follow(context.WithoutCancel(ctx), *pair, pair.Releases()); err != nil {
		r.Record.Note("cannot determine which units run: %v", err)
	}
}

// NoteMoved writes into the ledger that the link current of a project has been moved now. The clock of units, unlike
// the wall clock, is never set.
func (r *Run) NoteMoved(project string) {
	r.NoteLinked(project, r.Host.Time())
	if l, known := r.Ledger.Linked[project]; known {
		l.Boot, l.Clock = r.Host.BootID(), r.Host.UnitClock()
		r.Ledger.Linked[project] = l
	}
}

// NoteLinked writes into the ledger when the link current of a project was moved to the release that it leads to. It
// does nothing where the link leads nowhere or the time is zero.
func (r *Run) NoteLinked(project string, at time.Time) {
	if release := inspect.CurrentOf(r.Host.LayoutOf(project)); release != "" && !at.IsZero() {
		if r.Ledger.Linked == nil {
			r.Ledger.Linked = map[string]ledger.Linked{}
		}
		r.Ledger.Linked[project] = ledger.Linked{Release: release, At: at.UTC()}
	}
}

// RememberLinks calls NoteLinked for projects whose links were moved by another program, or by an agent too old to
// record that. It reports whether the ledger changed.
func (r *Run) RememberLinks() (changed bool) {
	if r.Test || r.Ledger.Runs() == nil {
		return false
	}
	for _, release := range r.Ledger.Runs().Releases() {
		p := r.Host.LayoutOf(release.Project)
		before := r.Ledger.Linked[release.Project]
		if current := inspect.CurrentOf(p); current != "" && current != before.Release {
			r.NoteLinked(release.Project, inspect.LinkedAt(p, ledger.Linked{}))
			changed = true
		}
	}
	return changed
}
