package iptables

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/corpus-agent/corpus-agent/state/diag"
	"github.com/corpus-agent/corpus-agent/state/host"
	"github.com/corpus-agent/corpus-agent/state/module"
	"github.com/corpus-agent/corpus-agent/state/value"
)

// ruled holds the arguments of the functions for rules.
type ruled struct {
	target
	saving
	Chain    string     `sls:"chain,required"`
	Position *position  `sls:"position"`
	Rest     *value.Map `sls:"*"` // the arguments of the rule
}

// position is the position of a rule in its chain: a number, where -1 means the last, or the word first or
// last.
type position int

// afterAll is the position after all rules.
const afterAll = position(1 << 30)

// UnmarshalSLS parses a position.
func (p *position) UnmarshalSLS(v any) error {
	switch text := strings.ToLower(strings.TrimSpace(value.Str(v))); text {
	case "first", "start":
		*p = 1
	case "last", "end":
		*p = afterAll
	default:
		n, err := strconv.Atoi(text)
		if err != nil {
			return fmt.Errorf("%s is not a position: a number was expected, or first or last", value.Repr(v))
		}
		*p = position(n)
	}
	return nil
}

// rule returns the iptables arguments of the rule, and whether the chain contains it.
func (r *ruled) rule(ctx context.Context, h *host.Host) (words []string, has bool, err error) {
	if err := r.allowed(h); err != nil {
		return nil, false, err
	}
	words, err = build(r.Rest)
	if err != nil {
		return nil, false, err
	}
	if len(words) == 0 && r.Position == nil {
		return nil, false, diag.Argument.Hint(errors.New("there is no rule"),
			"give its match and its target, as in `- jump: ACCEPT`")
	}
	if len(words) > 0 {
		_, has, err = r.ask(ctx, h, append([]string{"-C", r.Chain}, words...)...)
	}
	return words, has, err
}

// add implements iptables.append and iptables.insert.
type add struct {
	ruled
	verb string
}

func (a *add) Check(ctx context.Context, h *host.Host) (module.Diff, error) {
	if a.verb == "-I" && a.Position == nil {
		return module.Diff{}, diag.Argument.Hint(errors.New("iptables.insert lacks its argument position"),
			"add `- position: 1`, or use iptables.append")
	}
	words, has, err := a.rule(ctx, h)
	if err != nil {
		return module.Diff{}, err
	}
	line := a.Chain + " " + strings.Join(words, " ")
	if has {
		return a.saved(ctx, h, &a.target, "the rule is there: "+line)
	}
	return module.Diff{Changes: a.changed(), Planned: value.NewMap(),
		Comment: "the rule would be added: " + line + a.intent(h, &a.target)}, nil
}

func (a *add) Apply(ctx context.Context, h *host.Host, d module.Diff) (module.Report, error) {
	words, has, err := a.rule(ctx, h)
	if err != nil {
		return module.Report{}, err
	}
	if !has {
		command := []string{a.verb, a.Chain}
		if a.verb == "-I" {
			at, err := a.place(ctx, h)
			if err != nil {
				return module.Report{}, err
			}
			command = append(command, strconv.Itoa(at))
		}
		if err := a.run(ctx, h, append(command, words...)...); err != nil {
			return module.Report{}, err
		}
	}
	return a.report(ctx, h, d, "the rule is there: "+a.Chain+" "+strings.Join(words, " "))
}

// report saves the rules and reports the changes that Check predicted.
func (r *ruled) report(ctx context.Context, h *host.Host, d module.Diff, comment string) (module.Report, error) {
	return r.write(ctx, h, &r.target, module.Report{Changes: d.Changes, Comment: comment})
}

// place returns the position at which to insert the rule. A negative position counts from the end.
func (a *add) place(ctx context.Context, h *host.Host) (int, error) {
	at := int(*a.Position)
	if at > 0 && *a.Position != afterAll {
		return at, nil
	}
	if at == 0 {
		return 0, diag.Argument.Hint(errors.New("a rule has no position 0"), "the first is 1, and the last -1")
	}
	rules, _, err := a.ask(ctx, h, "-S", a.Chain)
	if err != nil {
		return 0, err
	}
	if *a.Position == afterAll {
		at = 0
	}
	return max(1, strings.Count("\n"+rules, "\n-A ")+at+1), nil
}

// remove implements iptables.delete. A rule that is given by position is deleted in every run, since another
// rule takes its position.
type remove struct{ ruled }

func (r *remove) Check(ctx context.Context, h *host.Host) (module.Diff, error) {
	words, has, err := r.rule(ctx, h)
	if err != nil {
		return module.Diff{}, err
	}
	line := r.Chain + " " + strings.Join(words, " ")
	if !has && r.Position == nil {
		return r.saved(ctx, h, &r.target, "there is no such rule: "+line)
	}
	if r.Position != nil {
		line = fmt.Sprintf("%s %d", r.Chain, *r.Position)
	}
	return module.Diff{Changes: r.changed(), Planned: value.NewMap(),
		Comment: "the rule would be deleted: " + line + r.intent(h, &r.target)}, nil
}

func (r *remove) Apply(ctx context.Context, h *host.Host, d module.Diff) (module.Report, error) {
	words, has, err := r.rule(ctx, h)
	if err != nil {
		return module.Report{}, err
	}
	switch {
	case r.Position != nil:
		err = r.run(ctx, h, "-D", r.Chain, strconv.Itoa(int(*r.Position)))
	case has:
		err = r.run(ctx, h, append([]string{"-D", r.Chain}, words...)...)
	}
	if err != nil {
		return module.Report{}, err
	}
	return r.report(ctx, h, d, "the rule was deleted from "+r.Chain)
}
