package agent

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/corpus-agent/corpus-agent/agent/failure"
	"github.com/corpus-agent/corpus-agent/agent/health"
	"github.com/corpus-agent/corpus-agent/agent/inspect"
	"github.com/corpus-agent/corpus-agent/agent/ledger"
	"github.com/corpus-agent/corpus-agent/agent/link"
	"github.com/corpus-agent/corpus-agent/agent/report"
	"github.com/corpus-agent/corpus-agent/agent/service"
	"github.com/corpus-agent/corpus-agent/artifact"
)

// unitsStage is the stage of a run in which units follow the links.
const unitsStage = report.UnitsStage

// wayBackTime is how long units may take to follow the links back when a run was asked to end.
const wayBackTime = 2 * time.Minute

// inService are the projects of a pair, as their units know them.
func (r *run) inService(pair ledger.Pair) ([]service.Project, error) {
	return r.Agent.ServiceProjects(pair, r.ledger.Linked)
}

// members are the units of a pair, base's before the service's.
func (r *run) members(ctx context.Context, s service.System, pair ledger.Pair) ([]service.Member, error) {
	projects, err := r.inService(pair)
	if err != nil {
		return nil, err
	}
	for i, p := range projects {
		projects[i].MovedAt = r.movedAt[p.Name]
		projects[i].Moved = r.ledger.Serving != nil && slices.Contains(r.ledger.Serving.Projects, p.Name)
	}
	members, err := service.Find(ctx, s, projects)
	if err != nil || r.ledger.Serving == nil {
		return r.socketsFirst(ctx, s, members, err)
	}
	// A unit of a release that is left may be none of the one to come, and follows the links as well.
	for _, unit := range r.ledger.Serving.Units {
		if !slices.ContainsFunc(members, func(m service.Member) bool { return m.Unit == unit }) {
			members = append(members, service.Member{Unit: unit, Project: projects[len(projects)-1]})
		}
	}
	return r.socketsFirst(ctx, s, members, nil)
}

// socketsFirst orders the units that were found, unless that failed.
func (r *run) socketsFirst(ctx context.Context, s service.System, members []service.Member, err error) ([]service.Member, error) {
	if err == nil {
		members, err = service.SocketsFirst(ctx, s, members)
	}
	return members, failure.OfWork(err)
}

// follow writes into the ledger that links are about to lead to a pair, and which units have to follow
// them: should the run be cut short, the next one finds it there.
func (r *run) follow(ctx context.Context, pair ledger.Pair, moving []artifact.Release) error {
	s, err := r.System()
	if err != nil || s.Allowed() != nil || r.test {
		return err
	}
	moves := r.moving(moving)
	if len(moves) == 0 && r.ledger.Serving == nil {
		return nil
	}
	if r.ledger.Serving == nil {
		r.ledger.Serving = &ledger.Serving{}
	}
	serving := r.ledger.Serving
	serving.Run = r.id
	serving.Projects = joined(serving.Projects, moves)
	members, err := r.members(ctx, s, pair)
	if err != nil {
		return err
	}
	running, err := service.Running(ctx, s, members)
	if err != nil {
		return failure.OfWork(err)
	}
	serving.Units, r.moves = joined(serving.Units, running), moves
	return r.save()
}

// moved notes that the links that follow announced have moved.
func (r *run) moved() {
	if r.movedAt == nil {
		r.movedAt = map[string]time.Duration{}
	}
	for _, project := range r.moves {
		r.movedAt[project] = r.UnitClock()
		r.noteLinked(project, r.Time())
	}
	r.moves = nil
}

// moving are the projects of releases that are not current, or whose directories were replaced.
func (r *run) moving(releases []artifact.Release) []string {
	var projects []string
	for _, release := range releases {
		if now, err := link.Of(r.LayoutOf(release.Project)).Read(); err != nil || now.Current != release.Dir() || r.wasReplaced(release) {
			projects = append(projects, release.Project)
		}
	}
	return projects
}

func joined(list, more []string) []string {
	for _, item := range more {
		if !slices.Contains(list, item) {
			list = append(list, item)
		}
	}
	return list
}

// linkedFirst are the releases of a pair whose current moves before states run: base's, since states are
// read from it, and the service's on a first deploy.
func (r *run) linkedFirst(pair ledger.Pair) []artifact.Release {
	var first []artifact.Release
	for _, release := range pair.Releases() {
		now, err := link.Of(r.LayoutOf(release.Project)).Read()
		if release.Project == artifact.Base || err == nil && now.Current == "" {
			first = append(first, release)
		}
	}
	return first
}

// serve has the units of a pair that links lead to run it. back says that the pair ran before, so that what
// is not as it names it is no fault of this run.
func (r *run) serve(ctx context.Context, pair ledger.Pair, back bool) error {
	s, err := r.System()
	if err != nil {
		return err
	}
	if reason := s.Allowed(); reason != nil {
		return r.notServed(pair, reason)
	}
	members, err := r.members(ctx, s, pair)
	if err != nil {
		return fmt.Errorf("looking for the units of %s: %w", pair, err)
	}
	r.watch = nil
	r.noteDisregarded(ctx, s, pair, members)
	if len(members) == 0 {
		return nil
	}
	return r.record.Stage(unitsStage, pair.String(), func() error {
		ctx, cancel := context.WithTimeout(ctx, r.Config.HookTimeout)
		defer cancel()
		order := service.Order{Members: members, Since: r.began, Done: r.unitDone, Back: back}
		if serving := r.ledger.Serving; serving != nil {
			order.Wanted, order.Retry, order.Strays = serving.Units, serving.Retry, serving.Since
		}
		order.Wanted, order.Retry = joined(order.Wanted, r.late), joined(order.Retry, r.late)
		done, err := service.Serve(ctx, s, order)
		r.served = append(r.served, done...)
		r.watch = r.watching(s, members, done)
		return err
	})
}

// noteDisregarded names the units that seem to run what the links led to, and are not restarted, since no release
// names them and their users could make any unit seem so.
func (r *run) noteDisregarded(ctx context.Context, s service.System, pair ledger.Pair, members []service.Member) {
	projects, err := r.inService(pair)
	if err != nil || len(r.movedAt) == 0 {
		return
	}
	all, err := service.Disregard(ctx, s, projects, members)
	if err != nil {
		r.record.Note("which other units run a release was not found out: %v", err)
	}
	for _, d := range all {
		r.record.Note("%s was left alone: its process belongs to user %s and seems to run from %s, as %s shows, which any user can arrange; to have it restarted, name it under units of corpus.yaml", d.Unit, d.User, d.Release, d.Test)
	}
}

// unitDone records what was done about a unit.
func (r *run) unitDone(result service.Result) {
	r.record.Unit(result)
	if result.Absent && result.Error == "" {
		r.record.Note("%s, which corpus.yaml of %s names under units, is not on this host", result.Unit, result.Release)
	}
}

// notServed says that units that a release names were not restarted.
func (r *run) notServed(pair ledger.Pair, reason error) error {
	projects, err := r.inService(pair)
	var names []string
	for _, p := range projects {
		names = joined(joined(names, p.Units), p.Reload)
	}
	if len(names) > 0 {
		r.record.Note("these units were not restarted: %s: %v", strings.Join(names, ", "), reason)
	}
	return err
}

// watching is the watch over the units that have to run their release now; nil for none.
func (r *run) watching(s service.System, members []service.Member, done []service.Result) *service.Watch {
	w := &service.Watch{System: s, Since: r.began, Done: done}
	for i, m := range members {
		if done[i].Serves() {
			w.Members = append(w.Members, m)
		}
	}
	if len(w.Members) == 0 {
		return nil
	}
	return w
}

// serveBack has the units follow the links back to a pair, even though the run was asked to end: what
// failed must not go on serving.
func (r *run) serveBack(ctx context.Context, pair ledger.Pair) error {
	if stopped(ctx) {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(context.WithoutCancel(ctx), wayBackTime)
		defer cancel()
	}
	err := r.serve(ctx, pair, true)
	var failed *service.Failed
	switch {
	case err == nil:
		r.ledger.Serving = nil
	case errors.As(err, &failed) && !r.ending(ctx):
		r.retryUnits(failed.Units())
	}
	return err
}

// retryUnits writes into the ledger that later runs restart these units again, and no others.
func (r *run) retryUnits(units []string) {
	if len(units) > 0 {
		r.ledger.Serving = &ledger.Serving{Run: r.id, Units: units, Retry: units}
	}
}

// healthyBack is healthy for a pair that was gone back to. A unit that does not run it is restarted again by
// later runs.
func (r *run) healthyBack(ctx context.Context, good ledger.Pair) error {
	err := r.healthy(ctx, good)
	var sick *health.Unhealthy
	if !errors.As(err, &sick) {
		return err
	}
	r.retryUnits(sick.Units())
	return errors.Join(err, r.save())
}

// forgiveUnits has the init system forget how often units failed and were started: what failed used up the
// limit, and what the links lead back to has to start.
func (r *run) forgiveUnits(ctx context.Context) {
	s, err := r.System()
	if err != nil || s.Allowed() != nil || r.ledger.Serving == nil {
		return
	}
	for _, unit := range r.ledger.Serving.Units {
		s.Forgive(context.WithoutCancel(ctx), unit)
	}
}

// followBack is follow for a way back, which goes on whatever is wrong with units.
func (r *run) followBack(ctx context.Context, pair *ledger.Pair) {
	if pair == nil {
		return
	}
	if err := r.follow(context.WithoutCancel(ctx), *pair, pair.Releases()); err != nil {
		r.record.Note("which units run was not found out: %v", err)
	}
}

// giveUpUnits stops the units that were started for a first release that failed: nothing is current that
// they could run.
func (r *run) giveUpUnits(ctx context.Context) error {
	r.ledger.Serving = nil
	s, err := r.System()
	if err != nil || len(r.served) == 0 {
		return err
	}
	done, err := service.Stop(context.WithoutCancel(ctx), s, r.served)
	for _, result := range done {
		r.record.Unit(result)
	}
	return err
}

// noteLinked writes into the ledger that `current` of a project was moved to where it leads.
func (r *run) noteLinked(project string, at time.Time) {
	if release := inspect.CurrentOf(r.LayoutOf(project)); release != "" && !at.IsZero() {
		if r.ledger.Linked == nil {
			r.ledger.Linked = map[string]ledger.Linked{}
		}
		r.ledger.Linked[project] = ledger.Linked{Release: release, At: at.UTC()}
	}
}

// rememberLinks is noteLinked for projects whose links another program, or an agent that did not write this down, has moved.
func (r *run) rememberLinks() (changed bool) {
	if r.test || r.ledger.Runs() == nil {
		return false
	}
	for _, release := range r.ledger.Runs().Releases() {
		p := r.LayoutOf(release.Project)
		before := r.ledger.Linked[release.Project]
		if current := inspect.CurrentOf(p); current != "" && current != before.Release {
			r.noteLinked(release.Project, inspect.LinkedAt(p, ledger.Linked{}))
			changed = true
		}
	}
	return changed
}
