// Package iptables implements iptables.append and the other iptables states, which manage rules, chains and
// policies of the packet filter.
//
// A check runs `iptables -C`, which knows all notations of a rule. With save, the rules of the kernel are
// written to the file that the distribution loads at boot. The comparison with that file ignores the counters.
package iptables

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"regexp"
	"strings"
	"sync"

	"github.com/corpus-agent/corpus-agent/state/diag"
	"github.com/corpus-agent/corpus-agent/state/host"
	"github.com/corpus-agent/corpus-agent/state/module"
	"github.com/corpus-agent/corpus-agent/state/value"
)

// Functions returns the functions of iptables.
func Functions() module.Table {
	return module.Table{
		"append":        func() module.Resource { return &add{ruled: ruled{target: newTarget()}, verb: "-A"} },
		"insert":        func() module.Resource { return &add{ruled: ruled{target: newTarget()}, verb: "-I"} },
		"delete":        func() module.Resource { return &remove{ruled: ruled{target: newTarget()}} },
		"chain_present": func() module.Resource { return &chain{target: newTarget(), on: true} },
		"chain_absent":  func() module.Resource { return &chain{target: newTarget()} },
		"set_policy":    func() module.Resource { return &policy{target: newTarget()} },
		"flush":         func() module.Resource { return &flush{target: newTarget()} },
	}
}

// target holds the arguments that all functions have in common.
type target struct {
	Name   string `sls:"name"`
	Table  string `sls:"table"`
	Family string `sls:"family"`
}

func newTarget() target { return target{Table: "filter", Family: "ipv4"} }

// allowed returns an error if the host has no packet filter to change.
func (t *target) allowed(h *host.Host) error {
	if t.Family != "ipv4" && t.Family != "ipv6" {
		return fmt.Errorf("the family is %q, and ipv4 or ipv6 was expected", t.Family)
	}
	return h.Kernel.Allowed("the packet filter")
}

func (t *target) program() string {
	if t.Family == "ipv6" {
		return "ip6tables"
	}
	return "iptables"
}

func (t *target) argv(words ...string) []string {
	return append([]string{t.program(), "--wait", "-t", t.Table}, words...)
}

// ask runs an iptables query. yes is false if iptables exits with 1, as for a missing rule or chain. Other exit codes
// are errors, such as 4 for a lock held by another process or 3 for a kernel without the table.
func (t *target) ask(ctx context.Context, h *host.Host, words ...string) (out string, yes bool, err error) {
	out, err = h.Tool(ctx, host.Tool{Argv: t.argv(words...), Package: "iptables"})
	var refused *host.ToolError
	if errors.As(err, &refused) {
		if refused.Code == 1 {
			return "", false, nil
		}
		return "", false, t.failed(err, words)
	}
	return out, err == nil, err
}

// run runs an iptables command that changes rules.
func (t *target) run(ctx context.Context, h *host.Host, words ...string) error {
	_, err := h.Tool(ctx, host.Tool{Argv: t.argv(words...), Package: "iptables",
		Changes: host.Subject{Kind: "packet filter", Name: t.Family + " " + t.Table}})
	return t.failed(err, words)
}

func (t *target) failed(err error, words []string) error {
	line := strings.Join(append([]string{t.program(), "-t", t.Table}, words...), " ")
	hint := "check the arguments against iptables-extensions(8), and that the chain is there"
	var refused *host.ToolError
	if errors.As(err, &refused) && refused.Code > 2 {
		hint = "another program may hold the lock of the packet filter, or the kernel lacks a module; the next run tries " +
			"again"
	}
	return host.Failed(diag.Setting, err, "`"+line+"`", hint)
}

// changed returns the changes in Salt's form, which has the key locale for all functions.
func (t *target) changed() *value.Map { return value.NewMap("locale", t.Name) }

// saving holds the argument save: True for the file of the distribution, or a path.
type saving struct {
	Save any `sls:"save"`
}

func (s *saving) wanted() bool { return s.Save != nil && value.Truth(s.Save) }

// file returns the path of the file with the rules for the next boot.
func (s *saving) file(h *host.Host, t *target) string {
	if path, ok := s.Save.(string); ok {
		return path
	}
	six := t.Family == "ipv6"
	if _, err := h.Files.Stat("/etc/debian_version"); err == nil {
		return ofDebian(t)
	}
	if info, err := h.Files.Stat("/etc/sysconfig"); err == nil && info.IsDir() {
		return map[bool]string{false: "/etc/sysconfig/iptables", true: "/etc/sysconfig/ip6tables"}[six]
	}
	if _, err := h.Files.Stat("/etc/arch-release"); err == nil {
		return map[bool]string{false: "/etc/iptables/iptables.rules", true: "/etc/iptables/ip6tables.rules"}[six]
	}
	return ofDebian(t)
}

// ofDebian returns the path of the file that Debian's package iptables-persistent loads.
func ofDebian(t *target) string {
	return map[string]string{"ipv4": "/etc/iptables/rules.v4", "ipv6": "/etc/iptables/rules.v6"}[t.Family]
}

// stale returns the rules of the kernel, and reports whether the file differs from them.
func (s *saving) stale(ctx context.Context, h *host.Host, t *target) (rules string, stale bool, err error) {
	rules, err = h.Tool(ctx, host.Tool{Argv: []string{t.program() + "-save"}, Package: "iptables"})
	if err != nil {
		return "", false, t.failed(err, []string{"-save"})
	}
	saved, err := h.Files.ReadFile(s.file(h, t))
	if errors.Is(err, fs.ErrNotExist) {
		return rules, true, nil
	}
	return rules, essence(rules) != essence(string(saved)), err
}

var counters = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`\[\d+:\d+\]`) })

// essence returns the content of a file without comments and counters.
func essence(rules string) string {
	var b strings.Builder
	for l := range strings.Lines(counters().ReplaceAllString(rules, "")) {
		if l = strings.TrimSpace(l); l != "" && l[0] != '#' {
			b.WriteString(l + "\n")
		}
	}
	return b.String()
}

// write saves the rules if save is set and the file is stale, and adds that to the report.
func (s *saving) write(ctx context.Context, h *host.Host, t *target, report module.Report) (module.Report, error) {
	if !s.wanted() {
		return report, nil
	}
	rules, stale, err := s.stale(ctx, h, t)
	if err != nil || !stale {
		return report, err
	}
	path := s.file(h, t)
	report.Comment += ", and saved in " + path
	if _, loads := h.Which("netfilter-persistent"); !loads && path == ofDebian(t) {
		report.Warnings = append(report.Warnings,
			"nothing loads "+path+" at boot: install iptables-persistent, or load it by a unit of your own")
	}
	return report, h.WriteText(path, rules)
}

// intent returns the part of a dry run's comment that concerns save.
func (s *saving) intent(h *host.Host, t *target) string {
	if !s.wanted() {
		return ""
	}
	return ", and the rules would be saved in " + s.file(h, t)
}

// saved returns the diff of a state whose rules are as declared: only the file may be stale.
func (s *saving) saved(ctx context.Context, h *host.Host, t *target, comment string) (module.Diff, error) {
	d := module.Diff{Comment: comment}
	if !s.wanted() {
		return d, nil
	}
	_, stale, err := s.stale(ctx, h, t)
	if err != nil || !stale {
		return d, err
	}
	path := s.file(h, t)
	return module.Diff{Changes: value.NewMap("saved", path), Planned: value.NewMap(), Comment: comment +
		", and would be saved in " + path}, nil
}
