// Package firewalld implements firewalld.present, which manages zones, and firewalld.service, which manages the
// ports of services.
//
// The states compare and change the permanent configuration with firewall-cmd. firewalld reloads it once at the
// end of each state.
package firewalld

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/corpus-agent/corpus-agent/state/diag"
	"github.com/corpus-agent/corpus-agent/state/host"
	"github.com/corpus-agent/corpus-agent/state/module"
	"github.com/corpus-agent/corpus-agent/state/value"
)

// Functions returns the functions of firewalld.
func Functions() module.Table {
	return module.Table{
		"present": func() module.Resource { return &zone{} },
		"service": func() module.Resource { return &service{} },
	}
}

const program = "firewall-cmd"

func ask(ctx context.Context, h *host.Host, args ...string) (string, error) {
	out, err := h.Tool(ctx, host.Tool{Argv: append([]string{program}, args...), Package: "firewalld"})
	return strings.TrimSpace(out), host.Failed(diag.Setting, err, "querying firewalld",
		"it has to run: require a service.running state of firewalld")
}

func change(ctx context.Context, h *host.Host, args ...string) error {
	_, err := h.Tool(ctx, host.Tool{Argv: append([]string{program}, args...), Package: "firewalld",
		Changes: host.Subject{Kind: "packet filter", Name: "firewalld"}})
	return host.Failed(diag.Setting, err, "`"+program+" "+strings.Join(args, " ")+"`",
		"check the arguments against firewall-cmd(1)")
}

// awaits returns ok if firewalld is installed; otherwise d is the diff for that.
func awaits(h *host.Host, would string) (d module.Diff, ok bool, err error) {
	if err := h.Kernel.Allowed("the packet filter"); err != nil {
		return d, false, err
	}
	if _, there := h.Which(program); !there {
		return module.Awaits(program, would), false, nil
	}
	return d, true, nil
}

// command holds the options of firewall-cmd for one change, without --permanent.
type command []string

// part is a list of a zone or service, as it is and as declared.
type part struct {
	name      string // in reports
	option    string // of firewall-cmd: --add-OPTION and --remove-OPTION
	old, want []string
	prune     bool
}

// plan returns the commands for a part and its report; nil if there is nothing to do.
func (p part) plan(of string) (commands []command, report *value.Map) {
	final := slices.Clone(p.old)
	for _, item := range p.want {
		if !slices.Contains(p.old, item) {
			commands, final = append(commands, command{of, "--add-" + p.option + "=" + item}), append(final, item)
		}
	}
	for _, item := range p.old {
		if p.prune && !slices.Contains(p.want, item) {
			commands = append(commands, command{of, "--remove-" + p.option + "=" + item})
			final = slices.DeleteFunc(final, func(s string) bool { return s == item })
		}
	}
	if len(commands) == 0 {
		return nil, nil
	}
	slices.Sort(final)
	old := slices.Sorted(slices.Values(p.old))
	return commands, value.NewMap("old", value.Strings(old...), "new", value.Strings(final...))
}

// todo holds the changes of a state.
type todo struct {
	commands []command
	changes  *value.Map
}

func newTodo() todo { return todo{changes: value.NewMap()} }

func (t *todo) add(name string, report any, commands ...command) {
	t.commands = append(t.commands, commands...)
	t.changes.Set(name, report)
}

func (t *todo) parts(of string, parts ...part) {
	for _, p := range parts {
		if commands, report := p.plan(of); report != nil {
			t.add(p.name, report, commands...)
		}
	}
}

// finder returns the changes that a state has to make on a host.
type finder func(context.Context, *host.Host) (todo, error)

// check determines the changes that the state has to make, and returns their diff.
func (t *todo) check(ctx context.Context, h *host.Host, what string, find finder) (d module.Diff, err error) {
	if d, ok, err := awaits(h, "set up "+what); !ok {
		return d, err
	}
	*t, err = find(ctx, h)
	return t.diff(what), err
}

// finish makes the changes that check found. If firewalld was not installed at the time of the check, it determines
// them first.
func (t *todo) finish(ctx context.Context, h *host.Host, d module.Diff, what string,
	find finder) (r module.Report, err error) {
	if d.Unknown {
		if *t, err = find(ctx, h); err != nil {
			return r, err
		}
	}
	return module.Report{Changes: t.changes, Comment: "changed " + what}, t.apply(ctx, h)
}

func (t *todo) diff(what string) module.Diff {
	if t.changes.Len() == 0 {
		return module.Diff{Comment: what + " is as it should be"}
	}
	return module.Diff{Changes: t.changes, Comment: "would change " + what}
}

// apply runs the commands and makes firewalld reload its configuration.
func (t *todo) apply(ctx context.Context, h *host.Host) error {
	for _, c := range t.commands {
		if !strings.HasPrefix(c[0], "--set-default") {
			c = append(command{"--permanent"}, c...)
		}
		if err := change(ctx, h, c...); err != nil {
			return err
		}
	}
	return change(ctx, h, "--reload")
}

// forwarded converts a forwarded port in Salt's form, PORT:TOPORT:PROTOCOL[:ADDRESS], to that of firewalld.
func forwarded(text string) (string, error) {
	f := strings.SplitN(text, ":", 4)
	if len(f) < 3 {
		return "", diag.Argument.Hint(fmt.Errorf("%q is not a forwarded port", text),
			"write PORT:TOPORT:PROTOCOL or PORT:TOPORT:PROTOCOL:ADDRESS, such as 22:2222:tcp")
	}
	address := ""
	if len(f) == 4 {
		address = f[3]
	}
	return fmt.Sprintf("port=%s:proto=%s:toport=%s:toaddr=%s", f[0], f[2], f[1], address), nil
}
