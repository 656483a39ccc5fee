// Package service implements service.*: the services of the host, their properties in systemd, and changes to them.
package service

import (
	"context"
	"errors"
	"strings"

	"github.com/corpus-agent/corpus-agent/state/function"
	"github.com/corpus-agent/corpus-agent/state/value"
)

type service struct{ *function.Facts }

// Functions returns the functions of service that templates may call.
func Functions(f *function.Facts) function.Table {
	s := service{f}
	return function.Table{
		"service.status":      function.Of("name, sig=None", s.status),
		"service.available":   function.Of("name", s.available),
		"service.missing":     function.Of("name", s.missing),
		"service.enabled":     function.Of("name, root=None, **kwargs", s.enabled),
		"service.disabled":    function.Of("name, root=None, **kwargs", s.disabled),
		"service.masked":      function.Of("name, runtime=False, root=None", s.masked),
		"service.get_all":     function.Of("root=None", s.all),
		"service.get_enabled": function.Of("root=None", s.those(func(u function.Unit) bool { return u.Enabled })),
		"service.get_running": function.Of("root=None", s.those(func(u function.Unit) bool { return u.Running })),
	}.Add(unitFunctions(s))
}

func (s service) units() (function.Units, error) {
	if s.Units == nil {
		return nil, errors.New("the services of this host cannot be read")
	}
	return s.Units, nil
}

func (s service) unit(ctx context.Context, name string) (u function.Unit, found bool, err error) {
	units, err := s.units()
	if err != nil {
		return u, false, err
	}
	return units.Unit(ctx, name)
}

// status reports whether a service runs; for a glob, it returns a mapping of the matching services.
func (s service) status(ctx context.Context, name string, _ any) (any, error) {
	if !strings.ContainsAny(name, "*?[") {
		u, _, err := s.unit(ctx, name)
		return u.Running, err
	}
	names, err := s.all(ctx, nil)
	running := value.NewMap()
	for _, match := range names {
		if !value.Glob(name, match) {
			continue
		}
		u, _, err := s.unit(ctx, match)
		if err != nil {
			return nil, err
		}
		running.Set(match, u.Running)
	}
	return running, err
}

func (s service) available(ctx context.Context, name string) (bool, error) {
	_, found, err := s.unit(ctx, name)
	return found, err
}

func (s service) missing(ctx context.Context, name string) (bool, error) {
	_, found, err := s.unit(ctx, name)
	return !found, err
}

func (s service) enabled(ctx context.Context, name string, _ any, _ *value.Map) (bool, error) {
	u, _, err := s.unit(ctx, name)
	return u.Enabled, err
}

func (s service) disabled(ctx context.Context, name string, _ any, _ *value.Map) (bool, error) {
	u, _, err := s.unit(ctx, name)
	return !u.Enabled, err
}

func (s service) masked(ctx context.Context, name string, _, _ any) (bool, error) {
	u, _, err := s.unit(ctx, name)
	return u.Masked, err
}

func (s service) all(ctx context.Context, _ any) ([]string, error) {
	units, err := s.units()
	if err != nil {
		return nil, err
	}
	return units.Names(ctx)
}

func (s service) those(is func(function.Unit) bool) func(context.Context, any) ([]string, error) {
	return func(ctx context.Context, _ any) ([]string, error) {
		names, err := s.all(ctx, nil)
		if err != nil {
			return nil, err
		}
		some := []string{}
		for _, name := range names {
			u, _, err := s.unit(ctx, name)
			if err != nil {
				return nil, err
			}
			if is(u) {
				some = append(some, name)
			}
		}
		return some, nil
	}
}
