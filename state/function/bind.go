package function

import (
	"fmt"
	"strings"

	"github.com/corpus-agent/corpus-agent/state/diag"
	"github.com/corpus-agent/corpus-agent/state/value"
)

// bind assigns arguments to parameters, as Python does for a call. The result has one value for each parameter;
// *args is a []any and **kwargs a *value.Map.
func bind(parameters []Parameter, args []any, kwargs *value.Map) ([]any, error) {
	b := binding{parameters: parameters, values: make([]any, len(parameters)), given: make([]bool, len(parameters))}
	if err := b.positions(args); err != nil {
		return nil, err
	}
	if err := b.names(kwargs); err != nil {
		return nil, err
	}
	return b.values, b.defaults()
}

type binding struct {
	parameters []Parameter
	values     []any
	given      []bool
}

// positions assigns the arguments without names.
func (b *binding) positions(args []any) error {
	n := 0
	for i, p := range b.parameters {
		switch {
		case p.Kind == Plain && n < len(args):
			b.values[i], b.given[i] = args[n], true
			n++
		case p.Kind == Rest:
			b.values[i] = append([]any{}, args[n:]...)
			return nil
		}
	}
	if n < len(args) {
		return diag.Call.Hint(TypeError("it takes %s, and %d were given", count(n), len(args)), "%s", b.known())
	}
	return nil
}

func count(n int) string {
	switch n {
	case 0:
		return "no arguments without a name"
	case 1:
		return "one argument"
	}
	return fmt.Sprintf("at most %d arguments", n)
}

// names assigns the arguments with names.
func (b *binding) names(kwargs *value.Map) error {
	var rest *value.Map
	for i, p := range b.parameters {
		if p.Kind == Keywords {
			rest = value.NewMap()
			b.values[i] = rest
		}
	}
	for key, v := range kwargs.All() {
		name := value.Str(key)
		i := b.find(name)
		switch {
		case i >= 0 && b.given[i]:
			return TypeError("argument %s is given twice", name)
		case i >= 0:
			b.values[i], b.given[i] = v, true
		case rest != nil:
			rest.Set(name, v)
		default:
			return diag.Call.Hint(TypeError("there is no argument %s", name), "%s", b.hint(name))
		}
	}
	return nil
}

func (b *binding) find(name string) int {
	for i, p := range b.parameters {
		if p.Name == name && (p.Kind == Plain || p.Kind == Named) {
			return i
		}
	}
	return -1
}

// hint returns a hint for an unknown name: a similar one, or the known ones.
func (b *binding) hint(name string) string {
	var known []string
	for _, p := range b.parameters {
		if p.Kind == Plain || p.Kind == Named {
			known = append(known, p.Name)
		}
	}
	if hint := diag.DidYouMean(name, known); hint != "" || len(known) == 0 {
		return hint
	}
	return b.known()
}

// known returns a text with the first arguments of the function.
func (b *binding) known() string {
	const shown = 8
	var names []string
	for _, p := range b.parameters {
		switch {
		case len(names) == shown:
			return "its arguments are " + strings.Join(names, ", ") + " and others"
		case p.Kind == Plain || p.Kind == Named:
			names = append(names, p.Name)
		}
	}
	if len(names) == 0 {
		return ""
	}
	return "its arguments are " + strings.Join(names, ", ")
}

// defaults assigns the defaults of missing arguments, and returns an error for required ones.
func (b *binding) defaults() error {
	var missing []string
	for i, p := range b.parameters {
		if b.given[i] || p.Kind == Rest || p.Kind == Keywords {
			continue
		}
		if !p.Optional {
			missing = append(missing, p.Name)
		}
		b.values[i] = value.Copy(p.Default)
	}
	switch len(missing) {
	case 0:
		return nil
	case 1:
		return diag.Call.Hint(TypeError("missing argument %s", missing[0]), "%s", b.known())
	}
	return diag.Call.Hint(TypeError("missing arguments %s", strings.Join(missing, ", ")), "%s", b.known())
}

// TypeError returns an error about the arguments of a call.
func TypeError(format string, args ...any) error { return value.Raise("TypeError", format, args...) }
