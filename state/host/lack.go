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
	ACommand   Thing = "command"
	AUnit      Thing = "unit" // of the service manager
	APackage   Thing = "package"
	AnyThing   Thing = "" // of unknown kind
)

// Lack is the error of a state that needs an object which does not exist, and which another state can create. A dry run
// looks for an earlier state that would create it.
type Lack struct {
	Thing Thing
	Names []string // all of them are needed
	error
}

// Lacking wraps an error of a state that needs missing objects.
func Lacking(err error, thing Thing, names ...string) error { return &Lack{thing, names, err} }

// Unwrap returns the error in the words of the state.
func (l *Lack) Unwrap() error { return l.error }

// What describes the missing objects.
func (l *Lack) What() string {
	if l.Thing == AnyThing {
		return l.Error()
	}
	return fmt.Sprintf("%s %s", l.Thing, strings.Join(l.Names, ", "))
}

// Lacks returns the Lack in the chain of err, or one of AnyThing.
func Lacks(err error) *Lack {
	var l *Lack
	if errors.As(err, &l) {
		return l
	}
	return &Lack{AnyThing, nil, err}
}
