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

// ByState is an execution function that is implemented by a state: the state checks the host and makes the
// necessary changes. The function returns the changes, or True where Salt's function does.
type ByState struct {
	Signature string // if it is not **kwargs
	State     string // state.function
	Rename    map[string]string
	Fixed     map[string]any
	True      bool                  // the result is True
	Without   []string              // arguments that are ignored
	Answer    func(a Arguments) any // computes the result, if it is not the changes
}

// StateFunctions returns execution functions that are implemented by states, by name.
func StateFunctions(f *Facts, all map[string]ByState) Table {
	t := Table{}
	for name, d := range all {
		t[name] = Of(d.Signature+", **kwargs", d.Function(f))
	}
	return t
}

// Function returns the Go function that calls the state.
func (d ByState) Function(f *Facts) func(ctx context.Context, a Arguments) (any, error) {
	return func(ctx context.Context, a Arguments) (any, error) {
		if f.Modules == nil {
			return nil, fmt.Errorf("%s is not available here", d.State)
		}
		changes, err := perform(ctx, f.Host, f.Modules(), d.State, d.arguments(a))
		switch {
		case err != nil:
			return nil, err
		case d.Answer != nil:
			return d.Answer(a), nil
		case d.True:
			return true, nil
		}
		return changes, nil
	}
}

// arguments returns the arguments of the state that correspond to those of a call.
func (d ByState) arguments(a Arguments) *value.Map {
	m := value.NewMap()
	for key, v := range a.All() {
		name := value.Str(key)
		if renamed, ok := d.Rename[name]; ok {
			name = renamed
		}
		if more, ok := v.(*value.Map); ok && name == "kwargs" {
			m.Update(more)
		} else if v != nil {
			m.Set(name, v)
		}
	}
	for _, name := range d.Without {
		m.Delete(name)
	}
	for name, v := range d.Fixed {
		m.Set(name, v)
	}
	if !m.Has("name") { // some functions take a list instead, of packages for example
		m.Set("name", d.State)
	}
	return m
}

// perform checks and applies a state, and returns the changes.
func perform(ctx context.Context, h *host.Host, modules module.Registry, function string, arguments *value.Map) (any,
	error) {
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
		return nil, diag.Call.Hint(TypeError("%s", warnings[0]), "the arguments are those of the state %s", function)
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

// RunState applies a state and returns the changes.
func (f *Facts) RunState(ctx context.Context, state string, arguments *value.Map) (*value.Map, error) {
	if f.Modules == nil {
		return nil, fmt.Errorf("%s is not available here", state)
	}
	changes, err := perform(ctx, f.Host, f.Modules(), state, arguments)
	m, _ := changes.(*value.Map)
	return m, err
}
