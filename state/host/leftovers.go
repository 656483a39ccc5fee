package host

import (
	"errors"
	"hash/maphash"
	"io/fs"
	"path"
	"sync"

	"golang.org/x/sys/unix"

	"github.com/corpus-agent/corpus-agent/artifact/walk"
)

// leftovers are the kinds of objects that this run left at paths: what its states declare there, and what it made,
// exchanged or removed. Every operation of a tree notes what it changes, at the place where it passes the path to the
// recorder, so no state function has to do so. Host.ObstructionOf compares the kinds with what is in the way of a later
// state: if the run itself left that there, the release is at fault, and not a user.
//
// A kind counts only if the release decides it, and not what users put at the path before: see [tree.noteChange].
//
// Entries are about the disk, and not about states: which step declares what, whatever has happened to the path since,
// is in a table of package exec, whose comment says why one table cannot serve both.
type leftovers struct {
	seed maphash.Seed // of the hashes of paths

	mu      sync.Mutex
	notes   int // number of notes so far
	command int // the number at the last command, which may have changed anything
	all     map[uint64]leftover
}

// leftover is what the run left at a path. Paths are without those links that only root can change.
type leftover struct {
	kind     fs.FileMode
	id       FileID // of the object that the run made; zero if it only declares one
	at       int    // number of the note
	replaced int    // number of the last note of an operation that exchanged the object
	from     string // the former path of a directory that was renamed with its content; "" for any other object
	target   string // of a symbolic link, as the release declares it
}

// Kinds besides the types of objects.
const (
	noObject    = fs.ModeAppend    // nothing is at the path
	unknownKind = fs.ModeTemporary // the release does not decide the kind
)

func newLeftovers() *leftovers {
	return &leftovers{seed: maphash.MakeSeed(), all: map[uint64]leftover{}}
}

func (l *leftovers) key(p string) uint64 { return maphash.String(l.seed, p) }

// commandRan notes that a command ran that may have changed anything. Afterwards only objects count that the run made
// before, and that are still there.
func (l *leftovers) commandRan() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.notes++
	l.command = l.notes
}

// changed notes that an operation left an object of a kind at a path, or removed what was there.
func (l *leftovers) changed(p string, kind fs.FileMode, id FileID, from string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.notes++
	l.all[l.key(p)] = leftover{kind: kind, id: id, at: l.notes, replaced: l.notes, from: from}
	if kind != noObject && kind != unknownKind {
		l.above(p)
	}
}

// leads notes the target of a symbolic link that an operation made.
func (l *leftovers) leads(p, target string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if now, found := l.all[l.key(p)]; found && now.kind == fs.ModeSymlink {
		now.target = target
		l.all[l.key(p)] = now
	}
}

// forget drops the note of a temporary file.
func (l *leftovers) forget(p string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.all, l.key(p))
}

// declared notes that a state has successfully declared the kind of the object at a path, and the target of a link.
func (l *leftovers) declared(p string, kind fs.FileMode, target string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.notes++
	now := l.all[l.key(p)]
	if now.kind != kind {
		now.id = FileID{}
	}
	now.kind, now.at, now.target = kind, l.notes, target
	l.all[l.key(p)] = now
	if kind != noObject {
		l.above(p)
	}
}

// above notes that the paths above an object are directories.
func (l *leftovers) above(p string) {
	for dir := path.Dir(p); dir != "/" && dir != "."; dir = path.Dir(dir) {
		now, found := l.all[l.key(dir)]
		if found && now.kind == fs.ModeDir && now.at > l.command {
			return
		}
		if now.kind != fs.ModeDir {
			now.id = FileID{}
		}
		now.kind, now.at = fs.ModeDir, l.notes
		l.all[l.key(dir)] = now
	}
}

// of returns what the run left at a path, of which there may be several spellings; unknownKind if it does not decide
// that. id is the object that is there now.
func (l *leftovers) of(id FileID, paths ...string) fs.FileMode { return l.last(id, paths...).kind }

// last returns the note of which [leftovers.of] returns the kind.
func (l *leftovers) last(id FileID, paths ...string) leftover {
	l.mu.Lock()
	defer l.mu.Unlock()
	own, replaced, gone := leftover{kind: unknownKind}, 0, 0
	for _, p := range paths {
		if o, found := l.all[l.key(p)]; found && o.at > own.at {
			own = o
		}
		for dir := path.Dir(p); dir != "/" && dir != "."; dir = path.Dir(dir) {
			o, found := l.all[l.key(dir)]
			if replaced = max(replaced, o.replaced); found && o.kind == noObject {
				gone = max(gone, o.at)
			}
			was, moved := l.all[l.key(o.from+p[len(dir):])]
			if o.from != "" && moved && max(was.at, own.at) < o.replaced {
				own = leftover{kind: was.kind, id: was.id, at: o.replaced}
			}
		}
	}
	switch {
	case gone > max(own.at, l.command):
		return leftover{kind: noObject}
	case own.at < replaced, own.at < l.command && (own.id == FileID{} || own.id != id):
		return leftover{kind: unknownKind}
	}
	return own
}

// noteChange notes what an operation left at a path. The operation decides the kind, since a user may exchange the
// object.
func (t *tree) noteChange(op, p string, dir int, name, real string) {
	switch op {
	case "mkdir":
		t.noteObject(p, dir, name, real, fs.ModeDir, "")
	case "write":
		t.noteObject(p, dir, name, real, 0, "")
	case "symlink":
		t.noteObject(p, dir, name, real, fs.ModeSymlink, "")
	case "remove":
		t.noteRemoval(p, real)
	}
}

// noteObject notes an object that an operation made. If the step has content of a user, that user decides the kind.
func (t *tree) noteObject(p string, dir int, name, real string, kind fs.FileMode, from string) {
	if t.usersContent() {
		kind = unknownKind
	}
	var st unix.Stat_t
	if unix.Fstatat(dir, name, &st, unix.AT_SYMLINK_NOFOLLOW) == nil {
		t.left.changed(t.steady(p, real), kind, infoOf(&st).ID(), from)
	}
}

// noteRemoval notes that an operation removed what was at a path. If the run does not decide that something was there,
// a user may have put it there, so its absence is not of the release.
func (t *tree) noteRemoval(p, real string) {
	key, kind := t.steady(p, real), noObject
	if ownTemp(key) {
		t.left.forget(key)
		return
	}
	if t.left.of(FileID{}, key) == unknownKind {
		kind = unknownKind
	}
	t.left.changed(key, kind, FileID{}, "")
}

// decidedKind returns the kind of an object that is linked or renamed, if the release or root decides it.
func (t *tree) decidedKind(p string, info Info) fs.FileMode {
	if t.left.of(info.ID(), t.spellings(p)...) == info.Mode.Type() {
		return info.Mode.Type()
	}
	if party, _ := t.root.Changer(p, false); party == "" {
		return info.Mode.Type()
	}
	return unknownKind
}

// usersContent reports whether an unprivileged user can change a source of the step, such as an archive, and so what
// the step makes.
func (t *tree) usersContent() bool {
	if t.step == nil {
		return false
	}
	t.step.mu.Lock()
	defer t.step.mu.Unlock()
	for ; !t.step.users && len(t.step.sources) > 0; t.step.sources = t.step.sources[1:] {
		s := t.step.sources[0]
		party, _ := s.root.Changer(s.path, true)
		t.step.users = party != ""
	}
	return t.step.users
}

// steady returns a path without those links that root alone can change. real is the path without links.
func (t *tree) steady(p, real string) string {
	p = path.Clean("/" + p)
	if t.above != "" { // real is below the directory of a Beneath
		p, real = path.Join(t.above, p), path.Join(t.above, real)
	}
	if p == real || t.above != "" || ownTemp(p) {
		return p
	}
	if party, _ := t.root.Changer(p, false); party == "" {
		return real
	}
	for dir := path.Dir(p); dir != "/"; dir = path.Dir(dir) {
		if party, _ := t.root.Changer(dir, false); party == "" {
			return path.Dir(t.real(dir+"/x")) + p[len(dir):]
		}
	}
	return p
}

// spellings returns a path as it is, and without those links that root alone can change.
func (t *tree) spellings(p string) []string {
	return []string{path.Clean(p), t.steady(p, t.real(path.Clean(p)))}
}

// NoteDeclared notes that a state has succeeded that declares what is at a path: an object of a type, or nothing.
// target is that of a symbolic link.
func (h *Host) NoteDeclared(p string, kind fs.FileMode, nothing bool, target string) {
	t, ok := h.Files.(*tree)
	if !ok {
		return
	}
	if nothing {
		kind = noObject
	}
	t.left.declared(path.Clean(p), kind, target)
}

// OfOwnLink marks an error that refuses a symbolic link which this run itself made or declares, so that the release is
// at fault, and not the host. It returns nil for any other error: also if the link on disk has another target, or if an
// unprivileged user can change what is at the target, since that user may have caused the refusal.
func (h *Host) OfOwnLink(err error) error {
	var refused *walk.UnsafeError
	t, ok := h.Files.(*tree)
	if !ok || !errors.As(err, &refused) || !t.ownLink(refused) {
		return nil
	}
	return &declaredError{err}
}

// ownLink reports whether the link that an error refuses is one of this run, and refused whatever users do.
func (t *tree) ownLink(refused *walk.UnsafeError) bool {
	if refused.Raised || refused.Program || refused.Tree || refused.Source {
		return false
	}
	info, err := t.Lstat(refused.Component)
	if err != nil || !info.IsLink() {
		return false
	}
	own := t.left.last(info.ID(), t.spellings(refused.Component)...)
	there, err := t.Readlink(refused.Component)
	if err != nil || own.target == "" || path.Clean(there) != path.Clean(own.target) {
		return false
	}
	if target := own.target; path.IsAbs(target) {
		return t.unchangeable(target)
	}
	dir := path.Dir(refused.Component)
	return t.unchangeable(dir) && t.unchangeable(path.Join(dir, own.target))
}

// RootDecides reports whether root alone can change what is at a path.
func (h *Host) RootDecides(p string) bool {
	t, ok := h.Files.(*tree)
	return ok && t.unchangeable(p)
}

// unchangeable reports whether root alone can change what is at a path.
func (t *tree) unchangeable(p string) bool {
	party, _ := t.root.Changer(p, false)
	return party == ""
}
