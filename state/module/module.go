// Package module is the contract of state functions: what file.managed or pkg.installed promise to
// the run that calls them.
//
// A state function is a Resource: a struct whose fields are its arguments. It is asked twice. Check
// looks at the host, changes nothing, and says what is different from what was asked for. Apply
// makes it so and is called only where there is a difference and the run is no dry one. Splitting
// the two is what makes a dry run true: what --test shows is what Apply would do, found by the same
// code. What cannot be known without acting, as with a bare command, is said to be unknown.
//
// A family of functions (file, pkg, service ...) is a package of its own below this one and gives
// its functions as a Table. Families never import each other.
package module

import (
	"context"

	"github.com/corpus-agent/corpus-agent/state/host"
	"github.com/corpus-agent/corpus-agent/state/value"
)

// Resource is one thing that a step is about. A new one is made for every step and every attempt,
// so Check may leave in it what Apply will need.
type Resource interface {
	// Check compares the host with what was asked for. It only reads. An error is a failed state:
	// what was asked for cannot be had.
	Check(ctx context.Context, h *host.Host) (Diff, error)
	// Apply makes the host what was asked for. What it reports may be there beside an error: the
	// part that was done.
	Apply(ctx context.Context, h *host.Host, d Diff) (Report, error)
}

// Watcher is a Resource that does something when a step it watches changed (Salt's mod_watch): a
// service restarts, a waiting command runs.
type Watcher interface {
	// Watched is what to do then, asked in the same two steps.
	Watched() Resource
}

// Validated is a Resource whose arguments may be wrong together, or in a way that their types do not show, whatever the host is
// like. A deploy is refused for such a mistake before anything changes, and a dry run fails with it.
type Validated interface{ Valid() error }

// Constant is a Resource that may act at every run by its nature, such as a command: that it changed something says nothing of
// how the host was before.
type Constant interface {
	// ActsAlways reports whether it does so with its arguments.
	ActsAlways() bool
}

// Validator is a Resource whose check_cmd argument is its own to run, before what it makes is in
// place, and not the run's, after.
type Validator interface{ ValidatesItself() }

// Rehearser is a Resource whose author said how a dry run finds out what only acting would tell.
type Rehearser interface {
	// Rehearse takes the place of Check in a dry run. It may run what the author named for that.
	Rehearse(ctx context.Context, h *host.Host) (Diff, error)
}

// Diff is what Check found.
type Diff struct {
	// Changes is what Apply will report; empty means that there is nothing to do.
	Changes *value.Map
	// Planned is how a dry run reports it where Salt's differs from what a real run reports; nil
	// means like Changes.
	Planned *value.Map
	// Harmless says that there is nothing to do to the host: a dry run reports the changes as made.
	Harmless bool
	// Unknown says that only acting will tell whether there is something to do.
	Unknown bool
	// Comment says the same for people: what would be done, or that all is well.
	Comment  string
	Warnings []string
	// Lacks is why Apply would fail as the host is now, though Check found what is to be done: something is not there yet
	// (host.Lack). A dry run fails with it unless an earlier state of the run makes what is lacking.
	Lacks []error
}

// Empty reports whether Apply has nothing to do.
func (d Diff) Empty() bool { return d.Changes.Len() == 0 && d.Planned.Len() == 0 && !d.Unknown }

// Report is what Apply did.
type Report struct {
	Changes  *value.Map
	Comment  string
	Warnings []string
}

// Table holds the functions of a family by their names: "managed" in the table of file. Each entry
// makes a Resource with the defaults of its arguments set.
type Table map[string]func() Resource

// Registry holds the tables of all families by state: "file".
type Registry map[string]Table

// New makes the resource of a state function.
func (r Registry) New(state, function string) (Resource, bool) {
	make, ok := r[state][function]
	if !ok {
		return nil, false
	}
	return make(), true
}

// Has reports whether there is such a function.
func (r Registry) Has(state, function string) bool {
	_, ok := r[state][function]
	return ok
}

// Watches reports whether states of a kind do something when what they watch changes.
func (r Registry) Watches(state string) bool {
	for _, make := range r[state] {
		if _, ok := make().(Watcher); ok {
			return true
		}
	}
	return false
}

// Functions lists all functions as state.function.
func (r Registry) Functions() []string {
	var names []string
	for state, table := range r {
		for function := range table {
			names = append(names, state+"."+function)
		}
	}
	return names
}
