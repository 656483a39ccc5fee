// Package event implements event.send and event.wait, which send an event through the function event.send.
package event

import (
	"context"
	"errors"

	"github.com/corpus-agent/corpus-agent/state/host"
	"github.com/corpus-agent/corpus-agent/state/module"
	"github.com/corpus-agent/corpus-agent/state/value"
)

// Callee calls execution functions.
type Callee interface {
	Call(ctx context.Context, name string, args []any, kwargs *value.Map) (any, error)
}

// Functions returns the functions of event.
func Functions(callee Callee) module.Table {
	return module.Table{
		"send": func() module.Resource { return &send{callee: callee} },
		"wait": func() module.Resource { return &wait{send{callee: callee}} },
	}
}

// send implements event.send.
type send struct {
	Name        string     `sls:"name"`
	Data        any        `sls:"data"`
	Preload     any        `sls:"preload"`
	WithEnv     any        `sls:"with_env"`
	WithGrains  any        `sls:"with_grains"`
	WithPillar  any        `sls:"with_pillar"`
	ShowChanged *bool      `sls:"show_changed"`
	Rest        *value.Map `sls:"*"` // further data

	callee Callee
}

// changes returns what Salt shows as changes: the event.
func (s *send) changes() *value.Map {
	if s.ShowChanged != nil && !*s.ShowChanged {
		return value.NewMap()
	}
	return value.NewMap("tag", s.Name, "data", s.Data)
}

// Check implements module.Resource.
func (s *send) Check(context.Context, *host.Host) (module.Diff, error) {
	changes := s.changes()
	return module.Diff{Changes: changes, Unknown: changes.Len() == 0, Comment: "Event would have been fired"}, nil
}

// ActsAlways returns true: each run sends the event.
func (s *send) ActsAlways() bool { return true }

// Apply implements module.Resource.
func (s *send) Apply(ctx context.Context, _ *host.Host, _ module.Diff) (module.Report, error) {
	arguments := value.NewMap("data", s.Data, "with_grains", s.WithGrains, "with_pillar", s.WithPillar)
	arguments.Update(s.Rest)
	v, err := s.callee.Call(ctx, "event.send", []any{s.Name}, arguments)
	if err == nil && !value.Truth(v) {
		err = errors.New("event.send returned " + value.Repr(v))
	}
	if err != nil {
		return module.Report{}, err
	}
	return module.Report{Changes: s.changes(), Comment: "Event fired"}, nil
}

// Watched returns the state itself, which sends the event.
func (s *send) Watched() module.Resource { return s }

// wait implements event.wait: it sends the event only if a watched state changes.
type wait struct{ send }

// Check implements module.Resource.
func (w *wait) Check(context.Context, *host.Host) (module.Diff, error) { return module.Diff{}, nil }

// ActsAlways returns false.
func (w *wait) ActsAlways() bool { return false }

// Watched returns the state that sends the event.
func (w *wait) Watched() module.Resource { return &w.send }
