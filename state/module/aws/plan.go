package aws

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/corpus-agent/corpus-agent/state/diag"
	"github.com/corpus-agent/corpus-agent/state/host"
	"github.com/corpus-agent/corpus-agent/state/module"
	"github.com/corpus-agent/corpus-agent/state/value"
)

// plan is what a state found: the fields that differ, and the requests that correct them.
type plan struct {
	old, new *value.Map
	steps    []step
	comment  string
	warnings []string
	made     bool // the resource does not exist and is made
	removed  bool
}

type step struct {
	what string
	do   func(ctx context.Context) error
}

func newPlan() *plan { return &plan{old: value.NewMap(), new: value.NewMap()} }

// differ notes a field that differs.
func (p *plan) differ(field string, old, new any) {
	p.old.Set(field, old)
	p.new.Set(field, new)
}

// compare notes a field if it differs, and reports whether it does.
func (p *plan) compare(field string, old, new any) bool {
	if value.Equal(old, new) {
		return false
	}
	p.differ(field, old, new)
	return true
}

// then adds a request. what says in an error which it was.
func (p *plan) then(what string, do func(ctx context.Context) error) {
	p.steps = append(p.steps, step{what, do})
}

// create is the plan of a resource that does not exist: fields are those that it is made with.
func (p *plan) create(fields *value.Map) {
	p.made = true
	p.new.Update(fields)
}

// remove is the plan of a resource that has to go.
func (p *plan) remove(fields *value.Map) {
	p.removed = true
	p.old.Update(fields)
}

func (p *plan) changes() *value.Map {
	switch {
	case len(p.steps) == 0:
		return value.NewMap()
	case p.made:
		return value.NewMap("old", nil, "new", p.new)
	case p.removed:
		return value.NewMap("old", p.old, "new", nil)
	}
	return value.NewMap("old", p.old, "new", p.new)
}

// common is what all states have.
type common struct {
	Account
	cloud *Cloud
	plan  *plan
}

// check makes the result of Check of a plan.
func (c *common) check(p *plan, err error) (module.Diff, error) {
	if err != nil {
		return module.Diff{}, err
	}
	c.plan = p
	comment := p.comment
	switch {
	case comment != "":
	case len(p.steps) == 0:
		comment = "is as declared"
	case p.made:
		comment = "is made"
	case p.removed:
		comment = "is deleted"
	default:
		comment = "is changed: " + strings.Join(p.new.Names(), ", ")
	}
	return module.Diff{Changes: p.changes(), Comment: comment, Warnings: p.warnings}, nil
}

// Apply implements module.Resource: it sends the requests of the plan. After an error, the report says which were sent.
func (c *common) Apply(ctx context.Context, _ *host.Host, _ module.Diff) (module.Report, error) {
	var done []string
	for _, s := range c.plan.steps {
		if err := ctx.Err(); err != nil {
			return c.partial(done), err
		}
		if err := s.do(ctx); err != nil {
			return c.partial(done), failedStep(s.what, err)
		}
		done = append(done, s.what)
	}
	return module.Report{Changes: c.plan.changes()}, nil
}

func failedStep(what string, err error) error { return failed(what, "failed", err) }

// partial is the report of a run that ended in the middle.
func (c *common) partial(done []string) module.Report {
	if len(done) == 0 {
		return module.Report{}
	}
	return module.Report{Changes: value.NewMap("done", value.Strings(done...))}
}

// waitFor asks until there is an answer, as what was just made or deleted is not seen everywhere at once.
func waitFor(ctx context.Context, what string, longest time.Duration,
	ready func(ctx context.Context) (bool, error)) error {
	ctx, cancel := context.WithTimeout(ctx, longest)
	defer cancel()
	for pause := 200 * time.Millisecond; ; pause = min(pause*3/2, 10*time.Second) {
		ok, err := ready(ctx)
		if ok || err != nil {
			return err
		}
		select {
		case <-ctx.Done():
			return diag.WithHint(fmt.Errorf("waiting until %s: %w", what, ctx.Err()),
				"run it again: what is done already stays unchanged")
		case <-time.After(pause):
		}
	}
}

// mapOf is a mapping of an argument; nil for none.
func mapOf(v any) *value.Map {
	switch v := v.(type) {
	case *value.Map:
		return v
	case *value.List: // a list of mappings with one key each is one
		m := value.NewMap()
		for _, item := range v.Items {
			if one, ok := item.(*value.Map); ok {
				m.Update(one)
			}
		}
		return m
	}
	return nil
}

// texts are the items of an argument as text.
func texts(v any) (all []string) {
	for _, item := range module.Items(v) {
		all = append(all, value.Str(item))
	}
	return all
}

// sorted is a list of texts in their order, as a value.
func sorted(all []string) *value.List {
	all = slices.Clone(all)
	slices.Sort(all)
	return value.Strings(slices.Compact(all)...)
}

// text is a field of a mapping as text; "" for none.
func text(m *value.Map, name string) string {
	v := m.Value(name)
	if v == nil {
		return ""
	}
	return value.Str(v)
}

// number is a field of a mapping as a number, if it is there.
func number(m *value.Map, name string) (int32, bool) {
	v, ok := m.Get(name)
	if !ok || v == nil {
		return 0, false
	}
	n, err := value.ToInt(v)
	i, is := n.(int)
	return int32(i), err == nil && is //nolint:gosec // AWS has no larger numbers
}
