package service

import (
	"context"
	"path"
	"slices"
	"strings"

	"github.com/corpus-agent/corpus-agent/state/host"
	"github.com/corpus-agent/corpus-agent/state/host/units"
)

// An init system refuses to start a socket unit while the service that it triggers runs, and has closed the socket by
// then. So the service is stopped with its socket, after it: a connection that came in between would start it again.

// pulled returns the services that a named socket or path unit triggers: they run the release as well. It leaves out
// the instances that a socket starts for each connection, since a restart would interrupt the connections.
func pulled(ctx context.Context, s System, m Member) ([]Member, error) {
	if kind := path.Ext(m.Unit); kind != ".socket" && kind != ".path" {
		return nil, nil
	}
	d, err := describe(ctx, s, m.Unit)
	if err != nil {
		return nil, err
	}
	var members []Member
	for _, unit := range triggered(d) {
		members = append(members, Member{Unit: unit, Project: m.Project})
	}
	return members, nil
}

// triggered returns the services that a unit starts, without those for one connection each.
func triggered(d units.Service) []string {
	forEach := strings.TrimSuffix(d.Name, path.Ext(d.Name)) + "@"
	return slices.DeleteFunc(slices.Clone(d.Triggers), func(unit string) bool { return strings.HasPrefix(unit, forEach) })
}

// SocketsFirst moves each socket before the services that it triggers, and otherwise keeps the order of the units.
func SocketsFirst(ctx context.Context, s System, members []Member) ([]Member, error) {
	ordered := slices.Clone(members)
	for _, m := range members {
		if path.Ext(m.Unit) != ".socket" {
			continue
		}
		d, err := describe(ctx, s, m.Unit)
		if err != nil {
			return members, err
		}
		at := slices.IndexFunc(ordered, func(o Member) bool { return o.Unit == m.Unit })
		first := slices.IndexFunc(ordered, func(o Member) bool { return slices.Contains(triggered(d), o.Unit) })
		if first >= 0 && first < at {
			copy(ordered[first+1:at+1], ordered[first:at])
			ordered[first] = m
		}
	}
	return ordered, nil
}

// unstartable returns the reason why a socket is not restarted: a service that it triggers runs and is masked, so it
// would be stopped with the socket and could not be started again. It returns "" for every other unit.
func unstartable(ctx context.Context, s System, verb host.UnitVerb, d units.Service) (why string, err error) {
	if path.Ext(d.Name) != ".socket" || verb != host.Restart {
		return "", nil
	}
	running, err := up(ctx, s, triggered(d))
	if err != nil {
		return "", err
	}
	for _, unit := range running {
		if service, err := describe(ctx, s, unit); err != nil || masked(service) {
			return unit + ", which it triggers, is masked: it would be stopped and could not be started again", err
		}
	}
	return "", nil
}

// act executes the action on a unit. With a socket it also stops the services that the socket triggers; ran has those
// that ran, to be started after the socket.
func act(ctx context.Context, s System, verb host.UnitVerb, d units.Service) (ran []string, err error) {
	if path.Ext(d.Name) != ".socket" || verb != host.Restart {
		return nil, s.Act(ctx, verb, d.Name)
	}
	if ran, err = up(ctx, s, triggered(d)); err != nil {
		return nil, err
	}
	if err := s.Act(ctx, host.Stop, d.Name); err != nil {
		return ran, err
	}
	still, err := up(ctx, s, triggered(d)) // a connection may have started one before the socket was closed
	for _, unit := range still {
		if err == nil {
			err = s.Act(ctx, host.Stop, unit)
		}
		if !slices.Contains(ran, unit) {
			ran = append(ran, unit)
		}
	}
	if failed := s.Act(ctx, verb, d.Name); err == nil {
		err = failed
	}
	return ran, err
}

// up returns those of the units that run or are starting.
func up(ctx context.Context, s System, units []string) ([]string, error) {
	var running []string
	for _, unit := range units {
		d, err := describe(ctx, s, unit)
		if err != nil {
			return running, err
		}
		if d.Running() || d.Active == "activating" {
			running = append(running, unit)
		}
	}
	return running, nil
}
