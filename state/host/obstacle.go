package host

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"slices"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/corpus-agent/corpus-agent/artifact/walk"
	"github.com/corpus-agent/corpus-agent/state/diag"
)

// Obstacle is the error of a state that cannot do its work because of what is at a path: an object of another kind than
// the state needs there, or content that the state does not read or remove. Host.ObstructionOf decides whether the
// release or the host is at fault for it.
type Obstacle struct {
	Path    string
	Content bool // the content of the object is the obstacle, and not its kind
	Own     bool // an earlier state of this run left it so, so the release is at fault
	absent  bool // the state needs an object at the path, and there is none
	present bool // the state fails with any kind of object at the path
	owner   int  // with which the text ends; 0 if it does not end with a user
	is      kind // of the object, when the state failed
	error
}

// After returns the text of an error with what an earlier state of this run did to cause it, if Own is true.
func (o *Obstacle) After(text string) string {
	switch {
	case !o.Own:
		return text
	case o.absent:
		return text + "; an earlier state of this run removed it, or declares that nothing is there"
	case o.is.known && !o.is.notIn && !strings.Contains(text, walk.TypeName(o.is.of)):
		return fmt.Sprintf("%s; an earlier state of this run put %s at %s", text, walk.TypeName(o.is.of), walk.Clip(o.Path))
	case !strings.Contains(text, o.Path):
		return text + "; an earlier state of this run put there what is at " + walk.Clip(o.Path)
	}
	return text + "; an earlier state of this run put it there"
}

// Hint returns how to find what is in the way, or the hint of the error.
func (o *Obstacle) Hint() string {
	if o.absent {
		return cmp.Or(diag.HintOf(o.error), diag.Contradiction.Coded("change one of the two states, or their order"))
	}
	return cmp.Or(diag.HintOf(o.error), diag.Path.Coded("find what is in the way with: namei -l "+walk.Clip(o.Path)))
}

// AboutFile marks the error as one about a file of the host: see diag.ObjectOf.
func (o *Obstacle) AboutFile() {}

// Unwrap returns the error with the text of the obstacle.
func (o *Obstacle) Unwrap() error { return o.error }

// Unlike returns an Obstacle for a path at which a state needs something else than found, which is the result of Stat
// or Lstat. The hint for an author of a release is optional.
func Unlike(p string, found Info, needed Thing, hint string) error {
	name := map[Thing]string{AFile: "a regular file", ADirectory: "a directory", ALink: "a symbolic link"}[needed]
	text := fmt.Errorf("%s is not %s, but %s", p, name, found.what())
	if hint == "" {
		hint = "remove it, or choose another path"
	}
	return &Obstacle{Path: p, owner: found.UID, is: kind{known: true, of: found.Mode.Type()},
		error: diag.Path.Hint(text, "%s", hint)}
}

// WithObstacle returns an Obstacle for what is at a path, regardless of its kind. err describes it.
func WithObstacle(p string, err error) error { return &Obstacle{Path: p, present: true, error: err} }

// Unsuitable returns an Obstacle for the content of a file or directory, such as a file that is too large, or one
// without the lines that a state looks for. err describes it.
func Unsuitable(p string, err error) error { return &Obstacle{Path: p, Content: true, error: err} }

// what describes the file with its owner.
func (i Info) what() string {
	if i.UID == 0 {
		return walk.TypeName(i.Mode.Type()) + " of root"
	}
	return fmt.Sprintf("%s of user %d", walk.TypeName(i.Mode.Type()), i.UID)
}

// Obstructed returns an Obstacle if a path leads to something else than a directory, or a part of it does. It returns
// nil if the path leads to a directory or could be created as one. States call it before they run a program that uses
// or creates the directory.
func (h *Host) Obstructed(dir string) error {
	at, info, found := h.nearest(dir)
	if !found || info.IsDir() {
		return nil
	}
	return Unlike(at, info, ADirectory, "")
}

// Obstruction says that an unprivileged user may have put in place what makes a state fail, so that the host is at
// fault and not the release. The next run tries again.
type Obstruction struct {
	Path  string // what is in the way
	Place string // the directory or file that the user can change
	By    string // "user ann", "group staff" or "any user"
	What  string // "a named pipe of user ann"; "" if nothing is at Path, and the state needs an object there

	content bool // the content of the object is the obstacle
}

func (o *Obstruction) Error() string {
	if o.What == "" {
		return fmt.Sprintf("%s can change %s, and may have removed %s", o.By, walk.Clip(o.Place), o.Path)
	}
	return fmt.Sprintf("%s can change %s, and may have put %s at %s", o.By, walk.Clip(o.Place), o.What, o.Path)
}

// After returns the text of an error with the obstruction that caused it. It describes what is in the way once.
func (o *Obstruction) After(text string) string {
	if o.What != "" && strings.Contains(text, o.Path) && strings.Contains(text, o.What) {
		return fmt.Sprintf("%s; %s can change %s, and may have put it there", text, o.By, walk.Clip(o.Place))
	}
	return text + "; " + o.Error()
}

// Hint returns how to remove what is in the way, after the hint of the error.
func (o *Obstruction) Hint(of string) string {
	todo := fmt.Sprintf("look at it with ls -ld %s, and remove it", o.Path)
	switch {
	case of != "" && o.What == "":
		todo = of
	case o.What == "":
		todo = "restore " + o.Path
	case of != "" && o.content:
		todo = of + "; look at it with ls -ld " + o.Path
	}
	return diag.Path.Coded(todo + "; no release is quarantined for it, and the deploy is tried again")
}

// ObstructionOf returns the Obstruction that made a state fail with an error, or nil if there is none: the error is an
// Obstacle, an error of the kernel for an object of the wrong kind, or says that something is missing; and a user
// other than root can change what is at that path. It does not depend on whether the host follows links of users.
// first is an error about an object that exists, or about one that this run itself removed, regardless of who can
// change the path; nil if there is none.
func (h *Host) ObstructionOf(err error) (by *Obstruction, first *Obstacle) {
	for _, o := range h.obstaclesIn(err) {
		t, ok := h.Files.(*tree)
		o.Own = ok && t.ownKind(o)
		if !o.absent || o.Own {
			first = cmp.Or(first, o)
		}
		if !ok {
			return nil, first
		}
		if o.Own {
			continue
		}
		if party, place := t.root.Changer(o.Path, o.Content); party != "" {
			at := shortened(o.Path, place)
			return &Obstruction{Path: at, Place: place, By: h.partyName(party), What: h.whatIsAt(at),
				content: o.Content}, first
		}
	}
	return nil, first
}

// ownKind reports whether this run itself left what obstructs at the path of an obstacle: an object of that kind, or
// nothing. It does not matter whether a user exchanged the object since: without that, it would obstruct as well.
func (t *tree) ownKind(o *Obstacle) bool {
	if o.Content || !o.absent && !o.present && !o.is.known {
		return false
	}
	info, err := t.Lstat(o.Path)
	left := t.left.of(info.ID(), t.spellings(o.Path)...)
	switch {
	case left == unknownKind:
		return false
	case o.absent:
		return left == noObject
	case left == noObject:
		return false
	case o.present:
		return err == nil && info.Mode.Type() == left
	}
	return o.is.fits(left)
}

// shortened returns a path as messages show it: of a long one, the part that is directly in a directory.
func shortened(p, dir string) string {
	below, is := strings.CutPrefix(p, strings.TrimSuffix(dir, "/")+"/")
	if !is || walk.Clip(p) == p {
		return walk.Clip(p)
	}
	first, _, _ := strings.Cut(below, "/")
	return walk.Clip(path.Join(dir, first))
}

// whatIsAt describes the object at a path with the name of its owner.
func (h *Host) whatIsAt(p string) string {
	info, err := h.Files.Lstat(p)
	if errors.Is(err, fs.ErrNotExist) {
		return ""
	}
	if err != nil {
		return "something"
	}
	return h.named(info.what(), info.UID)
}

// named returns a text that ends with a user's ID with the name of that user.
func (h *Host) named(text string, uid int) string {
	number := strconv.Itoa(uid)
	if name := h.userName(uid); name != "" && strings.HasSuffix(text, " "+number) {
		return strings.TrimSuffix(text, number) + name
	}
	return text
}

// partyName returns a party of package walk with its name.
func (h *Host) partyName(party string) string {
	return (&walk.UnsafeError{By: party}).Named(h.userName, h.groupName).By
}

// obstaclesIn returns the obstacles in the tree of an error.
func (h *Host) obstaclesIn(err error) (all []*Obstacle) {
	switch e := err.(type) { //nolint:errorlint // it walks the tree itself
	case nil:
		return nil
	case *Obstacle:
		all = append(all, e)
	case *diag.Diagnostic:
		return h.obstaclesIn(e.Object)
	case diag.List:
		for _, one := range e {
			all = append(all, h.obstaclesIn(one)...)
		}
		return all
	case *Missing:
		if e.Thing == AFile || e.Thing == ADirectory {
			for _, name := range e.Names {
				all = append(all, h.insteadOf(name, e)...)
			}
		}
	case *fs.PathError:
		if content, is := refusal(e); is {
			return []*Obstacle{{Path: h.inTheWay(e.Path), Content: content, is: kindFor(e), error: e}}
		}
		if errors.Is(e, fs.ErrNotExist) && e.Op != "fork/exec" {
			return h.insteadOf(e.Path, &Missing{AnyThing, nil, e})
		}
	}
	switch e := err.(type) { //nolint:errorlint // it walks the tree itself
	case interface{ Unwrap() error }:
		all = append(all, h.obstaclesIn(e.Unwrap())...)
	case interface{ Unwrap() []error }:
		for _, one := range e.Unwrap() {
			all = append(all, h.obstaclesIn(one)...)
		}
	}
	return all
}

// inTheWay returns the part of a path that is not a directory, or the path.
func (h *Host) inTheWay(p string) string {
	if at, info, found := h.nearest(p); found && !info.IsDir() {
		return at
	}
	return p
}

// refusal reports whether an error of the kernel is caused by the kind of the object at a path, or by its content.
func refusal(err *fs.PathError) (content, is bool) {
	if slices.ContainsFunc([]error{unix.ENOTEMPTY, unix.ENAMETOOLONG, unix.EFBIG, walk.ErrEndless}, func(e error) bool {
		return errors.Is(err, e)
	}) {
		return true, true
	}
	if errors.Is(err, unix.EACCES) { // for root, that of a FUSE filesystem or a share; a program may not be executable
		return false, err.Op != "fork/exec"
	}
	return false, slices.ContainsFunc([]error{unix.ENOTDIR, unix.EISDIR, unix.EEXIST, unix.ELOOP, unix.EBUSY,
		unix.ENOTCONN, walk.ErrNoFile}, func(e error) bool { return errors.Is(err, e) })
}
