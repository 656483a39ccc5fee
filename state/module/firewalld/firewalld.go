// Package firewalld holds firewalld.present, what a zone of firewalld lets through, and firewalld.service, the ports of
// a service by its name.
//
// The permanent configuration is compared and changed, with firewall-cmd, and firewalld reloads it once at the end of a
// state.
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

// Functions are the functions of firewalld.
func Functions() module.Table {
	return module.Table{
		"present": func() module.Resource { return &zone{} },
		"service": func() module.Resource { return &service{} },
	}
}

const program = "firewall-cmd"

func ask(ctx context.Context, h *host.Host, args ...string) (string, error) {
	out, err := h.Tool(ctx, host.Tool{Argv: append([]string{program}, args...), Package: "firewalld"})
	return strings.TrimSpace(out), host.Failed(err, "asking firewalld",
		"it has to run: require a service.running state of firewalld")
}

func change(ctx context.Context, h *host.Host, args ...string) error {
	_, err := h.Tool(ctx, host.Tool{Argv: append([]string{program}, args...), Package: "firewalld",
		Changes: host.Subject{Kind: "packet filter", Name: "firewalld"}})
	return host.Failed(err, "`"+program+" "+strings.Join(args, " ")+"`", "check the arguments against firewall-cmd(1)")
}

// awaits is the diff of a host on which firewalld is not installed yet; ok is false then.
func awaits(h *host.Host, would string) (d module.Diff, ok bool, err error) {
	if err := h.Kernel.Allowed("the packet filter"); err != nil {
		return d, false, err
	}
	if _, there := h.Which(program); !there {
		return module.Awaits(program, would), false, nil
	}
	return d, true, nil
}

// command is what one item of the configuration takes: the options of firewall-cmd behind --permanent.
type command []string

// part is one list of a zone or service: what it has and what it is to have.
type part struct {
	name      string // in the report
	option    string // of firewall-cmd: --add-OPTION and --remove-OPTION
	old, want []string
	prune     bool
}

// plan gives the commands of a part, and how it is reported; nil where nothing is to be done.
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

// todo is what a state found to be done.
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

func (t *todo) diff(what string) module.Diff {
	if t.changes.Len() == 0 {
		return module.Diff{Comment: what + " is as it should be"}
	}
	return module.Diff{Changes: t.changes, Comment: "would change " + what}
}

// apply runs the commands and has firewalld take over what they changed.
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

// forwarded reads a forwarded port as Salt has it, PORT:TOPORT:PROTOCOL and perhaps an address, into firewalld's words.
func forwarded(text string) (string, error) {
	f := strings.SplitN(text, ":", 4)
	if len(f) < 3 {
		return "", diag.WithHint(fmt.Errorf("%q is no forwarded port", text),
			"write PORT:TOPORT:PROTOCOL or PORT:TOPORT:PROTOCOL:ADDRESS, such as 22:2222:tcp")
	}
	address := ""
	if len(f) == 4 {
		address = f[3]
	}
	return fmt.Sprintf("port=%s:proto=%s:toport=%s:toaddr=%s", f[0], f[2], f[1], address), nil
}
