package host

import (
	"context"
	"errors"
	"fmt"
	"hash/maphash"
	"io/fs"
	"path"
	"strings"
	"sync"

	"golang.org/x/sys/unix"
)

// ChangeRecorder keeps the files and other subjects that a run replaces.
type ChangeRecorder interface {
	// Replacing is called before the first byte of the subject changes. An error stops the change.
	Replacing(s Subject) error
	// Kept returns when everything that was passed to Replacing is on the disk, so that a power failure cannot lose
	// it. It is called right before a change becomes visible, and an error stops the change. Between the two calls
	// the change writes its own data.
	Kept() error
}

// Subject is one thing of the host that is about to change.
type Subject struct {
	Kind Kind
	Name string // path, account, unit or package name
}

func (s Subject) String() string { return string(s.Kind) + " " + s.Name }

// Kind is the kind of a subject, in the words of reports.
type Kind string

// The kinds of subjects. A subject of any other kind cannot be restored from its name.
const (
	KindFile         Kind = "file" // a path itself: file, directory or link
	KindTree         Kind = "tree" // a path with all that is below it
	KindUser         Kind = "user"
	KindGroup        Kind = "group"
	KindUnit         Kind = "unit"         // whether it runs
	KindBoot         Kind = "unit at boot" // whether it is enabled or masked
	KindPackage      Kind = "package"
	KindHostname     Kind = "hostname"
	KindSysctl       Kind = "sysctl"
	KindMount        Kind = "mount"
	KindAlternative  Kind = "alternative"
	KindKernelModule Kind = "kernel module"
	KindCommand      Kind = "command" // a program that may have changed anything; it cannot be undone
)

// Record passes subjects that are about to be replaced to the recorder r, and waits until r has kept them. It does
// nothing if r is nil.
func Record(r ChangeRecorder, subjects ...Subject) error {
	if r == nil {
		return nil
	}
	recorded := false
	for _, s := range subjects {
		if s == (Subject{}) {
			continue
		}
		if err := r.Replacing(s); err != nil {
			return fmt.Errorf("recording %s: %w", s, err)
		}
		recorded = true
	}
	if !recorded {
		return nil
	}
	return awaitKept(r)
}

func awaitKept(r ChangeRecorder) error {
	if r == nil {
		return nil
	}
	if err := r.Kept(); err != nil {
		return fmt.Errorf("recording what is to be replaced: %w", err)
	}
	return nil
}

// Announce records paths that are about to change, and the directories that will be created above them. The first
// change then waits until all of them are kept, and the others need not wait.
func (h *Host) Announce(paths ...string) error {
	t, ok := h.Files.(*tree)
	if !ok {
		return nil
	}
	for _, p := range paths {
		if !t.records(p) {
			continue
		}
		names := h.Missing(p)
		if names == nil {
			names = []string{t.real(p)}
		}
		for _, name := range names {
			if err := t.replacing(KindFile, p, name); err != nil {
				return err
			}
		}
	}
	return nil
}

// Missing returns the missing directories above a path, followed by the path, all without links. It returns nil if the
// path exists, or if that cannot be determined.
func (h *Host) Missing(p string) []string {
	t, ok := h.Files.(*tree)
	if !ok || !path.IsAbs(p) {
		return nil
	}
	if _, err := t.Lstat(p); !errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if above := h.Missing(path.Dir(p)); len(above) > 0 {
		return append(above, path.Join(above[len(above)-1], path.Base(p)))
	}
	return []string{t.real(p)}
}

type applyingKey struct{}

// Applying returns a context for calls that apply the changes of a state. Other calls, such as a guard or a command in
// a template, should only read.
func Applying(ctx context.Context) context.Context {
	return context.WithValue(ctx, applyingKey{}, true)
}

func applying(ctx context.Context) bool { return ctx.Value(applyingKey{}) != nil }

// namedCommands runs the commands of a host with a recorder. The recorder receives the name of each command that may
// change something, unless the caller has recorded its subjects.
type namedCommands struct {
	Commands
	recorder ChangeRecorder
}

func (r *namedCommands) Run(ctx context.Context, c Command) (Output, error) {
	if !c.Quiet && !c.Named && applying(ctx) && r.Allowed(c.Argv[0]) == nil {
		// Only the name of the program is recorded, since the arguments may have secrets. The command does not wait for
		// Kept, since it cannot be undone.
		s := Subject{KindCommand, path.Base(c.Argv[0])}
		if err := r.recorder.Replacing(s); err != nil {
			return Output{}, fmt.Errorf("recording %s: %w", s, err)
		}
	}
	return r.Commands.Run(ctx, c)
}

// madeObjects are the objects that this run made, or that a state of it declares and found. They are compared with what
// is in the way of a later state: see [Host.ObstructionOf].
type madeObjects struct {
	seed maphash.Seed // of the hashes of paths
	mu   sync.Mutex
	all  map[FileID]madeObject
}

// madeObject is the kind of an object, which the release decided, and a hash of its path without links.
type madeObject struct {
	kind fs.FileMode
	path uint64
}

func (m *madeObjects) add(id FileID, kind fs.FileMode, real string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.all == nil {
		m.all = map[FileID]madeObject{}
	}
	m.all[id] = madeObject{kind, maphash.String(m.seed, real)}
}

// kindOf returns the kind of an object that was made at a path.
func (m *madeObjects) kindOf(id FileID, real string) (kind fs.FileMode, found bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	o, found := m.all[id]
	return o.kind, found && o.path == maphash.String(m.seed, real)
}

// forgetMade forgets the object at a path, which is about to be removed or renamed, so that a user's object with its
// number is not taken for it.
func (t *tree) forgetMade(p string) {
	info, err := t.Lstat(p)
	if err != nil {
		return
	}
	t.made.mu.Lock()
	defer t.made.mu.Unlock()
	delete(t.made.all, info.ID())
}

// noteMade notes the object that an operation made. The operation decides its kind, since a user may exchange the
// object.
func (t *tree) noteMade(op, p string, dir int, name, real string) {
	var kind fs.FileMode
	switch op {
	case "mkdir":
		kind = fs.ModeDir
	case "write":
	case "symlink":
		kind = fs.ModeSymlink
	default:
		return
	}
	if t.temporary || ownTemp(p) {
		return
	}
	var st unix.Stat_t
	if unix.Fstatat(dir, name, &st, unix.AT_SYMLINK_NOFOLLOW) == nil {
		t.made.add(infoOf(&st).ID(), kind, real)
	}
}

// Made reports whether this run made the object at a path, which info describes.
func (h *Host) Made(p string, info Info) bool {
	t, ok := h.Files.(*tree)
	if !ok {
		return false
	}
	_, made := t.made.kindOf(info.ID(), t.real(p))
	return made
}

// Holds notes that a state declares an object of a kind at a path, and found it or made it: no later state can have one
// of another kind there.
func (h *Host) Holds(p string, thing Thing) {
	t, ok := h.Files.(*tree)
	if !ok {
		return
	}
	var kind fs.FileMode
	switch thing {
	case AFile:
	case ADirectory:
		kind = fs.ModeDir
	case ALink:
		kind = fs.ModeSymlink
	default:
		return
	}
	if info, err := t.Lstat(p); err == nil && info.Mode.Type() == kind {
		t.made.add(info.ID(), kind, t.real(p))
	}
}

// ownTemp reports whether a path is a temporary file of this program, which is removed at the end of its step, or lies
// in a temporary directory.
func ownTemp(p string) bool {
	return strings.HasPrefix(path.Base(p), tempPrefix) || strings.Contains(p, "/"+tempPrefix)
}
