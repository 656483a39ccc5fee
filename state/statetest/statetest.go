// Package statetest is the conformance suite that every family of state functions passes.
//
// Every state function has to follow the same rules: a check only reads; a run does what the dry run predicts; a second
// run has nothing to do; a misspelled argument is reported with a suggestion; a secret is never shown. Run checks these
// rules for every function and for every case of a family.
//
// A case is a small tree, a call, and its expected results in a dry run, a first run and a second run. Cases are Go
// values, or YAML files that Load reads; both use the terms of SLS files. The tree is in a temporary directory; owners,
// accounts and commands are kept in memory, so that the tests have the same results as root and as an ordinary user.
//
//	func TestConformance(t *testing.T) {
//		statetest.Run(t, statetest.Suite{
//			State:     "file",
//			Functions: func(h *statetest.Host) module.Table { return file.Functions(inputs(h)) },
//			Cases:     statetest.Load(t, "testdata/*.yaml"),
//		})
//	}
//
// A family with its own interface, such as packages, installs a fake in the case's host in Prepare, and names
// with Host.Watch the values that a dry run must not change.
package statetest

import (
	"testing"

	"github.com/corpus-agent/corpus-agent/state/module"
)

// Suite is a family of state functions and its cases.
type Suite struct {
	State string // as SLS files write it, such as file
	// Functions returns the family's functions for one case, which corresponds to one run.
	Functions func(h *Host) module.Table
	// Prepare adds the family's own fakes to the host of every case; nil for none.
	Prepare func(t *testing.T, h *Host)
	Cases   []Case
}

// Run tests a family against the contract of state functions. A function without a case is an error.
func Run(t *testing.T, s Suite) {
	t.Helper()
	tried := map[string]bool{}
	for _, c := range s.Cases {
		tried[c.Function] = true
		t.Run(c.Name, func(t *testing.T) {
			t.Parallel() // a case mostly waits for the disk
			s.try(t, c)
		})
	}
	for name, resource := range s.Functions(NewHost(t)) {
		if !tried[name] {
			t.Errorf("%s.%s has no case", s.State, name)
		}
		t.Run("arguments of "+s.State+"."+name, func(t *testing.T) { arguments(t, s.State+"."+name, resource) })
	}
}
