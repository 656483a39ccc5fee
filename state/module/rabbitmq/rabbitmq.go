// Package rabbitmq implements the rabbitmq_ states, which manage users, virtual hosts, policies, plugins,
// upstreams and the cluster of a RabbitMQ server on this host.
//
// They query and change the server with rabbitmqctl. Passwords of users are passed on its standard input, and so is the
// definition of an upstream whose URI has credentials.
package rabbitmq

import (
	"context"
	"slices"
	"strings"

	"github.com/corpus-agent/corpus-agent/state/diag"
	"github.com/corpus-agent/corpus-agent/state/host"
	"github.com/corpus-agent/corpus-agent/state/host/program"
	"github.com/corpus-agent/corpus-agent/state/module"
	"github.com/corpus-agent/corpus-agent/state/value"
)

// Tables returns the functions by state.
func Tables() module.Registry {
	return module.Registry{
		"rabbitmq_user": {
			"present": func() module.Resource { return &user{} },
			"absent":  func() module.Resource { return &gone{list: "list_users", remove: "delete_user"} },
		},
		"rabbitmq_vhost": {
			"present": func() module.Resource { return &vhost{} },
			"absent":  func() module.Resource { return &gone{list: "list_vhosts", remove: "delete_vhost"} },
		},
		"rabbitmq_policy": {
			"present": func() module.Resource { return &policy{VHost: "/"} },
			"absent":  func() module.Resource { return &noPolicy{VHost: "/"} },
		},
		"rabbitmq_cluster": {
			"join":   func() module.Resource { return &cluster{User: "rabbit"} },
			"joined": func() module.Resource { return &cluster{User: "rabbit"} },
		},
		"rabbitmq_upstream": {
			"present": func() module.Resource { return &upstream{} },
			"absent":  func() module.Resource { return &noUpstream{} },
		},
		"rabbitmq_plugin": {
			"enabled":  func() module.Resource { return &plugin{on: true} },
			"disabled": func() module.Resource { return &plugin{} },
		},
	}
}

// server holds the arguments that all states have in common.
type server struct {
	RunAs string `sls:"runas"` // root or rabbitmq
}

func (s server) program(name, stdin string) program.Program {
	return program.Program{Name: name, Package: "rabbitmq-server", RunAs: s.RunAs, Dir: "/", Stdin: stdin}
}

// where returns the server itself, for states that embed it.
func (s server) where() server { return s }

// through returns the program that most states run.
func (s server) through() program.Program { return s.program(ctl, "") }

const ctl, plugins = "rabbitmqctl", "rabbitmq-plugins"

// rows runs a list command and returns its rows, whose columns are separated by tabs. It skips the header line
// of newer versions, whose first column is header, and the messages of older ones.
func (s server) rows(ctx context.Context, h *host.Host, header string, args ...string) ([][]string, error) {
	out, err := s.program(ctl, "").Ask(ctx, h, append([]string{"-q"}, args...)...)
	if err != nil {
		return nil, diag.Server.Hint(err, "the server has to run: require a service.running state of rabbitmq-server")
	}
	var rows [][]string
	for line := range strings.Lines(out) {
		row := strings.Split(strings.TrimRight(line, "\r\n"), "\t")
		if row[0] != "" && row[0] != header && !strings.HasPrefix(line, "...") {
			rows = append(rows, row)
		}
	}
	return rows, nil
}

// step is a command with its standard input.
type step struct {
	program string
	args    []string
	stdin   string
}

// todo holds the required commands and their changes.
type todo struct {
	steps   []step
	changes *value.Map
}

func newTodo() *todo { return &todo{changes: value.NewMap()} }

func (t *todo) add(name string, old, now any, steps ...step) {
	t.steps = append(t.steps, steps...)
	t.changes.Set(name, value.NewMap("old", old, "new", now))
}

// finder is a state that determines the required changes.
type finder interface {
	find(ctx context.Context, h *host.Host) (*todo, error)
	what() string
	through() program.Program
	where() server
}

func check(ctx context.Context, h *host.Host, f finder) (module.Diff, error) {
	if ok, err := f.through().Ready(h); err != nil || !ok {
		return module.Awaits(f.through().Name, "set up "+f.what()), err
	}
	t, err := f.find(ctx, h)
	if err != nil || t.changes.Len() == 0 {
		return module.Diff{Comment: f.what() + " is as it should be"}, err
	}
	return module.Diff{Changes: t.changes, Comment: "would change " + f.what()}, nil
}

func apply(ctx context.Context, h *host.Host, f finder) (module.Report, error) {
	if ok, err := f.through().Ready(h); err != nil || !ok {
		if err == nil {
			err = f.through().Missing()
		}
		return module.Report{}, err
	}
	t, err := f.find(ctx, h)
	if err != nil {
		return module.Report{}, err
	}
	for _, s := range t.steps {
		if _, err := f.where().program(s.program, s.stdin).Do(ctx, h, s.args...); err != nil {
			return module.Report{}, err
		}
	}
	return module.Report{Changes: t.changes, Comment: "changed " + f.what()}, nil
}

func ctlStep(args ...string) step { return step{program: ctl, args: args} }

// first returns the first column of rows.
func first(rows [][]string) []string {
	names := make([]string, len(rows))
	for i, row := range rows {
		names[i] = row[0]
	}
	return names
}

// vhost implements rabbitmq_vhost.present.
type vhost struct {
	server
	Name string `sls:"name"`
}

func (v *vhost) what() string { return "the virtual host " + v.Name }
func (v *vhost) Check(ctx context.Context, h *host.Host) (module.Diff, error) {
	return check(ctx, h, v)
}
func (v *vhost) Apply(ctx context.Context, h *host.Host, _ module.Diff) (module.Report, error) {
	return apply(ctx, h, v)
}

func (v *vhost) find(ctx context.Context, h *host.Host) (*todo, error) {
	t := newTodo()
	rows, err := v.rows(ctx, h, "name", "list_vhosts")
	if err == nil && !slices.Contains(first(rows), v.Name) {
		t.changes.Set("old", "")
		t.changes.Set("new", v.Name)
		t.steps = append(t.steps, ctlStep("add_vhost", v.Name))
	}
	return t, err
}

// gone implements rabbitmq_user.absent and rabbitmq_vhost.absent.
type gone struct {
	server
	Name         string `sls:"name"`
	list, remove string
}

func (g *gone) what() string { return g.Name }
func (g *gone) Check(ctx context.Context, h *host.Host) (module.Diff, error) {
	return check(ctx, h, g)
}
func (g *gone) Apply(ctx context.Context, h *host.Host, _ module.Diff) (module.Report, error) {
	return apply(ctx, h, g)
}

func (g *gone) find(ctx context.Context, h *host.Host) (*todo, error) {
	t := newTodo()
	header := map[string]string{"list_users": "user", "list_vhosts": "name"}[g.list]
	rows, err := g.rows(ctx, h, header, g.list)
	if err == nil && slices.Contains(first(rows), g.Name) {
		if g.list == "list_users" {
			t.add("name", g.Name, "", ctlStep(g.remove, g.Name))
		} else {
			t.changes = value.NewMap("old", g.Name, "new", "")
			t.steps = append(t.steps, ctlStep(g.remove, g.Name))
		}
	}
	return t, err
}

// plugin implements rabbitmq_plugin.enabled and rabbitmq_plugin.disabled.
type plugin struct {
	server
	Name string `sls:"name"`
	on   bool
}

func (p *plugin) what() string             { return "the plugin " + p.Name }
func (p *plugin) through() program.Program { return p.program(plugins, "") }
func (p *plugin) Check(ctx context.Context, h *host.Host) (module.Diff, error) {
	return check(ctx, h, p)
}
func (p *plugin) Apply(ctx context.Context, h *host.Host, _ module.Diff) (module.Report, error) {
	return apply(ctx, h, p)
}

// find compares the declaration with the enabled plugins, including those enabled as dependencies.
func (p *plugin) find(ctx context.Context, h *host.Host) (*todo, error) {
	t := newTodo()
	out, err := p.program(plugins, "").Ask(ctx, h, "list", "-m", "-e")
	if err != nil {
		return t, err
	}
	switch has := slices.Contains(strings.Fields(out), p.Name); {
	case !has && p.on:
		t.changes = value.NewMap("old", "", "new", p.Name)
		t.steps = []step{{program: plugins, args: []string{"enable", p.Name}}}
	case has && !p.on:
		t.changes = value.NewMap("old", p.Name, "new", "")
		t.steps = []step{{program: plugins, args: []string{"disable", p.Name}}}
	}
	return t, nil
}
