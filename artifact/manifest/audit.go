package manifest

import (
	"cmp"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"slices"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sync/errgroup"
	"golang.org/x/sys/unix"

	"github.com/corpus-agent/corpus-agent/artifact"
	"github.com/corpus-agent/corpus-agent/artifact/structsort"
)

// Change is a difference between a name in a tree and the list.
type Change struct {
	Name     string    `json:"name"`
	What     string    `json:"what"`              // the difference, in words
	Owner    string    `json:"owner,omitempty"`   // numeric ID of the present owner
	Modified time.Time `json:"modified,omitzero"` // modification time, as the file has it
	// Changed is the change time (ctime), which only the kernel sets; of a missing name, that of its directory.
	Changed time.Time `json:"changed,omitzero"`
	By      string    `json:"by,omitempty"`      // who changed it, if known
	Code    bool      `json:"code,omitempty"`    // the agent reads or runs it as root
	Foreign bool      `json:"foreign,omitempty"` // it is unchanged, but a user can change it
}

const (
	wasAdded = "was added"
	hasMode  = "has mode "
)

// Damages reports whether content was lost or replaced, or code was added. Other added names, other modes and other
// owners leave all unpacked content in place.
func (c Change) Damages() bool {
	if c.What == wasAdded {
		return c.Code
	}
	return !c.Foreign && !c.OnlyMode()
}

// OnlyMode reports whether only the mode of a name differs.
func (c Change) OnlyMode() bool {
	return strings.HasPrefix(c.What, hasMode) && !strings.Contains(c.What, " and ")
}

// Scope is which parts of a tree are compared, and how.
type Scope struct {
	// Writable are paths below which anything but the kind of a name may change, and names may be added.
	Writable []string
	// Code are paths that are compared even if they are below a writable one. What links in code lead to is code too.
	Code []string
	// Unlocked are paths below which files may be writable by their owner: code that the recipe declares writable.
	Unlocked []string
	// OnlyCode leaves out everything that is not code.
	OnlyCode bool
	// Trusted are the users who may own what is compared; nil allows every user.
	Trusted []uint32
}

// auditors is how many files are read concurrently.
const auditors = 4

// Audit compares the tree in root with the list: names, kinds, content, links, modes, owners and capabilities. An
// access control list that lets another user write shows as a mode, since its mask stands in the place of the group's
// bits.
func (m *Manifest) Audit(ctx context.Context, root *os.Root, s Scope) ([]Change, error) {
	return m.audit(ctx, &audit{root: root, Scope: s, behind: m.Behind(s.Code)})
}

// Complete reports whether root holds exactly what is listed, including writable paths.
func (m *Manifest) Complete(ctx context.Context, root *os.Root) (bool, error) {
	changes, err := m.audit(ctx, &audit{root: root, anyMode: true})
	return len(changes) == 0, err
}

func (m *Manifest) audit(ctx context.Context, a *audit) ([]Change, error) {
	a.listed, a.found = map[string]Entry{".": {Name: ".", Kind: Directory}}, map[string]bool{}
	for _, e := range m.Entries {
		a.listed[e.Name] = e
		a.parents(e.Name)
	}
	if err := a.walk(ctx); err != nil {
		return nil, err
	}
	for _, e := range m.Entries {
		if !a.found[e.Name] && a.compares(e.Name) && !a.mayChange(e.Name) {
			a.changes = append(a.changes, a.missing(e.Name))
		}
	}
	structsort.Func(a.changes, func(x, y Change) int { return cmp.Compare(x.Name, y.Name) })
	return a.changes, nil
}

// missing describes a name that is gone. Its time is the change time of the nearest directory that exists.
func (a *audit) missing(name string) Change {
	c := Change{Name: name, What: "is missing", Code: a.isCode(name)}
	for dir := path.Dir(name); c.Changed.IsZero(); dir = path.Dir(dir) {
		if info, err := a.root.Lstat(dir); err == nil {
			c.Changed = change(dir, "", info).Changed
		}
		if dir == "." {
			break
		}
	}
	return c
}

type audit struct {
	Scope
	behind  []string // what links in code lead to, see Behind
	root    *os.Root
	anyMode bool
	listed  map[string]Entry
	found   map[string]bool
	changes []Change
}

// parents adds the directories above a name, which the archive need not contain.
func (a *audit) parents(name string) {
	for i := strings.LastIndexByte(name, '/'); i > 0; i = strings.LastIndexByte(name[:i], '/') {
		if _, ok := a.listed[name[:i]]; !ok {
			a.listed[name[:i]] = Entry{Name: name[:i], Kind: Directory}
		}
	}
}

// mayChange reports whether a name is data that the project's user may change.
func (a *audit) mayChange(name string) bool { return below(a.Writable, name) && !a.isCode(name) }

// isCode reports whether a name is code. A writable path below a directory that a link in code leads to is data.
func (a *audit) isCode(name string) bool {
	return below(a.Code, name) || slices.ContainsFunc(a.behind, func(dir string) bool {
		return below([]string{dir}, name) && !slices.ContainsFunc(a.Writable, func(w string) bool {
			return w != dir && below([]string{dir}, w) && below([]string{w}, name)
		})
	})
}

// holdsCode reports whether a directory has code below it.
func (a *audit) holdsCode(name string) bool {
	above := func(c string) bool { return below([]string{name}, c) }
	return slices.ContainsFunc(a.Code, above) || slices.ContainsFunc(a.behind, above)
}

// compares reports whether a name is examined, for itself or for the names below it.
func (a *audit) compares(name string) bool { return !a.OnlyCode || a.isCode(name) || a.holdsCode(name) }

// below reports whether a name is one of the paths or below one.
func below(paths []string, name string) bool {
	return slices.ContainsFunc(paths, func(p string) bool {
		return p == "." || p == name || strings.HasPrefix(name, p+"/")
	})
}

// walk goes through the tree; files are read concurrently.
func (a *audit) walk(ctx context.Context) error {
	files, within := errgroup.WithContext(ctx)
	files.SetLimit(auditors)
	results := make(chan Change)
	done := make(chan struct{})
	go func() {
		defer close(done)
		for c := range results {
			a.changes = append(a.changes, c)
		}
	}()
	err := fs.WalkDir(a.root.FS(), ".", func(name string, d fs.DirEntry, err error) error {
		if gone(err) && name != "." {
			return nil // another process has removed it since; a listed name then counts as missing
		}
		if err != nil || ctx.Err() != nil {
			return errors.Join(err, ctx.Err())
		}
		if within.Err() != nil {
			return fs.SkipAll // Wait returns which file could not be read
		}
		if !a.compares(name) {
			return skip(d)
		}
		info, err := d.Info()
		if gone(err) {
			return nil
		}
		if err != nil {
			return err
		}
		a.found[name] = true
		e, known := a.listed[name]
		files.Go(func() error {
			c, err := a.look(ctx, e, known, name, info)
			if c.What != "" {
				results <- c
			}
			return err
		})
		return nil
	})
	err = errors.Join(err, files.Wait())
	close(results)
	<-done
	return err
}

func skip(d fs.DirEntry) error {
	if d.IsDir() {
		return fs.SkipDir
	}
	return nil
}

func gone(err error) bool { return errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ENOTDIR) }

// look compares one name. What is unchanged, and a user can change, is reported too.
func (a *audit) look(ctx context.Context, e Entry, known bool, name string, info fs.FileInfo) (Change, error) {
	what, err := a.compare(ctx, e, known, name, info)
	c := change(name, what, info)
	c.Code = a.isCode(name)
	if what == wasAdded && (a.cache(name, info) || a.OnlyCode && !c.Code) {
		c.What = ""
	}
	if a.mayChange(name) && !a.holdsCode(name) || c.What != "" && !c.OnlyMode() {
		return c, err
	}
	c.Foreign = info.Mode()&fs.ModeSymlink == 0 && info.Mode().Perm()&0o022 != 0
	if c.What == "" && !a.trusts(info) {
		c.What, c.Foreign = "belongs to user "+c.Owner+", who can change it", true
	}
	return c, err
}

func (a *audit) trusts(info fs.FileInfo) bool {
	s, ok := info.Sys().(*syscall.Stat_t)
	return a.Trusted == nil || !ok || slices.Contains(a.Trusted, s.Uid)
}

// cache reports whether a name is Python's bytecode cache of a program that the agent ran, and belongs to a trusted
// user.
func (a *audit) cache(name string, info fs.FileInfo) bool {
	return a.Trusted != nil && a.trusts(info) && slices.Contains(strings.Split(name, "/"), "__pycache__")
}

// change fills in the owner and the times of a file.
func change(name, what string, info fs.FileInfo) Change {
	c := Change{Name: name, What: what, Modified: info.ModTime().UTC()}
	if s, ok := info.Sys().(*syscall.Stat_t); ok {
		c.Owner = fmt.Sprint(s.Uid)
		c.Changed = time.Unix(s.Ctim.Unix()).UTC()
	}
	return c
}

// compare returns the difference of a name in words, or "".
func (a *audit) compare(ctx context.Context, e Entry, known bool, name string, info fs.FileInfo) (string, error) {
	free := a.mayChange(name)
	switch {
	case !known && free:
		return "", nil
	case !known:
		return wasAdded, nil
	case kindOf(info) != e.Kind.plain():
		return "is of another kind", nil
	case free:
		return "", nil
	case e.Kind == Directory:
		if mode := octal(info.Mode()); !a.anyMode && !a.modeOf(e, name).Fits(mode) {
			return fmt.Sprintf(hasMode+"%04o", mode), nil
		}
		return "", nil
	case e.Kind == Symlink:
		target, err := a.root.Readlink(name)
		if err == nil && target != e.Link {
			return fmt.Sprintf("links to %q, not to %q", target, e.Link), nil
		}
		return "", err
	}
	if e.Kind == Hardlink {
		e = a.listed[e.Link]
	}
	what, err := a.content(ctx, e, name, info)
	if mode := octal(info.Mode()); !a.modeFits(e, name, mode) {
		also := fmt.Sprintf(hasMode+"%04o", mode)
		if what != "" {
			also += " and " + what
		}
		what = also
	}
	return what, err
}

// The modes that unpacking gives, whatever the archive says but for the bit that makes a file executable.
const (
	fileMode       = 0o444
	executableMode = 0o555
	directoryMode  = 0o755
	setgid         = 0o2000 // directories take it over from the one above
)

// Private are the directories of a release that hold a host's secrets. They have PrivateMode.
func Private() []string { return []string{"pillar", "salt/config/pillar"} }

// PrivateMode is the mode of private directories.
const PrivateMode = 0o700

// ClosePrivate gives the private directories of a tree their mode.
func ClosePrivate(tree *os.Root) error {
	var errs []error
	for _, name := range Private() {
		if info, err := tree.Lstat(name); err == nil && info.IsDir() {
			errs = append(errs, tree.Chmod(name, PrivateMode))
		}
	}
	return errors.Join(errs...)
}

// CloseLinked gives the directories of a tree, to which its private names are links, the mode of private ones. It is
// for a tree that has no list with modes. A link to the tree itself is an error: its files would be out of reach for
// their users.
func CloseLinked(tree *os.Root) error {
	top, err := tree.Stat(".")
	errs := []error{err}
	for _, name := range Private() {
		info, err := tree.Stat(name)
		switch {
		case err != nil || !info.IsDir():
		case os.SameFile(info, top):
			errs = append(errs, fmt.Errorf("%s is a link to the whole tree, which other users may read: make it a directory",
				name))
		default:
			errs = append(errs, tree.Chmod(name, PrivateMode))
		}
	}
	return errors.Join(errs...)
}

// modeFits reports whether a file has the mode that it was unpacked with. A file that is code, and that the recipe
// calls writable, may have its owner's write bit.
func (a *audit) modeFits(e Entry, name string, mode uint32) bool {
	if a.anyMode {
		return mode&0o7000 == 0 && (mode&0o111 != 0) == (e.Kind == Executable)
	}
	return a.modeOf(e, name).Fits(mode)
}

// octal returns a mode as a number for chmod(1).
func octal(mode fs.FileMode) uint32 {
	bits := uint32(mode.Perm())
	for bit, posix := range map[fs.FileMode]uint32{fs.ModeSetuid: 0o4000, fs.ModeSetgid: 0o2000, fs.ModeSticky: 0o1000} {
		if mode&bit != 0 {
			bits |= posix
		}
	}
	return bits
}

// plain returns the kind that an entry has on disk.
func (k Kind) plain() Kind {
	if k == Hardlink || k == Executable {
		return File
	}
	return k
}

func kindOf(info fs.FileInfo) Kind {
	switch mode := info.Mode(); {
	case mode.IsRegular():
		return File
	case mode.IsDir():
		return Directory
	case mode&fs.ModeSymlink != 0:
		return Symlink
	}
	return 0
}

// capabilities is the attribute with the capabilities that a program gets for every user.
const capabilities = "security.capability"

func (a *audit) content(ctx context.Context, e Entry, name string, info fs.FileInfo) (string, error) {
	if info.Size() != e.Size {
		return fmt.Sprintf("has %d bytes, not %d", info.Size(), e.Size), nil
	}
	// The file may have been replaced by a named pipe since, which a blocking open would wait for.
	f, err := a.root.OpenFile(name, os.O_RDONLY|syscall.O_NONBLOCK|syscall.O_NOFOLLOW, 0)
	if gone(err) || errors.Is(err, syscall.ELOOP) {
		return "changed while it was read", nil
	}
	if err != nil {
		return "", err
	}
	if now, err := f.Stat(); err != nil || !now.Mode().IsRegular() {
		return "changed while it was read", errors.Join(err, f.Close())
	}
	if size, err := unix.Fgetxattr(int(f.Fd()), capabilities, nil); err == nil && size > 0 {
		return "has capabilities (setcap), which unpacking never gives", f.Close()
	}
	sum := sha256.New()
	_, err = io.Copy(sum, io.LimitReader(artifact.Stoppable(ctx, f), e.Size+1))
	if err := errors.Join(err, f.Close()); err != nil {
		return "", err
	}
	if [32]byte(sum.Sum(nil)) != e.Digest {
		return "has other content", nil
	}
	return "", nil
}

// Lists reports whether the list contains a name.
func (m *Manifest) Lists(name string) bool {
	return slices.ContainsFunc(m.Entries, func(e Entry) bool { return e.Name == name })
}

// Holds reports whether a tree has a file with the listed content under a name.
func (m *Manifest) Holds(tree fs.FS, name string) bool {
	data, err := fs.ReadFile(tree, name)
	return err == nil && slices.ContainsFunc(m.Entries, func(e Entry) bool {
		return e.Name == name && e.Kind.Regular() && sha256.Sum256(data) == e.Digest
	})
}
