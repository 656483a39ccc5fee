package host

import (
	"os"
	"slices"
	"strings"
	"sync"
)

// Environment is what the commands of a run find in their environment: the agent's own, and what
// states put over it. It is the run's and never the agent's, which may do other runs.
type Environment struct {
	mu   sync.Mutex
	vars []string // NAME=value
}

// NewEnvironment starts from NAME=value pairs.
func NewEnvironment(vars ...string) *Environment { return &Environment{vars: vars} }

// All gives a copy of everything as NAME=value.
func (e *Environment) All() []string {
	if e == nil {
		return os.Environ()
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	return slices.Clone(e.vars)
}

// Get gives a variable, and whether there is one of that name.
func (e *Environment) Get(name string) (string, bool) {
	for _, v := range e.All() {
		if v, ok := strings.CutPrefix(v, name+"="); ok {
			return v, true
		}
	}
	return "", false
}

// Set gives a variable a value for all commands that follow.
func (e *Environment) Set(name, v string) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.vars = set(e.vars, name, v)
}

// Unset takes a variable away.
func (e *Environment) Unset(name string) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.vars = without(e.vars, name)
}
