package host

import (
	"errors"
	"fmt"
	"strings"
)

// Thing is a kind of object that one state creates and another needs.
type Thing string

// The kinds of objects that states need.
const (
	AUser      Thing = "user"
	AGroup     Thing = "group"
	ADirectory Thing = "directory"
	AFile      Thing = "file"
	ALink      Thing = "link" // a symbolic link
	ACommand   Thing = "command"
	AUnit      Thing = "unit" // of the service manager
	APackage   Thing = "package"
	AnyThing   Thing = "" // of unknown kind
)

// Missing is the error of a state that needs an object which does not exist, and which another state can create. A dry
// run looks for an earlier state that would create it.
type Missing struct {
	Thing Thing
	Names []string // all of them are needed
	error
}

// WithMissing wraps an error of a state that needs missing objects.
func WithMissing(err error, thing Thing, names ...string) error { return &Missing{thing, names, err} }

// Unwrap returns the error of the state.
func (l *Missing) Unwrap() error { return l.error }

// What describes the missing objects.
func (l *Missing) What() string {
	if l.Thing == AnyThing {
		return l.Error()
	}
	return fmt.Sprintf("%s %s", l.Thing, strings.Join(l.Names, ", "))
}

// MissingOf returns the Missing in the chain of err, or one of AnyThing.
func MissingOf(err error) *Missing {
	var l *Missing
	if errors.As(err, &l) {
		return l
	}
	return &Missing{AnyThing, nil, err}
}
