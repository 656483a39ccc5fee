package cloud

import (
	"context"
	"strings"

	"github.com/corpus-agent/corpus-agent/state/host"
	"github.com/corpus-agent/corpus-agent/state/module"
	"github.com/corpus-agent/corpus-agent/state/value"
)

// Plan is what a state found: the fields that differ, and the requests that correct them.
type Plan struct {
	Old, New *value.Map
	Steps    []step
	comment  string
	Warnings []string
	Made     bool // the resource does not exist and is made
	removed  bool
}

type step struct {
	what string
	do   func(ctx context.Context) error
}

// NewPlan returns a plan that changes nothing.
func NewPlan() *Plan { return &Plan{Old: value.NewMap(), New: value.NewMap()} }

// Differ notes a field that differs.
func (p *Plan) Differ(field string, old, new any) {
	p.Old.Set(field, old)
	p.New.Set(field, new)
}

// Compare notes a field if it differs, and reports whether it does.
func (p *Plan) Compare(field string, old, new any) bool {
	if value.Equal(old, new) {
		return false
	}
	p.Differ(field, old, new)
	return true
}

// Then adds a request. what says in an error which it was.
func (p *Plan) Then(what string, do func(ctx context.Context) error) {
	p.Steps = append(p.Steps, step{what, do})
}

// Create is the plan of a resource that does not exist: fields are those that it is made with.
func (p *Plan) Create(fields *value.Map) {
	p.Made = true
	p.New.Update(fields)
}

// Remove is the plan of a resource that has to go.
func (p *Plan) Remove(fields *value.Map) {
	p.removed = true
	p.Old.Update(fields)
}

func (p *Plan) changes() *value.Map {
	switch {
	case len(p.Steps) == 0:
		return value.NewMap()
	case p.Made:
		return value.NewMap("old", nil, "new", p.New)
	case p.removed:
		return value.NewMap("old", p.Old, "new", nil)
	}
	return value.NewMap("old", p.Old, "new", p.New)
}

// Common is what all states have.
type Common struct {
	Arguments
	Cloud *Cloud
	plan  *Plan
}

// Planned makes the result of Check of a plan.
func (c *Common) Planned(p *Plan, err error) (module.Diff, error) {
	if err != nil {
		return module.Diff{}, err
	}
	c.plan = p
	comment := p.comment
	switch {
	case comment != "":
	case len(p.Steps) == 0:
		comment = "is as declared"
	case p.Made:
		comment = "is made"
	case p.removed:
		comment = "is deleted"
	default:
		comment = "is changed: " + strings.Join(p.New.Names(), ", ")
	}
	return module.Diff{Changes: p.changes(), Comment: comment, Warnings: p.Warnings}, nil
}

// Apply implements module.Resource: it sends the requests of the plan. After an error, the report says which were sent.
func (c *Common) Apply(ctx context.Context, _ *host.Host, _ module.Diff) (module.Report, error) {
	var done []string
	for _, s := range c.plan.Steps {
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

func failedStep(what string, err error) error { return Failed(what, "failed", err) }

// partial is the report of a run that ended in the middle.
func (c *Common) partial(done []string) module.Report {
	if len(done) == 0 {
		return module.Report{}
	}
	return module.Report{Changes: value.NewMap("done", value.Strings(done...))}
}
