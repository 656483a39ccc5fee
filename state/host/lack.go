package host

import (
	"errors"
	"fmt"
	"strings"
)

// Thing is a kind of thing that one state makes and another needs.
type Thing string

// The things that states say they lack.
const (
	AUser      Thing = "user"
	AGroup     Thing = "group"
	ADirectory Thing = "directory"
	AFile      Thing = "file"
	ACommand   Thing = "command"
	AUnit      Thing = "unit" // of the service manager
	APackage   Thing = "package"
	AnyThing   Thing = "" // that no kind is known of
)

// Lack is the error of a state that needs an object which does not exist, and which another state can create. A dry run
// looks for an earlier state that would create it.
type Lack struct {
	Thing Thing
	Names []string // all of them are needed
	error
}

// Lacking says of an error that it comes from the lack of something.
func Lacking(err error, thing Thing, names ...string) error { return &Lack{thing, names, err} }

// Unwrap is the error in the words of the state.
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
