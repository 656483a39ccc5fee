package host

import (
	"slices"
	"strings"
	"sync"

	"github.com/corpus-agent/corpus-agent/artifact/process"
)

// Environment is the environment of the commands of a run: the agent's own without its credentials, with
// the changes that states make to it. It belongs to the run and not to the agent, which may do other runs.
type Environment struct {
	mu   sync.Mutex
	vars []string // NAME=value
}

// NewEnvironment starts from NAME=value pairs.
func NewEnvironment(vars ...string) *Environment { return &Environment{vars: vars} }

// All gives a copy of everything as NAME=value.
func (e *Environment) All() []string {
	if e == nil {
		return process.Environ()
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
