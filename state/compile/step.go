package compile

import (
	"github.com/corpus-agent/corpus-agent/state/diag"
	"github.com/corpus-agent/corpus-agent/state/value"
)

// Step is one call of a state function.
type Step struct {
	// Chunk holds the arguments of the declaration by name, and state, fun, name, order, __id__, __sls__ and __env__.
	// It is Salt's low chunk.
	Chunk *value.Map
	Pos   diag.Pos

	// Requisites has the targets of each kind of requisite. It is set when the step is linked.
	Requisites []Requisite

	tag       string // see Tag; "" for a step that was not linked
	nameOrder int    // place among the names of one declaration, from 1
	high      *High

	misordered any // an invalid order; nil for none
	misnamed   any // a name that is a list or a mapping, so that the ID is used; nil for none
}

// At returns the place of one argument of the step.
func (s *Step) At(argument string) diag.Pos {
	if s.high == nil {
		return s.Pos
	}
	return s.high.at(s.ID(), s.State(), argument)
}

func (s *Step) text(key string) string { return value.Str(s.Chunk.Value(key)) }

// ID returns the ID of the step's declaration.
func (s *Step) ID() string { return s.text(KeyID) }

// Name returns the name of the object that the step manages: a path, a package, a command.
func (s *Step) Name() string { return s.text("name") }

// State returns the kind of state, such as file.
func (s *Step) State() string { return s.text("state") }

// Fun returns the function of the state, such as managed.
func (s *Step) Fun() string { return s.text("fun") }

// Function returns state and function, such as file.managed.
func (s *Step) Function() string { return s.State() + "." + s.Fun() }

// SLS returns the SLS file of the step's declaration.
func (s *Step) SLS() string { return s.text(KeySLS) }

// Env returns the environment of the SLS.
func (s *Step) Env() string { return s.text(KeyEnv) }

// Tag returns the key of the step in results, in Salt's form.
func (s *Step) Tag() string {
	if s.tag != "" {
		return s.tag
	}
	return s.State() + "_|-" + s.ID() + "_|-" + s.Name() + "_|-" + s.Fun()
}

func (s *Step) sortKey() string { return s.State() + s.Name() + s.Fun() }

// With returns a copy of the step in which the given keys of the chunk have the given values.
func (s *Step) With(pairs ...any) *Step {
	c := *s
	c.Chunk, c.tag = s.Chunk.Clone(), ""
	for i := 0; i+1 < len(pairs); i += 2 {
		c.Chunk.Set(pairs[i].(string), pairs[i+1])
	}
	return &c
}

// Requisite is one kind of requisite of a step.
type Requisite struct {
	Kind    string // require, watch, onchanges_any, ...
	Targets []Target
}

// Target is one item of a requisite, and the steps that it names.
type Target struct {
	State string // "sls" for a whole file, "id" where only an ID was given
	Name  string // may be a glob
	Steps []*Step
	Lost  *diag.Diagnostic // the position and similar names of an item that names no step; may be nil
}

func (t Target) String() string { return t.State + ": " + t.Name }

// Names reports whether the item names the step. The step need not be in the program.
func (t Target) Names(s *Step) bool {
	return (t.State == "id" || t.State == s.State()) && (Match(t.Name, s.ID()) || Match(t.Name, s.Name()))
}

// Match reports whether a name fits a pattern of *, ? and [...], as Python's fnmatch does.
func Match(pattern, name string) bool { return value.Glob(pattern, name) }
