package iptables

import (
	"context"
	"fmt"
	"strings"

	"github.com/corpus-agent/corpus-agent/state/diag"
	"github.com/corpus-agent/corpus-agent/state/host"
	"github.com/corpus-agent/corpus-agent/state/module"
	"github.com/corpus-agent/corpus-agent/state/value"
)

// chain implements iptables.chain_present and iptables.chain_absent.
type chain struct {
	target
	on bool
}

func (c *chain) Check(ctx context.Context, h *host.Host) (module.Diff, error) {
	if err := c.allowed(h); err != nil {
		return module.Diff{}, err
	}
	_, has, err := c.ask(ctx, h, "-S", c.Name)
	if err != nil {
		return module.Diff{}, err
	}
	switch {
	case has == c.on:
		return module.Diff{Comment: fmt.Sprintf("the table %s %s the chain %s",
			c.Table, map[bool]string{true: "has", false: "lacks"}[has], c.Name)}, nil
	case c.on:
		return module.Diff{Changes: c.changed(), Planned: value.NewMap(),
			Comment: fmt.Sprintf("the chain %s would be made", c.Name)}, nil
	}
	return module.Diff{Changes: c.changed(), Planned: value.NewMap(),
		Comment: fmt.Sprintf("the chain %s would be emptied and removed", c.Name)}, nil
}

func (c *chain) Apply(ctx context.Context, h *host.Host, d module.Diff) (module.Report, error) {
	if c.on {
		return module.Report{Changes: d.Changes, Comment: "the chain " + c.Name + " was made"}, c.run(ctx, h, "-N", c.Name)
	}
	if err := c.run(ctx, h, "-F", c.Name); err != nil {
		return module.Report{}, err
	}
	if err := c.run(ctx, h, "-X", c.Name); err != nil {
		return module.Report{}, err
	}
	return module.Report{Changes: d.Changes, Comment: "the chain " + c.Name + " was removed"}, nil
}

// policy implements iptables.set_policy: the action for packets that match no rule of a chain.
type policy struct {
	target
	saving
	Chain  string `sls:"chain,required"`
	Policy string `sls:"policy,required"`
}

func (p *policy) Check(ctx context.Context, h *host.Host) (module.Diff, error) {
	if err := p.allowed(h); err != nil {
		return module.Diff{}, err
	}
	rules, ok, err := p.ask(ctx, h, "-S", p.Chain)
	if err != nil {
		return module.Diff{}, err
	}
	if !ok {
		return module.Diff{}, diag.Setting.Hint(fmt.Errorf("the table %s has no chain %s", p.Table, p.Chain),
			"the chains of filter with a policy are INPUT, FORWARD and OUTPUT")
	}
	if strings.HasPrefix(rules, "-P "+p.Chain+" "+p.Policy+"\n") {
		return p.saved(ctx, h, &p.target, fmt.Sprintf("the policy of %s is %s", p.Chain, p.Policy))
	}
	comment := fmt.Sprintf("the policy of %s would be %s", p.Chain, p.Policy) + p.intent(h, &p.target)
	return module.Diff{Changes: p.changed(), Planned: value.NewMap(), Comment: comment}, nil
}

func (p *policy) Apply(ctx context.Context, h *host.Host, d module.Diff) (module.Report, error) {
	if err := p.run(ctx, h, "-P", p.Chain, p.Policy); err != nil {
		return module.Report{}, err
	}
	comment := fmt.Sprintf("the policy of %s is %s", p.Chain, p.Policy)
	return p.write(ctx, h, &p.target, module.Report{Changes: d.Changes, Comment: comment})
}

// flush implements iptables.flush: it removes all rules of a chain or a table.
type flush struct {
	target
	Chain string `sls:"chain"`
}

func (f *flush) words(verb string) []string {
	if f.Chain == "" {
		return []string{verb}
	}
	return []string{verb, f.Chain}
}

func (f *flush) Check(ctx context.Context, h *host.Host) (module.Diff, error) {
	if err := f.allowed(h); err != nil {
		return module.Diff{}, err
	}
	rules, ok, err := f.ask(ctx, h, f.words("-S")...)
	if err != nil {
		return module.Diff{}, err
	}
	if !ok || !strings.Contains("\n"+rules, "\n-A ") {
		return module.Diff{Comment: fmt.Sprintf("there are no rules in %s %s", f.Table, f.Chain)}, nil
	}
	return module.Diff{Changes: f.changed(), Planned: value.NewMap(),
		Comment: fmt.Sprintf("the rules in %s %s would be removed", f.Table, f.Chain)}, nil
}

func (f *flush) Apply(ctx context.Context, h *host.Host, d module.Diff) (module.Report, error) {
	if err := f.run(ctx, h, f.words("-F")...); err != nil {
		return module.Report{}, err
	}
	return module.Report{Changes: d.Changes, Comment: fmt.Sprintf("the rules in %s %s were "+
		"removed", f.Table, f.Chain)}, nil
}
