package host

import (
	"errors"
	"fmt"
	"io/fs"
	"path"
	"strings"

	"golang.org/x/sys/unix"
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

// Gone returns an Obstacle for a path at which a state needs an object, and nothing is. Unlike with WithMissing, a dry
// run looks for no state that creates the object. err describes it.
func Gone(p string, err error) error { return &Obstacle{Path: path.Clean(p), absent: true, error: err} }

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

// nearest describes the object at a path, links followed, or the nearest one above it. A link that leads nowhere is
// described itself, and nothing is found at a path that is refused.
func (h *Host) nearest(p string) (at string, info Info, found bool) {
	for at = path.Clean(p); ; at = path.Dir(at) {
		info, err := h.Files.Stat(at)
		if _, refused := Unsafe(err); refused {
			return at, info, false
		}
		if err != nil {
			info, err = h.Files.Lstat(at)
		}
		if err == nil || !path.IsAbs(at) || at == "/" {
			return at, info, err == nil
		}
	}
}

// insteadOf returns the obstacle at the path of a missing file or directory, or on the way to it. If there is none, the
// obstacle is that the path does not exist.
func (h *Host) insteadOf(p string, err *Missing) []*Obstacle {
	at, info, found := h.nearest(p)
	fits := info.IsDir()
	if err.Thing == AFile && at == path.Clean(p) {
		fits = info.IsRegular()
	}
	switch {
	case !found:
		return nil
	case fits:
		return []*Obstacle{{Path: path.Clean(p), absent: true, error: err}}
	}
	return []*Obstacle{{Path: at, is: kind{known: true, of: info.Mode.Type()}, error: err}}
}

// kind is what is known of the type of an object.
type kind struct {
	known bool
	notIn bool // the type is any but that of a directory
	of    fs.FileMode
}

func (k kind) fits(t fs.FileMode) bool {
	return k.known && (!k.notIn && k.of == t || k.notIn && t != fs.ModeDir)
}

// kindFor returns what an error of the kernel says about the type of an object.
func kindFor(err error) kind {
	switch {
	case errors.Is(err, unix.EISDIR):
		return kind{known: true, of: fs.ModeDir}
	case errors.Is(err, unix.ENOTDIR):
		return kind{known: true, notIn: true}
	}
	return kind{}
}
