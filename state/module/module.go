// Package module defines the contract between state functions such as file.managed and the run that calls them.
//
// A state function is a Resource: a struct whose fields are its arguments. Check reads the host, changes
// nothing, and returns the difference from the declared state. Apply removes that difference. The run calls
// Apply only if there is a difference and the run is not a dry run. Since Check computes the changes for both,
// a dry run predicts exactly what Apply would do. If only Apply can tell what changes, as with a command, Check
// reports the changes as unknown.
//
// Each family of functions (file, pkg, service and so on) is a package below this one that returns its
// functions as a Table. Families never import each other.
package module

import (
	"context"
	"iter"

	"github.com/corpus-agent/corpus-agent/state/host"
	"github.com/corpus-agent/corpus-agent/state/value"
)

// Resource is the object that a step manages. The run creates a new one for every step and every attempt, so Check may
// store data for Apply in it.
type Resource interface {
	// Check compares the host with the declared state. It only reads. An error means that the declared state
	// cannot be reached; the step fails.
	Check(ctx context.Context, h *host.Host) (Diff, error)
	// Apply brings the host to the declared state. With an error, the report has the changes made before the
	// failure.
	Apply(ctx context.Context, h *host.Host, d Diff) (Report, error)
}

// Watcher is a Resource with a reaction to changes of a step that it watches (Salt's mod_watch): a service
// restarts, a waiting command runs.
type Watcher interface {
	// Watched returns the resource that performs the reaction.
	Watched() Resource
}

// Validated is a Resource whose arguments can be invalid in combination, or in a way that their types do not express,
// on any host. Such a mistake makes a dry run fail, and a deploy is refused before anything changes.
type Validated interface{ Valid() error }

// Constant is a Resource that may act in every run, such as a command: its changes do not show that the host differed
// from the declared state.
type Constant interface {
	// ActsAlways reports whether the resource, with its arguments, acts in every run.
	ActsAlways() bool
}

// Concurrent is a Resource that may run in parallel with others: it shares only the objects that its arguments name.
type Concurrent interface{ RunsBeside() }

// Batcher is a Resource that can apply other resources together with itself, in one operation: package managers take
// about as long for ten packages as for one.
type Batcher interface {
	// Batch applies this resource and the first ones of others in one operation. It returns a report for each of them,
	// this one first, with the changes that were made for it; it returns none if it would apply only this one. Each
	// resource is checked by itself afterwards and applied if anything is left to do, so a failure of the batch is not
	// a failure of a step, and empty reports mean that each resource is applied by itself.
	Batch(ctx context.Context, h *host.Host, others iter.Seq[Resource]) []Report
}

// Validator is a Resource that runs its check_cmd argument itself, before its result is in place. For other
// resources, the run does so after Apply.
type Validator interface{ ValidatesItself() }

// Rehearser is a Resource that has another way to predict its changes in a dry run.
type Rehearser interface {
	// Rehearse replaces Check in a dry run. It may run a command that the author of the state provided for this
	// purpose.
	Rehearse(ctx context.Context, h *host.Host) (Diff, error)
}

// Diff is the result of Check.
type Diff struct {
	// Changes are the changes that Apply will report; if they are empty, there is nothing to do.
	Changes *value.Map
	// Planned are the changes that a dry run reports, if Salt's dry run differs from its real run; nil means
	// Changes.
	Planned *value.Map
	// Harmless means that nothing on the host changes, so a dry run reports the changes as made.
	Harmless bool
	// Unknown means that only Apply can tell whether there are changes.
	Unknown bool
	// Comment describes the result for people.
	Comment  string
	Warnings []string
	// Missing lists prerequisites that are missing (host.Missing), without which Apply would fail. A dry run fails with
	// them unless an earlier state of the run creates the missing objects.
	Missing []error
	// More has what the result of a dry run has beside the fields of every result; see Report.
	More *value.Map
}

// Empty reports whether Apply has nothing to do.
func (d Diff) Empty() bool { return d.Changes.Len() == 0 && d.Planned.Len() == 0 && !d.Unknown }

// Report is the result of Apply.
type Report struct {
	Changes  *value.Map
	Comment  string
	Warnings []string
	More     *value.Map // further keys of the result, which Salt passes on; nil for none
}

// Table maps the names of a family's functions ("managed" for file.managed) to constructors of resources with
// default arguments.
type Table map[string]func() Resource

// Registry maps the names of states ("file") to their tables.
type Registry map[string]Table

// New returns a new resource of a state function.
func (r Registry) New(state, function string) (Resource, bool) {
	make, ok := r[state][function]
	if !ok {
		return nil, false
	}
	return make(), true
}

// Has reports whether a function exists.
func (r Registry) Has(state, function string) bool {
	_, ok := r[state][function]
	return ok
}

// Watches reports whether any function of a state reacts to changes of the steps that it watches.
func (r Registry) Watches(state string) bool {
	for _, make := range r[state] {
		if _, ok := make().(Watcher); ok {
			return true
		}
	}
	return false
}

// Functions returns the names of all functions in the form state.function.
func (r Registry) Functions() []string {
	var names []string
	for state, table := range r {
		for function := range table {
			names = append(names, state+"."+function)
		}
	}
	return names
}
