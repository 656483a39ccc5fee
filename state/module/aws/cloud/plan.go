package cloud

import (
	"context"
	"errors"
	"strings"
	"time"

	sdk "github.com/aws/aws-sdk-go-v2/aws"

	"github.com/corpus-agent/corpus-agent/state/host"
	"github.com/corpus-agent/corpus-agent/state/module"
	"github.com/corpus-agent/corpus-agent/state/value"
)

// Plan has the fields that a state found to differ, and the requests that correct them.
type Plan struct {
	Old, New *value.Map
	Steps    []step
	comment  string
	Warnings []string
	Made     bool // the resource does not exist yet, and the plan makes it
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

// Compare notes a field if its values differ, and reports whether they do.
func (p *Plan) Compare(field string, old, new any) bool {
	if value.Equal(old, new) {
		return false
	}
	p.Differ(field, old, new)
	return true
}

// Then adds a request to the plan. what names the request in errors and reports.
func (p *Plan) Then(what string, do func(ctx context.Context) error) {
	p.Steps = append(p.Steps, step{what, do})
}

// Create marks the resource as one that does not exist and that is made with these fields.
func (p *Plan) Create(fields *value.Map) {
	p.Made = true
	p.New.Update(fields)
}

// Remove marks the resource as one that is deleted. id is what AWS calls it, and no other resource that has or will
// have its name. fields describe it.
func (p *Plan) Remove(id string, fields *value.Map) {
	p.removed = true
	p.Old.Update(fields)
	if id != "" {
		p.Old.Set("id", id)
	}
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

// Born returns the ID of a resource that another one of its name would have, too, with the time at which it was made.
func Born(id *string, at *time.Time) string {
	if at == nil {
		return sdk.ToString(id)
	}
	return strings.TrimSpace(sdk.ToString(id) + " of " + at.UTC().Format(time.RFC3339))
}

// Common has the arguments and the plan that all states need.
type Common struct {
	Arguments
	Cloud *Cloud
	All   *value.Map `sls:"__arguments__"` // all arguments of the state
	plan  *Plan
}

// Planned keeps a plan for Apply, and returns it as the result of Check.
func (c *Common) Planned(p *Plan, err error) (module.Diff, error) {
	if err == nil {
		err = c.contradicts()
	}
	if err != nil {
		return module.Diff{}, err
	}
	c.plan = p
	c.noteRemovals()
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

// Apply implements module.Resource: it sends the requests of the plan. After an error, the report lists those that were
// sent before.
func (c *Common) Apply(ctx context.Context, _ *host.Host, _ module.Diff) (module.Report, error) {
	var done []string
	if err := c.agreed(); err != nil {
		return module.Report{}, err
	}
	for _, s := range c.plan.Steps {
		if err := ctx.Err(); err != nil {
			return c.partial(done), err
		}
		requests := &sent{}
		if err := s.do(context.WithValue(ctx, sentKey{}, requests)); err != nil {
			return c.partial(append(done, requests.all...)), failedStep(s.what, err)
		}
		done = append(done, s.what)
	}
	return module.Report{Changes: c.plan.changes()}, nil
}

// failedStep returns the error of a step. It names the step unless the error says what failed.
func failedStep(what string, err error) error {
	var shown readable
	if errors.As(err, &shown) {
		return err
	}
	return Failed("not done:", what, err)
}

// partial returns the report of a run that stopped after some requests.
func (c *Common) partial(done []string) module.Report {
	if len(done) == 0 {
		return module.Report{}
	}
	return module.Report{Changes: value.NewMap("done", value.Strings(done...))}
}
