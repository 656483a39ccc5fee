package serving

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/corpus-agent/corpus-agent/agent/failure"
	"github.com/corpus-agent/corpus-agent/agent/ledger"
	"github.com/corpus-agent/corpus-agent/agent/report"
	"github.com/corpus-agent/corpus-agent/agent/service"
)

// unitsStage is the stage of a run that restarts units.
const unitsStage = report.UnitsStage

// inService returns the projects of a pair with what package service needs to find their units.
func (r *Run) inService(pair ledger.Pair) ([]service.Project, error) {
	return r.Host.ServiceProjects(pair, r.Ledger.Linked)
}

// members lists the units of a pair: those of base before those of the service, and sockets before their services.
func (r *Run) members(ctx context.Context, s service.System, pair ledger.Pair) ([]service.Member, error) {
	projects, err := r.inService(pair)
	if err != nil {
		return nil, err
	}
	for i, p := range projects {
		projects[i].MovedAt = r.movedAt[p.Name]
		projects[i].Moved = r.Ledger.Serving != nil && slices.Contains(r.Ledger.Serving.Projects, p.Name)
	}
	members, err := service.Find(ctx, s, projects)
	if err != nil || r.Ledger.Serving == nil {
		return r.socketsFirst(ctx, s, members, err)
	}
	// A unit of the release before may not belong to the pair, and follows the links as well.
	for _, unit := range r.Ledger.Serving.Units {
		if !slices.ContainsFunc(members, func(m service.Member) bool { return m.Unit == unit }) {
			members = append(members, service.Member{Unit: unit, Project: projects[len(projects)-1]})
		}
	}
	return r.socketsFirst(ctx, s, members, nil)
}

// socketsFirst moves sockets before their services, unless err says that no units were found.
func (r *Run) socketsFirst(
	ctx context.Context,
	s service.System,
	members []service.Member,
	err error,
) ([]service.Member, error) {
	if err == nil {
		members, err = service.SocketsFirst(ctx, s, members)
	}
	return members, failure.OfWork(err)
}

// joined appends the items of more that list does not have.
func joined(list, more []string) []string {
	for _, item := range more {
		if !slices.Contains(list, item) {
			list = append(list, item)
		}
	}
	return list
}

// Serve restarts, reloads or starts the units of a pair that do not run it, now that the links lead to it. back says
// that the pair ran on this host before: a unit of it that is missing is then no failure.
func (r *Run) Serve(ctx context.Context, pair ledger.Pair, back bool) error {
	s, err := r.Host.System()
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
	return r.Record.Stage(unitsStage, pair.String(), func() error {
		order := service.Order{Members: members, Since: r.Began, Done: r.unitDone, Back: back}
		if serving := r.Ledger.Serving; serving != nil {
			order.Wanted, order.Retry, order.Strays = serving.Units, serving.Retry, serving.Since
		}
		order.Wanted, order.Retry = joined(joined(order.Wanted, r.delayed), r.started), joined(order.Retry, r.delayed)
		var done []service.Result
		err := failure.Within(ctx, "hooks.timeout", r.Host.Config.HookTimeout, func(ctx context.Context) (err error) {
			done, err = service.Serve(ctx, s, order)
			return err
		})
		r.served = append(r.served, done...)
		r.watch = r.watching(s, members, done)
		return err
	})
}

// noteDisregarded notes the units that seem to run the release before and are not restarted: no release names them, and
// the users whose processes they are could make any unit seem so.
func (r *Run) noteDisregarded(ctx context.Context, s service.System, pair ledger.Pair, members []service.Member) {
	projects, err := r.inService(pair)
	if err != nil || len(r.movedAt) == 0 {
		return
	}
	all, err := service.Disregard(ctx, s, projects, members)
	if err != nil {
		r.Record.Note("cannot determine which other units run a release: %v", err)
	}
	for _, d := range all {
		r.Record.Note(
			"%s was not restarted: its process belongs to user %s and seems to run from %s, as %s shows, "+
				"which any user can arrange; to have it restarted, name it under units of corpus.yaml",
			d.Unit,
			d.User,
			d.Release,
			d.Test,
		)
	}
}

// unitDone records what was done about a unit, and whether the host lacks one that a release names.
func (r *Run) unitDone(result service.Result) {
	r.Record.Unit(result)
	if result.Absent && result.Error == "" {
		r.Record.Note("%s, which corpus.yaml of %s names under units, is not on this host", result.Unit, result.Release)
	}
}

// notServed notes that the units which a pair names were not restarted, and why.
func (r *Run) notServed(pair ledger.Pair, reason error) error {
	projects, err := r.inService(pair)
	var names []string
	for _, p := range projects {
		names = joined(joined(names, p.Units), p.Reload)
	}
	if len(names) > 0 {
		r.Record.Note("these units were not restarted: %s: %v", strings.Join(names, ", "), reason)
	}
	return err
}

// watching returns a watch over the members that have to run their release now; nil for none. done has the result of
// each.
func (r *Run) watching(s service.System, members []service.Member, done []service.Result) *service.Watch {
	w := &service.Watch{System: s, Since: r.Began, Done: done}
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

// UnitsToFollow lists the running units of pairs: of the deployed one, and of the one to deploy in its place. Errors
// are noted.
func (r *Run) UnitsToFollow(ctx context.Context, pairs ...ledger.Pair) (units []string) {
	s, err := r.Host.System()
	if err != nil || s.Allowed() != nil {
		return nil // a run that is not dry notes why, and restarts none
	}
	for _, pair := range pairs {
		members, err := r.members(ctx, s, pair)
		if err == nil {
			var running []string
			running, err = service.Running(ctx, s, members, r.Began, nil)
			units = joined(units, running)
		}
		if err != nil {
			r.Record.Note("cannot determine which units run: %v", err)
		}
	}
	return units
}
