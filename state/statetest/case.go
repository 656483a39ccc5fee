package statetest

import (
	"testing"

	"github.com/corpus-agent/corpus-agent/state/value"
)

// Case is one call of a state function on a small host.
type Case struct {
	Name      string
	Function  string     // without the state: managed
	Arguments *value.Map // as an SLS file has them, name included; exec's own such as __env__ as well
	Tree      Tree       // what is there before
	Before    []Call     // calls of the same run that come first and are really made
	// Setup does what a tree cannot say; nil for nothing.
	Setup func(t *testing.T, h *Host)

	// What comes of a dry run, of a first run and of a second; nil for whatever the contract allows.
	Dry, First, Second *Want
	// After is what is there after the first run; what it does not name may be as it is.
	After Tree
	// Always says that the function acts on every run, as file.touch does.
	Always bool
	// User says that the agent is not a root and cannot give files away.
	User bool
	// Secrets are texts that may show nowhere but in the files that hold them.
	Secrets []string
}

// Call is a call of a function of the same family.
type Call struct {
	Function  string
	Arguments *value.Map
}

// Want is what should come of a call.
type Want struct {
	// Result is true, false, or nil for a dry run that would change something.
	Result any
	// Changes is what changes should be; nil for whatever.
	Changes *value.Map
	// Comment, Warning and Hint are words that each must have, and "" for any. The comment of a
	// failure is its error.
	Comment, Warning, Hint string
}
