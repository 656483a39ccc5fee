package action

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/corpus-agent/corpus-agent/state/diag"
	"github.com/corpus-agent/corpus-agent/state/module"
	"github.com/corpus-agent/corpus-agent/state/value"
)

// call is a function with its arguments.
type call struct {
	entry    string // the name in the declaration: the function, optionally followed by a colon and a suffix
	function string
	args     []any
	kwargs   *value.Map
}

// key returns the key of the return value in the changes.
func (c call) key(old bool) string {
	if old {
		return "ret"
	}
	return c.entry
}

// read parses the arguments of the state into calls.
func (r *run) read() (calls []call, old bool, warnings []string, err error) {
	own := r.own()
	for _, name := range own.Names() {
		old = old || !strings.Contains(name, ".")
	}
	if old || own.Len() == 0 {
		c, warnings, err := r.one(own)
		return []call{c}, true, warnings, err
	}
	var errs []error
	for entry, v := range own.All() {
		c, err := r.entry(value.Str(entry), v)
		calls, errs = append(calls, c), append(errs, err)
	}
	return calls, false, nil, errors.Join(errs...)
}

// own returns the arguments of the state that the run does not handle.
func (r *run) own() *value.Map {
	own := value.NewMap()
	for key, v := range r.Arguments.All() {
		if name := value.Str(key); !module.General(name) {
			own.Set(name, v)
		}
	}
	return own
}

// entry parses a function in the second form: a list of arguments, with named ones as mappings.
func (r *run) entry(entry string, v any) (call, error) {
	c := call{entry: entry, kwargs: value.NewMap()}
	c.function, _, _ = strings.Cut(entry, ":")
	if !r.callee.Has(c.function) {
		return c, r.callee.Unknown(c.function)
	}
	switch v := v.(type) {
	case nil:
	case *value.Map:
		c.kwargs.Update(v)
	case *value.List:
		for _, item := range v.Items {
			if named, ok := item.(*value.Map); ok {
				c.kwargs.Update(named)
			} else {
				c.args = append(c.args, item)
			}
		}
	default:
		return c, diag.Call.Hint(fmt.Errorf("the arguments of %s are %s, and a list was expected", c.function,
			value.Repr(v)), "write each argument as `- argument: ...` below `- %s:`", c.function)
	}
	return c, r.complete(c)
}

// one parses the first form: name is the function, and its arguments are those of the state.
func (r *run) one(own *value.Map) (call, []string, error) {
	c := call{entry: r.Name, function: r.Name, kwargs: value.NewMap()}
	if !r.callee.Has(c.function) {
		if !strings.Contains(c.function, ".") {
			return c, nil, diag.Call.Hint(fmt.Errorf("%q is not a function", c.function),
				"write `- name: MODULE.FUNCTION`, or `- MODULE.FUNCTION: [...]`")
		}
		return c, nil, r.callee.Unknown(c.function)
	}
	parameters, err := r.callee.Parameters(c.function)
	if err != nil {
		return c, nil, err
	}
	taken, err := c.take(parameters, r.Arguments, own)
	if err != nil {
		return c, nil, err
	}
	return c, c.others(parameters, own, taken), r.complete(c)
}

// take assigns arguments to the parameters and returns their names.
func (c *call) take(parameters []Parameter, all, own *value.Map) (taken []string, err error) {
	taken = []string{"returner"}
	for i, p := range parameters {
		v, name := given(p.Name, all, own)
		taken = append(taken, "m_"+p.Name, p.Name)
		switch {
		case name == "":
		case p.Rest:
			list, isList := v.(*value.List)
			if !isList {
				return nil, fmt.Errorf("argument %s of %s: a list was expected", name, c.function)
			}
			c.positions(parameters[:i], list)
		case p.Keywords:
			m, isMap := v.(*value.Map)
			if !isMap {
				return nil, fmt.Errorf("argument %s of %s: a mapping was expected", name, c.function)
			}
			c.kwargs.Update(m)
		default:
			c.kwargs.Set(p.Name, v)
		}
	}
	return taken, nil
}

// given returns the argument for a parameter and the name under which it is given, or "".
func given(parameter string, all, own *value.Map) (v any, name string) {
	if v, ok := all.Get("m_" + parameter); ok {
		return v, "m_" + parameter
	}
	if own.Has(parameter) || all.Has(parameter) && slices.Contains([]string{"runas", "umask", "saltenv"}, parameter) {
		return all.Value(parameter), parameter
	}
	return nil, ""
}

// positions appends the positional arguments after those of the preceding parameters.
func (c *call) positions(before []Parameter, rest *value.List) {
	for _, p := range before {
		if v, ok := c.kwargs.Get(p.Name); ok {
			c.args = append(c.args, v)
			c.kwargs.Delete(p.Name)
		}
	}
	c.args = append(c.args, rest.Items...)
}

// complete returns an error if required arguments are missing.
func (r *run) complete(c call) error {
	parameters, err := r.callee.Parameters(c.function)
	if err != nil {
		return err
	}
	missing := c.missing(parameters)
	if len(missing) == 0 {
		return nil
	}
	return diag.Call.Hint(fmt.Errorf("%s lacks its argument %s", c.function, strings.Join(missing, ", ")),
		"in the older form write it as m_%s where a state has an argument of that name", missing[0])
}

// missing returns the names of the parameters that are required and have no argument.
func (c call) missing(parameters []Parameter) (names []string) {
	positions := len(c.args)
	for _, p := range parameters {
		if p.Rest || p.Keywords {
			continue
		}
		if positions > 0 {
			positions--
			continue
		}
		if p.Required && !c.kwargs.Has(p.Name) {
			names = append(names, p.Name)
		}
	}
	return names
}

// others passes the remaining arguments to a function with **kwargs. For other functions it returns a warning
// about each.
func (c *call) others(parameters []Parameter, own *value.Map, taken []string) (warnings []string) {
	var known []string
	open := false
	for _, p := range parameters {
		open = open || p.Keywords
		known = append(known, p.Name)
	}
	for _, name := range own.Names() {
		if slices.Contains(taken, name) {
			continue
		}
		if open {
			c.kwargs.Set(name, own.Value(name))
			continue
		}
		text := fmt.Sprintf("%s has no argument %s", c.function, name)
		if hint := diag.DidYouMean(name, known); hint != "" {
			text += ": " + hint
		}
		warnings = append(warnings, text)
	}
	return warnings
}
