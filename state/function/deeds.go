package function

import (
	"context"
	"fmt"
	"strings"

	"github.com/corpus-agent/corpus-agent/state/diag"
	"github.com/corpus-agent/corpus-agent/state/host"
	"github.com/corpus-agent/corpus-agent/state/module"
	"github.com/corpus-agent/corpus-agent/state/value"
)

// deed is a function that a state function does as well: what it finds to do is done. The answer is
// what changed, or True where Salt's function answers so.
type deed struct {
	signature string // as far as it differs from **kwargs
	state     string // state.function
	rename    map[string]string
	fixed     map[string]any
	yes       bool                  // the answer is True
	without   []string              // arguments that mean nothing here
	answer    func(a Arguments) any // the answer, where it is another than the changes
}

// byState makes the functions that states stand in for, by name.
func byState(f *Facts, all map[string]deed) Table {
	t := Table{}
	for name, d := range all {
		t[name] = Of(d.signature+", **kwargs", d.with(f))
	}
	return t
}

// with is the function that does the deed.
func (d deed) with(f *Facts) func(ctx context.Context, a Arguments) (any, error) {
	return func(ctx context.Context, a Arguments) (any, error) {
		if f.Modules == nil {
			return nil, fmt.Errorf("%s is not to be had here", d.state)
		}
		changes, err := perform(ctx, f.Host, f.Modules(), d.state, d.arguments(a))
		switch {
		case err != nil:
			return nil, err
		case d.answer != nil:
			return d.answer(a), nil
		case d.yes:
			return true, nil
		}
		return changes, nil
	}
}

// arguments are those of the state.
func (d deed) arguments(a Arguments) *value.Map {
	m := value.NewMap()
	for key, v := range a.All() {
		name := value.Str(key)
		if renamed, ok := d.rename[name]; ok {
			name = renamed
		}
		if more, ok := v.(*value.Map); ok && name == "kwargs" {
			m.Update(more)
		} else if v != nil {
			m.Set(name, v)
		}
	}
	for _, name := range d.without {
		m.Delete(name)
	}
	for name, v := range d.fixed {
		m.Set(name, v)
	}
	if !m.Has("name") { // a list of packages, for one
		m.Set("name", d.state)
	}
	return m
}

// perform does what a state asks for, and gives the changes.
func perform(ctx context.Context, h *host.Host, modules module.Registry, function string, arguments *value.Map) (any, error) {
	state, fun, _ := strings.Cut(function, ".")
	resource, ok := modules.New(state, fun)
	if !ok {
		return nil, fmt.Errorf("there is no state %s to do it", function)
	}
	warnings, problems := module.Decode(resource, module.Call{Function: function, Arguments: arguments})
	if err := problems.Err(); err != nil {
		return nil, err
	}
	if len(warnings) > 0 {
		return nil, diag.WithHint(typeError("%s", warnings[0]), "the arguments are those of the state %s", function)
	}
	d, err := resource.Check(ctx, h)
	if err != nil || d.Empty() {
		return value.NewMap(), err
	}
	report, err := resource.Apply(ctx, h, d)
	if report.Changes == nil {
		report.Changes = value.NewMap()
	}
	return report.Changes, err
}

// act does what a state does.
func (f *Facts) act(ctx context.Context, state string, arguments *value.Map) (*value.Map, error) {
	if f.Modules == nil {
		return nil, fmt.Errorf("%s is not available here", state)
	}
	changes, err := perform(ctx, f.Host, f.Modules(), state, arguments)
	m, _ := changes.(*value.Map)
	return m, err
}
