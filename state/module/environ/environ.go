// Package environ implements environ.setenv, which sets environment variables for the commands of a run.
//
// The variables do not outlive the run, so every run sets them again.
package environ

import (
	"context"
	"fmt"
	"strings"

	"github.com/corpus-agent/corpus-agent/state/diag"
	"github.com/corpus-agent/corpus-agent/state/host"
	"github.com/corpus-agent/corpus-agent/state/module"
	"github.com/corpus-agent/corpus-agent/state/value"
)

// Functions returns the functions of environ.
func Functions() module.Table {
	return module.Table{"setenv": func() module.Resource { return &setenv{} }}
}

// setenv implements environ.setenv.
type setenv struct {
	Name         string `sls:"name"`
	Value        any    `sls:"value,required"` // a string or False, or a mapping of names to these
	FalseUnsets  bool   `sls:"false_unsets"`   // False removes a variable instead of setting it to ""
	ClearAll     bool   `sls:"clear_all"`      // treat all variables that are not named like those set to False
	UpdateMinion bool   `sls:"update_minion"`  // no effect: there is no minion
	Permanent    any    `sls:"permanent"`      // no effect, as in Salt on systems other than Windows
}

// ActsAlways returns true, since the environment ends with the run.
func (s *setenv) ActsAlways() bool { return true }

func (s *setenv) Check(_ context.Context, h *host.Host) (module.Diff, error) {
	wanted, err := s.wanted()
	if err != nil {
		return module.Diff{}, err
	}
	changes := s.changes(h, wanted)
	if changes.Len() == 0 {
		return module.Diff{Comment: "the environment is as declared"}, nil
	}
	return module.Diff{Changes: changes, Comment: "the environment of later commands would change"}, nil
}

// changes returns the variables that differ from the wanted ones.
func (s *setenv) changes(h *host.Host, wanted *value.Map) *value.Map {
	changes := value.NewMap()
	if s.ClearAll {
		for _, pair := range h.Env.All() {
			if name, v, _ := strings.Cut(pair, "="); !wanted.Has(name) && (v != "" || s.FalseUnsets) {
				changes.Set(name, s.none())
			}
		}
	}
	for key, v := range wanted.All() {
		name := value.Str(key)
		now, ok := h.Env.Get(name)
		if text, given := v.(string); given && (!ok || now != text) {
			changes.Set(name, text)
		} else if !given && (ok && (now != "" || s.FalseUnsets) || !ok && !s.FalseUnsets) {
			changes.Set(name, s.none())
		}
	}
	return changes
}

// none returns the value that the report has for False.
func (s *setenv) none() any {
	if s.FalseUnsets {
		return nil
	}
	return ""
}

func (s *setenv) wanted() (*value.Map, error) {
	wanted, ok := s.Value.(*value.Map)
	if !ok {
		wanted = value.NewMap(s.Name, s.Value)
	}
	for key, v := range wanted.All() {
		name, isText := key.(string)
		if !isText || name == "" || strings.ContainsAny(name, "=\x00") {
			return nil, fmt.Errorf("%s is not a valid name of a variable", value.Repr(key))
		}
		if text, ok := v.(string); ok && !strings.Contains(text, "\x00") || v == false {
			continue
		}
		return nil, diag.Argument.Hint(fmt.Errorf("the value of %s is %s, and a string or False was expected",
			name, value.Repr(v)), "write it in quotes")
	}
	return wanted, nil
}

func (s *setenv) Apply(_ context.Context, h *host.Host, d module.Diff) (module.Report, error) {
	for key, v := range d.Changes.All() {
		name := value.Str(key)
		if v == nil {
			h.Env.Unset(name)
		} else {
			h.Env.Set(name, value.Str(v))
		}
	}
	return module.Report{Changes: d.Changes, Comment: "the environment was set"}, nil
}
