// Package test implements test.nop and the other test states, which succeed, fail or report changes as
// declared. They are used to try out requisites and to end a run with a message.
package test

import (
	"cmp"
	"context"
	"errors"
	"fmt"

	"github.com/corpus-agent/corpus-agent/state/host"
	"github.com/corpus-agent/corpus-agent/state/module"
	"github.com/corpus-agent/corpus-agent/state/value"
)

// Pillar returns the value at a path in the pillar.
type Pillar func(path string) (any, bool)

// Functions returns the functions of test.
func Functions(pillar Pillar) module.Table {
	pretend := func(changes, result bool, comment, dry string) func() module.Resource {
		return func() module.Resource { return &pretender{Changes: changes, Result: result, usual: comment, dry: dry} }
	}
	const succeeds, fails, dry = "Success!", "Failure!", "If we weren't testing, this would be "
	return module.Table{
		"nop":                     pretend(false, true, succeeds, ""),
		"succeed_without_changes": pretend(false, true, succeeds, ""),
		"succeed_with_changes":    pretend(true, true, succeeds, dry+"successful with changes"),
		"fail_without_changes":    pretend(false, false, fails, dry+"a failure!"),
		"fail_with_changes":       pretend(true, false, fails, dry+"failed with changes"),
		"configurable_test_state": func() module.Resource { return &configurable{Changes: true, Result: true} },
		"mod_watch":               func() module.Resource { return &fired{} },
		"show_notification":       func() module.Resource { return &notification{} },
		"check_pillar":            func() module.Resource { return &checkPillar{pillar: pillar} },
	}
}

// pretender implements the states that succeed or fail, with or without changes.
type pretender struct {
	Changes bool     `sls:"changes"`
	Result  bool     `sls:"result"`
	Comment string   `sls:"comment"`
	Warn    []string `sls:"warnings"`
	Changed []string `sls:"__changed__"`

	usual string // the comment of a state that declares none
	dry   string // the comment of a dry run; "" for the same as in a real run
}

func pretended() *value.Map {
	return value.NewMap("testing", value.NewMap("old", "Unchanged", "new", "Something pretended to change"))
}

func (p *pretender) comment() string { return cmp.Or(p.Comment, p.usual) }

func (p *pretender) failure() error {
	if p.Result {
		return nil
	}
	return errors.New(cmp.Or(p.comment(), "the state is declared to fail"))
}

func (p *pretender) Check(context.Context, *host.Host) (module.Diff, error) {
	if p.Changes {
		return module.Diff{Changes: pretended(), Comment: p.comment(), Warnings: p.Warn}, nil
	}
	return module.Diff{Comment: p.comment(), Warnings: p.Warn}, p.failure()
}

// Rehearse has the comment of a dry run.
func (p *pretender) Rehearse(ctx context.Context, h *host.Host) (module.Diff, error) {
	dry := *p
	dry.Comment = cmp.Or(p.Comment, p.dry)
	return dry.Check(ctx, h)
}

// ActsAlways reports whether the state reports changes in every run.
func (p *pretender) ActsAlways() bool { return p.Changes }

func (p *pretender) Apply(_ context.Context, _ *host.Host, d module.Diff) (module.Report, error) {
	return module.Report{Changes: d.Changes, Comment: p.comment()}, p.failure()
}

func (p *pretender) Watched() module.Resource { return &fired{Changed: p.Changed, Comment: p.Comment} }

// fired implements the reaction to changes of watched states. It reports their names.
type fired struct {
	Changed []string `sls:"__changed__"`
	Comment string   `sls:"comment"`
}

func (f *fired) Watched() module.Resource { return f }

func (f *fired) Check(context.Context, *host.Host) (module.Diff, error) {
	return module.Diff{Changes: value.NewMap("Requisites with changes", value.Strings(f.Changed...)), Harmless: true,
		Comment: cmp.Or(f.Comment, "Watch statement fired.")}, nil
}

func (f *fired) Apply(_ context.Context, _ *host.Host, d module.Diff) (module.Report, error) {
	return module.Report{Changes: d.Changes, Comment: d.Comment}, nil
}

// notification implements test.show_notification.
type notification struct {
	Text string `sls:"text,required"`
}

func (n *notification) Check(context.Context, *host.Host) (module.Diff, error) {
	return module.Diff{Comment: n.Text}, nil
}

func (n *notification) Apply(context.Context, *host.Host, module.Diff) (module.Report, error) {
	return module.Report{Comment: n.Text}, nil
}

// checkPillar implements test.check_pillar: it fails if the pillar lacks values that an SLS file requires.
type checkPillar struct {
	Present    []string `sls:"present"`
	Boolean    []string `sls:"boolean"`
	Integer    []string `sls:"integer"`
	String     []string `sls:"string"`
	Listing    []string `sls:"listing"`
	Dictionary []string `sls:"dictionary"`
	Verbose    bool     `sls:"verbose"`

	pillar Pillar
}

func (c *checkPillar) Check(context.Context, *host.Host) (module.Diff, error) {
	var problems []error
	for _, want := range []struct {
		keys     []string
		typeName string // "" for any type
	}{{c.Present, ""}, {c.Boolean, "bool"}, {c.Integer, "int"}, {c.String, "str"}, {c.Listing, "list"},
		{c.Dictionary, "dict"}} {
		for _, key := range want.keys {
			v, ok := c.pillar(key)
			switch {
			case !ok:
				problems = append(problems, fmt.Errorf("pillar %s is missing", key))
			case want.typeName != "" && value.TypeName(v) != want.typeName:
				problems = append(problems,
					fmt.Errorf("pillar %s is a %s, and a %s was expected", key, value.TypeName(v), want.typeName))
			}
		}
	}
	return module.Diff{}, errors.Join(problems...)
}

func (c *checkPillar) Apply(context.Context, *host.Host, module.Diff) (module.Report, error) {
	return module.Report{}, nil
}
