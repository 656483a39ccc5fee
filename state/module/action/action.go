// Package action holds module.run and module.wait: states that call a function.
//
// They are the way out for what no state does: `service.restart` once, `saltutil.sync_all`, a
// command. Salt has two forms of them, and formulas use both:
//
//	reload nginx:                      reload nginx:
//	  module.run:                        module.run:
//	    - name: service.reload             - service.reload:
//	    - m_name: nginx                      - name: nginx
//
// The first calls one function, whose arguments are those of the state (with m_ before those that a
// state has itself); the second calls any number of them, in order. What a function would do is not
// known before it has been called, so a dry run says that it would be called and no more. That there
// is no such function, or that it lacks an argument, is known, and fails there too.
package action

import (
	"context"
	"fmt"
	"strings"

	"github.com/corpus-agent/corpus-agent/state/host"
	"github.com/corpus-agent/corpus-agent/state/module"
	"github.com/corpus-agent/corpus-agent/state/value"
)

// Callee is what functions are called through.
type Callee interface {
	Has(name string) bool
	// Unknown says why there is no function of a name, and what to do instead.
	Unknown(name string) error
	Parameters(name string) ([]Parameter, error)
	Call(ctx context.Context, name string, args []any, kwargs *value.Map) (any, error)
}

// Parameter is one parameter of a function.
type Parameter struct {
	Name     string
	Required bool
	Rest     bool // *args: any number of arguments without names
	Keywords bool // **kwargs: any arguments with names
}

// Functions are the functions of module.
func Functions(callee Callee) module.Table {
	return module.Table{
		"run":   func() module.Resource { return &run{callee: callee} },
		"wait":  func() module.Resource { return &waiting{run{callee: callee}} },
		"watch": func() module.Resource { return &waiting{run{callee: callee}} },
	}
}

// run is module.run.
type run struct {
	Name      string     `sls:"name"`
	Arguments *value.Map `sls:"__arguments__"`
	Rest      *value.Map `sls:"*"` // of Arguments, in which their order among the others is seen

	callee Callee
	calls  []call
	old    bool // the form with one function
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

// ActsAlways is true: what a function finds done already is not known.
func (r *run) ActsAlways() bool { return true }

// Apply calls the functions. One that fails does not keep the others from being called, as in Salt.
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
	report := module.Report{Changes: changes, Comment: strings.Join(said, ", ")}
	if len(failed) > 1 {
		first = fmt.Errorf("%w (and %s)", first, strings.Join(failed[1:], "; "))
	}
	return report, first
}

// Watched calls the functions.
func (r *run) Watched() module.Resource { return r }

// waiting is module.wait: it does nothing but when a watch fires.
type waiting struct{ run }

func (w *waiting) Check(context.Context, *host.Host) (module.Diff, error) {
	_, _, warnings, err := w.read()
	return module.Diff{Comment: "waits for what it watches", Warnings: warnings}, err
}

func (w *waiting) Watched() module.Resource { return &w.run }

// judge reads a failure out of what a function gave: False, a code that is not 0, or a result that
// is False, however deep.
func judge(function string, v any) error {
	switch v := v.(type) {
	case bool:
		if !v {
			return fmt.Errorf("%s says no", function)
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
