package compile

import (
	"slices"
	"strings"

	"github.com/corpus-agent/corpus-agent/artifact/structsort"
	"github.com/corpus-agent/corpus-agent/state/diag"
	"github.com/corpus-agent/corpus-agent/state/value"
)

// Expand returns the ordered steps of high data. The high data need not be resolved.
func Expand(high *High) ([]*Step, error) {
	var problems diag.List
	var steps []*Step
	for id, body := range high.Data.All() {
		m, ok := body.(*value.Map)
		if !ok || internal(id) {
			continue
		}
		for state, run := range m.All() {
			list, ok := run.(*value.List)
			if !ok || internal(state) {
				continue
			}
			e := expander{high: high, id: value.Str(id), state: value.Str(state), problems: &problems}
			steps = append(steps, e.steps(m, list)...)
		}
	}
	order(steps)
	return steps, problems.Err()
}

type expander struct {
	high      *High
	id, state string
	misnamed  any // see Step
	problems  *diag.List
}

// steps returns one step for a declaration, or one for each of its names.
func (e *expander) steps(body *value.Map, run *value.List) []*Step {
	chunk := value.NewMap("state", e.state, "name", e.id)
	if v, ok := body.Get(KeySLS); ok {
		chunk.Set(KeySLS, v)
	}
	if v, ok := body.Get(KeyEnv); ok {
		chunk.Set(KeyEnv, v)
	}
	chunk.Set(KeyID, e.id)
	functions, names := e.arguments(chunk, run)
	var steps []*Step
	if len(names) == 0 {
		for _, function := range functions {
			steps = append(steps, e.step(value.Copy(chunk).(*value.Map), function))
		}
		return steps
	}
	for i, name := range names {
		for _, function := range functions {
			named := value.Copy(chunk).(*value.Map)
			e.rename(named, name)
			s := e.step(named, function)
			s.nameOrder, s.misnamed = i+1, nil
			steps = append(steps, s)
		}
	}
	return steps
}

// arguments copies the arguments into the chunk, except functions and names, which it returns.
func (e *expander) arguments(chunk *value.Map, run *value.List) (functions []string, names []any) {
	for _, argument := range run.Items {
		switch argument := argument.(type) {
		case string:
			if !slices.Contains(functions, argument) {
				functions = append(functions, argument)
			}
		case *value.Map:
			for key, v := range argument.All() {
				switch key {
				case "names":
					names = e.names(names, v)
				case "state": // a state cannot be overridden by an argument
				case "name":
					// If the name is not a string, the ID is used.
					if _, ok := v.(string); !ok {
						e.misname(v)
						v = e.id
					}
					chunk.Set("name", v)
				default:
					if _, ok := key.(string); ok {
						_ = chunk.SetKey(key, v) // a string is always a valid key; SetKey avoids an allocation
					} else {
						chunk.Set(value.Str(key), v)
					}
				}
			}
		}
	}
	return functions, names
}

func (e *expander) misname(v any) {
	switch v.(type) {
	case *value.List, *value.Map:
		e.misnamed = v
	}
}

func (e *expander) names(names []any, v any) []any {
	list, _ := v.(*value.List)
	if list == nil {
		return names
	}
	for _, name := range list.Items {
		if !slices.ContainsFunc(names, func(known any) bool { return value.Equal(known, name) }) {
			names = append(names, name)
		}
	}
	return names
}

// rename sets the name of a chunk; a name that is a mapping adds arguments of its own.
func (e *expander) rename(chunk *value.Map, name any) {
	m, ok := name.(*value.Map)
	if !ok {
		chunk.Set("name", name)
		return
	}
	key, own, _ := single(m)
	chunk.Set("name", key)
	list, _ := own.(*value.List)
	if list == nil {
		e.problems.Add(e.high.at(e.id, e.state), "the arguments of name %q are a %s, and a list was expected", key,
			value.TypeName(own)).
			WithHint(diag.SLS, "write each argument as `- argument: value` below the name")
		return
	}
	for _, argument := range list.Items {
		if m, ok := argument.(*value.Map); ok {
			chunk.Update(m)
		}
	}
}

func (e *expander) step(chunk *value.Map, function string) *Step {
	chunk.Set("fun", function)
	return &Step{Chunk: chunk, Pos: e.high.at(e.id, e.state), high: e.high, misnamed: e.misnamed}
}

// lastOrder is added to the order of steps that are ordered last or from the end.
const lastOrder = 1000000

// order sorts the steps by their order. Steps without an order, or with an invalid one, get the same number, which is
// above all positive explicit ones. `first` is 0; `last` is lastOrder above that number, and negative orders count back
// from `last`.
func order(steps []*Step) {
	limit := 1
	for _, s := range steps {
		if n, ok := value.AsInt(s.Chunk.Value("order")); ok && n > limit-1 && n > 0 {
			limit = n + 100
		}
	}
	for _, s := range steps {
		s.number(limit)
	}
	structsort.Func(steps, func(a, b *Step) int {
		if c, err := value.Compare(a.Chunk.Value("order"), b.Chunk.Value("order")); err == nil && c != 0 {
			return c
		}
		return strings.Compare(a.sortKey(), b.sortKey())
	})
}

func (s *Step) number(limit int) {
	v, ok := s.Chunk.Get("order")
	if !ok {
		s.Chunk.Set("order", limit)
		return
	}
	switch v.(type) {
	case int, bool, float64:
	default:
		if v != "first" && v != "last" {
			s.misordered = v
		}
		v = namedOrder(v, limit)
	}
	if s.nameOrder > 0 {
		v = number(v) + float64(s.nameOrder)/10000
	}
	if number(v) < 0 {
		v = add(limit+lastOrder, v)
	}
	s.Chunk.Set("order", v)
}

func namedOrder(v any, limit int) any {
	switch v {
	case "first":
		return 0
	case "last":
		return limit + lastOrder
	}
	return limit
}

func number(v any) float64 {
	if f, ok := v.(float64); ok {
		return f
	}
	n, _ := value.AsInt(v)
	return float64(n)
}

func add(n int, v any) any {
	if f, ok := v.(float64); ok {
		return float64(n) + f
	}
	m, _ := value.AsInt(v)
	return n + m
}
