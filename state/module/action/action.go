// Package action implements module.run and module.wait, which call execution functions.
//
// They cover what has no state of its own, such as `service.restart`, `saltutil.sync_all` or a single command.
// Salt has two forms of them, and formulas use both:
//
//	reload nginx:                      reload nginx:
//	  module.run:                        module.run:
//	    - name: service.reload             - service.reload:
//	    - m_name: nginx                      - name: nginx
//
// The first form calls one function, whose arguments are those of the state; they have the prefix m_ if the
// state has an argument with the same name. The second form calls any number of functions in order. What a
// function changes is unknown before the call, so a dry run only reports that it would be called. It fails,
// however, if the function does not exist or lacks an argument.
package action

import (
	"context"
	"fmt"
	"strings"

	"github.com/corpus-agent/corpus-agent/state/host"
	"github.com/corpus-agent/corpus-agent/state/module"
	"github.com/corpus-agent/corpus-agent/state/value"
)

// Callee gives access to the functions.
type Callee interface {
	Has(name string) bool
	// Unknown returns the error for a function that does not exist, with a hint.
	Unknown(name string) error
	Parameters(name string) ([]Parameter, error)
	Call(ctx context.Context, name string, args []any, kwargs *value.Map) (any, error)
}

// Parameter is a parameter of a function.
type Parameter struct {
	Name     string
	Required bool
	Rest     bool // *args: any number of positional arguments
	Keywords bool // **kwargs: any number of named arguments
}

// Functions returns the functions of module.
func Functions(callee Callee) module.Table {
	return module.Table{
		"run":   func() module.Resource { return &run{callee: callee} },
		"wait":  func() module.Resource { return &waiting{run{callee: callee}} },
		"watch": func() module.Resource { return &waiting{run{callee: callee}} },
	}
}

// run implements module.run.
type run struct {
	Name      string     `sls:"name"`
	Arguments *value.Map `sls:"__arguments__"`
	Rest      *value.Map `sls:"*"` // a part of Arguments, which also has their order

	callee Callee
	calls  []call
	old    bool // the first form, with one function
}

func (r *run) Check(context.Context, *host.Host) (module.Diff, error) {
	var warnings []string
	var err error
	r.calls, r.old, warnings, err = r.read()
	if err != nil {
		return module.Diff{Warnings: warnings}, err
	}
	names := make([]string, len(r.calls))
	for i, c := range r.calls {
		names[i] = c.function
	}
	return module.Diff{Unknown: true, Planned: value.NewMap(), Comment: "would call " + strings.Join(names, ", "),
		Warnings: warnings}, nil
}

// ActsAlways returns true, since it is unknown whether a function changes anything.
func (r *run) ActsAlways() bool { return true }

// Apply calls the functions. Like Salt, it continues after a function that fails.
func (r *run) Apply(ctx context.Context, _ *host.Host, _ module.Diff) (module.Report, error) {
	changes := value.NewMap()
	var said, failed []string
	var first error
	for _, c := range r.calls {
		v, err := r.callee.Call(ctx, c.function, c.args, c.kwargs)
		if err == nil {
			err = judge(c.function, v)
		}
		if err == nil || r.old && v != nil {
			changes.Set(c.key(r.old), v)
		}
		if err != nil {
			failed = append(failed, err.Error())
			if first == nil {
				first = err
			}
			continue
		}
		said = append(said, "called "+c.function)
	}
	if len(failed) > 1 {
		first = fmt.Errorf("%w (and %s)", first, strings.Join(failed[1:], "; "))
	}
	return module.Report{Changes: changes, Comment: strings.Join(said, ", ")}, first
}

// Watched returns the state itself, so the functions are called again.
func (r *run) Watched() module.Resource { return r }

// waiting implements module.wait: it calls the functions only if a watched state changes.
type waiting struct{ run }

func (w *waiting) Check(context.Context, *host.Host) (module.Diff, error) {
	_, _, warnings, err := w.read()
	return module.Diff{Comment: "runs only if a watched state changes", Warnings: warnings}, err
}

func (w *waiting) Watched() module.Resource { return &w.run }

// judge returns an error if the return value of a function means failure: False, a nonzero retcode, or result:
// False at any depth.
func judge(function string, v any) error {
	switch v := v.(type) {
	case bool:
		if !v {
			return fmt.Errorf("%s returned False", function)
		}
	case *value.Map:
		if code := v.Value("retcode"); code != nil && !value.Equal(code, 0) {
			return fmt.Errorf("%s ended with code %s: %s", function, value.Str(code), lastLine(value.Str(v.Value("stderr"))))
		}
		if failedIn(v) {
			return fmt.Errorf("a result of %s is False: %s", function, value.Str(v.Value("comment")))
		}
	}
	return nil
}

func failedIn(m *value.Map) bool {
	if m.Value("result") == false {
		return true
	}
	for _, v := range m.All() {
		if below, ok := v.(*value.Map); ok && failedIn(below) {
			return true
		}
	}
	return false
}

func lastLine(s string) string {
	s = strings.TrimSpace(s)
	return s[strings.LastIndexByte(s, '\n')+1:]
}
