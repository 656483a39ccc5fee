package firewalld

import (
	"context"
	"slices"
	"strings"

	"github.com/corpus-agent/corpus-agent/state/host"
	"github.com/corpus-agent/corpus-agent/state/module"
	"github.com/corpus-agent/corpus-agent/state/value"
)

// service implements firewalld.service: it sets the ports and protocols of a service and removes all others.
type service struct {
	Name      string   `sls:"name"`
	Ports     []string `sls:"ports"`
	Protocols []string `sls:"protocols"`

	todo todo
}

func (s *service) Check(ctx context.Context, h *host.Host) (module.Diff, error) {
	return s.todo.check(ctx, h, "the service "+s.Name, s.find)
}

func (s *service) Apply(ctx context.Context, h *host.Host, d module.Diff) (module.Report, error) {
	return s.todo.finish(ctx, h, d, "the service "+s.Name, s.find)
}

func (s *service) find(ctx context.Context, h *host.Host) (todo, error) {
	t, of := newTodo(), "--service="+s.Name
	known, err := ask(ctx, h, "--permanent", "--get-services")
	if err != nil {
		return t, err
	}
	var ports, protocols string
	if !slices.Contains(strings.Fields(known), s.Name) {
		t.add(s.Name, value.NewMap("old", nil, "new", s.Name), command{"--new-service=" + s.Name})
	} else if ports, err = ask(ctx, h, "--permanent", of, "--get-ports"); err != nil {
		return t, err
	} else if protocols, err = ask(ctx, h, "--permanent", of, "--get-protocols"); err != nil {
		return t, err
	}
	t.parts(of, part{"ports", "port", strings.Fields(ports), slashed(s.Ports), true},
		part{"protocols", "protocol", strings.Fields(protocols), s.Protocols, true})
	return t, nil
}
