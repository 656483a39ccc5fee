package statetest

import (
	"testing"

	"github.com/corpus-agent/corpus-agent/state/value"
)

// Case is one call of a state function on a small host.
type Case struct {
	Name      string
	Function  string     // without the state, such as managed
	Arguments *value.Map // as in an SLS file, including name; may have reserved ones such as __env__
	Tree      Tree       // the files before the call
	Before    []Call     // earlier calls of the same run, which are applied
	// Setup prepares the host where a tree does not suffice; nil for nothing.
	Setup func(t *testing.T, h *Host)

	// The expected results of a dry run, a first run and a second run; nil allows any that the contract allows.
	Dry, First, Second *Want
	// After lists files after the first run; other files may exist.
	After Tree
	// Always marks a function that acts on every run, such as file.touch.
	Always bool
	// User makes the agent an ordinary user, who cannot change owners.
	User bool
	// Secrets are texts that may appear only in the files that contain them.
	Secrets []string
}

// Call is a call of a function of the same family.
type Call struct {
	Function  string
	Arguments *value.Map
}

// Want is the expected result of a call.
type Want struct {
	// Result is true, false, or nil for a dry run that would change something.
	Result any
	// Changes are the expected changes; nil for any.
	Changes *value.Map
	// Comment, Warning and Hint are words that the result must contain; "" for any. The comment of a failure is its
	// error.
	Comment, Warning, Hint string
}
