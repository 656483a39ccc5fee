package service

import (
	"context"
	"slices"
	"strings"

	"github.com/corpus-agent/corpus-agent/state/host/units"
)

// Find returns the units of projects. For a release that names units, those are the named units, in its order, and the
// services that named socket and path units trigger. For a release that names none, those are the units that start
// through its links, or whose main process belongs to root and runs from one of the project's releases. A unit belongs
// to one project: a project that names it comes before any other.
func Find(ctx context.Context, s System, projects []Project) ([]Member, error) {
	loaded, err := s.Loaded(ctx)
	if err != nil {
		return nil, err
	}
	var members []Member
	taken := map[string]bool{s.Own(): true}
	add := func(m Member) {
		if !taken[m.Unit] && !strings.HasPrefix(m.Unit, "corpus-agent") {
			taken[m.Unit] = true
			members = append(members, m)
		}
	}
	for _, p := range projects {
		for _, m := range named(p, loaded) {
			add(m)
		}
	}
	for _, m := range slices.Clone(members) {
		more, err := pulled(ctx, s, m)
		if err != nil {
			return members, err
		}
		for _, m := range more {
			add(m)
		}
	}
	for _, p := range projects {
		if p.Units != nil {
			continue
		}
		found, err := started(ctx, s, p, loaded)
		if err != nil {
			return members, err
		}
		for _, m := range found {
			add(m)
		}
	}
	return members, nil
}

// named returns the units that a release names. A template stands for all its instances that are loaded.
func named(p Project, loaded []string) []Member {
	var members []Member
	for _, name := range slices.Concat(p.Units, p.Reload) {
		unit := FullName(name)
		m := Member{Unit: unit, Project: p, Named: true, Reload: slices.ContainsFunc(p.Reload, func(r string) bool {
			return FullName(r) == unit
		})}
		before, after, _ := strings.Cut(unit, "@")
		if !strings.HasPrefix(after, ".") {
			members = append(members, m)
			continue
		}
		for _, instance := range loaded {
			if strings.HasPrefix(instance, before+"@") && strings.HasSuffix(instance, after) {
				m.Unit = instance
				members = append(members, m)
			}
		}
	}
	return members
}

// started returns the units that start through the links of a project.
func started(ctx context.Context, s System, p Project, loaded []string) ([]Member, error) {
	var members []Member
	t := treesOf(p)
	all, err := describeAll(ctx, s, loaded)
	if err != nil {
		return nil, err
	}
	for i, d := range all {
		if !uses(s, d, p, t) {
			continue
		}
		members = append(members, Member{Unit: loaded[i], Project: p})
		for _, triggered := range d.Triggers {
			members = append(members, Member{Unit: triggered, Project: p})
		}
	}
	return members, nil
}

// Follows reports whether a unit belongs to one of the projects and Serve would start it. Serve does not start jobs and
// masked units.
func Follows(ctx context.Context, s System, projects []Project, unit string) bool {
	unit = FullName(unit)
	d, err := describe(ctx, s, unit)
	if err != nil || unit == s.Own() || d.Job || masked(d) {
		return false
	}
	return slices.ContainsFunc(projects, func(p Project) bool {
		if slices.ContainsFunc(named(p, []string{unit}), func(m Member) bool { return m.Unit == unit }) {
			return true
		}
		return p.Units == nil && uses(s, d, p, treesOf(p))
	})
}

// uses reports whether a unit belongs to a project.
func uses(s System, d units.Service, p Project, t trees) bool {
	if ofSession(d.Name) {
		return false
	}
	if rootsFiles(d) && slices.ContainsFunc(d.Settings, func(v string) bool { return leads(v, p.Links) }) {
		return true
	}
	if d.MainPID == 0 {
		return false
	}
	release, _ := t.proof(s.Process(d.MainPID))
	return release != ""
}
