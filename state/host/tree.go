package host

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"strings"

	"github.com/corpus-agent/corpus-agent/state/host/passwd"

	"golang.org/x/sys/unix"

	"github.com/corpus-agent/corpus-agent/artifact/walk"
	"github.com/corpus-agent/corpus-agent/state/diag"
)

// tree implements Files for a machine or a root. Every operation opens the directory of a path and then uses the
// kernel's *at calls on a name in it. With a root, package walk resolves the path of that directory inside the root,
// including links and .., so neither a link nor a race can lead out of the root. Paths are never simplified, since
// a/../b is not b if a is a link.
//
// The root is a safe one: in a directory that an unprivileged user controls, links to files of other users are refused,
// and so are files of other users with several names (walk.UnsafeError).
type tree struct {
	root          *walk.Root
	relocated     bool   // the root is not the machine's own
	base          string // path on the machine of the recorder's root
	above         string // path of the root of a Beneath, for errors; "" for another tree
	temporary     bool   // the tree is removed at the end of its step, so nothing in it is recorded
	recorder      ChangeRecorder
	changed       func(path string) // called after a write, to drop cached reads
	temps         *temporaries
	umask         fs.FileMode
	unsynced      *unsynced
	machineErrors *walk.MachineErrors
	links         map[string]string // future targets of links, for [Host.WithLinks]
	ending        context.Context   // ends walks of whole trees; nil for none, see [Host.Ending]
	left          *leftovers
	step          *step // the step that uses this copy of the tree; nil for none
}

func openTree(root string, relocated bool, o Options, changed func(string)) (*tree, error) {
	t := &tree{recorder: o.Recorder, changed: changed, temps: &temporaries{report: o.Temporary}, umask: umask(),
		relocated: relocated, unsynced: &unsynced{}, machineErrors: &walk.MachineErrors{}, left: newLeftovers()}
	t.base = "/"
	places := walk.Options{Safe: true}
	if relocated {
		places.Dir = root
	}
	places.Members = passwd.Members(places.Dir)
	var err error
	if t.root, err = walk.Open(places); err == nil && relocated {
		t.base = t.root.Name()
	}
	return t, err
}

// following returns the same tree with every link followed, also those that other users control.
func (t *tree) following() *tree {
	other := *t
	other.root = t.root.Following()
	return &other
}

// ended returns the reason to stop a walk of the tree p, or nil if it may continue. The agent's own temporary files are
// removed in any case.
func (t *tree) ended(p string) error {
	if t.ending == nil || ownTemp(p) {
		return nil
	}
	return context.Cause(t.ending)
}

// Anchored returns the same tree for many lookups below some directories: see [walk.Root.Anchored].
func (t *tree) Anchored(dirs []string) Files {
	other := *t
	other.root = t.root.Anchored(dirs)
	return &other
}

// openat opens a path, links followed.
func (t *tree) openat(p string, flags int) (fd int, err error) {
	return t.root.Openat(t.planned(p), flags)
}

// planned returns a path in which the longest leading part that is a link in t.links is replaced by the link's future
// target.
func (t *tree) planned(p string) string {
	longest := ""
	for link := range t.links {
		if len(link) > len(longest) && (p == link || strings.HasPrefix(p, link+"/")) {
			longest = link
		}
	}
	if longest == "" {
		return p
	}
	return t.links[longest] + p[len(longest):]
}

// opener opens the directory in which a path is looked up, and returns the name in it.
type opener func(p string) (dir int, name string, done func(), err error)

// end is like at for the path to which the links at the end of p lead.
func (t *tree) end(p string) (dir int, name string, done func(), err error) {
	d, name, err := t.root.Follow(p)
	if err != nil {
		return 0, "", nil, err
	}
	return d.FD(), name, func() { _ = d.Close() }, nil
}

// at returns the directory of a path and the last name in it.
func (t *tree) at(p string) (dir int, name string, done func(), err error) {
	way, name, err := walk.Split(p)
	if err != nil {
		return 0, "", nil, err
	}
	dir, err = t.openat(way, unix.O_PATH|unix.O_DIRECTORY)
	if err != nil {
		return 0, "", nil, err
	}
	return dir, name, func() { _ = unix.Close(dir) }, nil
}

// do runs one *at call on a path.
func (t *tree) do(op, p string, call func(dir int, name string) error) error {
	dir, name, done, err := t.at(p)
	if err == nil {
		err = walk.ExplainPermission(walk.Retry(func() error { return call(dir, name) }), dir, name)
		done()
	}
	return t.failed(op, p, err)
}

// failed returns a pathError, and notes it if it is an error of the machine.
func (t *tree) failed(op, p string, err error) error {
	return t.machineErrors.Note(p, pathError(op, t.whole(p), err))
}

// whole returns a path as errors show it.
func (t *tree) whole(p string) string {
	if t.above == "" {
		return p
	}
	return path.Join(t.above, p)
}

// write calls a function that changes a path at once. The file is recorded and kept before, and its cached reads are
// dropped after.
func (t *tree) write(op, p string, call func(dir int, name string) error) error {
	return t.change(op, p, t.at, func(dir int, name string) error {
		if err := t.kept(name); err != nil {
			return err
		}
		return call(dir, name)
	})
}

// change is like write for a function that itself waits until the old file is kept.
func (t *tree) change(op, p string, open opener, call func(dir int, name string) error) error {
	dir, name, done, err := open(p)
	if err != nil {
		return explain(t.failed(op, p, err))
	}
	defer done()
	real := t.below(dir, name, p)
	if t.records(p) {
		if err := t.replacing(KindFile, p, real); err != nil {
			return err
		}
	}
	if err = t.unsynced.add(dir); err == nil {
		err = walk.ExplainPermission(walk.Retry(func() error { return call(dir, name) }), dir, name)
	}
	if err == nil {
		t.noteChange(op, p, dir, name, real)
		t.changed(p)
	}
	if err == nil && real != p {
		t.changed(real)
	}
	return explain(t.failed(op, p, err))
}

// records reports whether changes of a path are passed to a recorder.
func (t *tree) records(p string) bool { return t.recorder != nil && !t.temporary && !ownTemp(p) }

func (t *tree) record(kind Kind, p string) error {
	if !t.records(p) {
		return nil
	}
	return t.replacing(kind, p, t.real(p))
}

func (t *tree) replacing(kind Kind, p, real string) error {
	if err := t.recorder.Replacing(Subject{kind, real}); err != nil {
		return fmt.Errorf("recording %s: %w", p, err)
	}
	return nil
}

// kept waits until the recorded file with a name is kept.
func (t *tree) kept(name string) error {
	if t.temporary || ownTemp(name) {
		return nil
	}
	return awaitKept(t.recorder)
}

// real returns a path with the links before its last name resolved, since they may lead elsewhere when the path is used
// again. If the directory cannot be opened, for example because it does not exist yet, it returns p.
func (t *tree) real(p string) string {
	dir, name, done, err := t.at(p)
	if err != nil {
		return p
	}
	defer done()
	return t.below(dir, name, p)
}

// below returns the path of a name in a directory, without links; p if that is unknown.
func (t *tree) below(dir int, name, p string) string {
	way, err := os.Readlink(walk.Handle(dir))
	if err != nil {
		return p
	}
	if t.relocated {
		if way != t.base && !strings.HasPrefix(way, strings.TrimRight(t.base, "/")+"/") {
			return p
		}
		way = "/" + strings.TrimLeft(strings.TrimPrefix(way, t.base), "/")
	}
	if name == "." {
		return way
	}
	return strings.TrimRight(way, "/") + "/" + name
}

// Errors that callers distinguish, in addition to fs.ErrNotExist and similar errors. Errors of files wrap them.
const (
	ErrNotDir          = unix.ENOTDIR // a part of the path is a file
	ErrLink            = unix.ELOOP   // links form a loop, or a link is in a path whose links are not followed
	ErrOtherFilesystem = unix.EXDEV   // of a Rename or Link from one filesystem to another
)

func pathError(op, p string, err error) error {
	var unsafe *walk.UnsafeError
	var named *fs.PathError
	if errors.As(err, &unsafe) && strings.HasPrefix(p, unsafe.Path) {
		whole := *unsafe
		whole.Path = p // a directory of the path was refused
		return &whole
	}
	if err == nil || errors.As(err, &unsafe) || errors.As(err, &named) && named.Path == walk.Clip(p) {
		return err
	}
	return &fs.PathError{Op: op, Path: walk.Clip(p), Err: err}
}

// explain adds a hint to an error of a file.
func explain(err error) error {
	var leased *walk.Leased
	var immutable *walk.Immutable
	var named *fs.PathError
	switch {
	case errors.As(err, &leased):
		return diag.Busy.Hint(err, "%s", leased.Hint())
	case errors.As(err, &immutable) && errors.As(err, &named):
		p := named.Path
		if immutable.Directory {
			p = path.Dir(p)
		}
		return diag.Rights.Hint(err, "let the agent change it with: chattr -%s %s", immutable.Flag(), p)
	case errors.Is(err, unix.ENOSPC), errors.Is(err, unix.EDQUOT):
		return diag.Disk.Hint(err, "make room on that filesystem, or raise the quota, and run again")
	case errors.Is(err, unix.EIO):
		return diag.Disk.Hint(err, "the disk may be failing: see dmesg")
	case errors.Is(err, unix.EMFILE), errors.Is(err, unix.ENFILE):
		return diag.Limits.Hint(
			err, "there are too many open files: see LimitNOFILE= of the unit, ulimit -n and fs.file-max")
	case errors.Is(err, unix.ENOMEM):
		return diag.Limits.Hint(err, "the host has too little memory: see free -m and dmesg")
	case errors.Is(err, unix.EROFS):
		return diag.Disk.Hint(err, "that filesystem is mounted read-only: mount it for writing first")
	case errors.Is(err, unix.EPERM) && os.Geteuid() == 0:
		return diag.Rights.Hint(err, "its filesystem, or what the agent runs in, may not allow it: see findmnt, lsattr and "+
			"CapabilityBoundingSet= of the unit")
	case errors.Is(err, fs.ErrPermission):
		return diag.Rights.Hint(err, "run as root, or give the agent's user the right to do this")
	case errors.Is(err, unix.EBUSY):
		return diag.Path.Hint(err, "something is mounted there, or uses it")
	case errors.Is(err, ErrLink) && errors.As(err, &named):
		return diag.Path.Hint(err, "%s", walk.LoopHint(named.Path))
	case errors.Is(err, walk.ErrNoFile):
		return diag.Path.Hint(err, "remove it, or choose another path")
	case errors.Is(err, ErrNotDir) && errors.As(err, &named):
		return diag.Path.Hint(err, "a part of the path is not a directory; find it with: namei -l %s", named.Path)
	}
	return err
}

func (t *tree) CanChown() bool { return os.Geteuid() == 0 }

func (t *tree) Umask() fs.FileMode { return t.umask }
