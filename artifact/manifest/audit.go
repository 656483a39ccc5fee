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
)

// Change is a name that is not as it was unpacked.
type Change struct {
	Name     string    `json:"name"`
	What     string    `json:"what"`              // in words
	Owner    string    `json:"owner,omitempty"`   // number of the user who owns it now
	Modified time.Time `json:"modified,omitzero"` // when its content changed last, as the file says
	Changed  time.Time `json:"changed,omitzero"`  // when anything of it changed last, which nobody can set; of a name that is missing, its directory
	By       string    `json:"by,omitempty"`      // who did it, where that is known
}

const (
	wasAdded = "was added"
	hasMode  = "has mode "
)

// Damages reports whether content was lost or replaced. Names that were added and other modes leave
// everything there that was unpacked.
func (c Change) Damages() bool {
	return c.What != wasAdded && (!strings.HasPrefix(c.What, hasMode) || strings.Contains(c.What, " and "))
}

// auditors is how many files are read at once.
const auditors = 4

// Audit compares the tree in root with the list: names, kinds, content, links, and modes. Below the
// writable paths everything but the kind may have changed, and there may be more.
func (m *Manifest) Audit(ctx context.Context, root *os.Root, writable []string) ([]Change, error) {
	return m.audit(ctx, &audit{root: root, writable: writable})
}

// Complete reports whether root holds what is listed and nothing else, whatever may be written to.
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
		if !a.found[e.Name] && !a.mayChange(e.Name) {
			a.changes = append(a.changes, a.missing(e.Name))
		}
	}
	slices.SortFunc(a.changes, func(x, y Change) int { return cmp.Compare(x.Name, y.Name) })
	return a.changes, nil
}

// missing is a name that is not there. The nearest directory that is tells when it went.
func (a *audit) missing(name string) Change {
	c := Change{Name: name, What: "is missing"}
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
	root     *os.Root
	writable []string
	anyMode  bool
	listed   map[string]Entry
	found    map[string]bool
	changes  []Change
}

// parents notes directories that the archive did not name.
func (a *audit) parents(name string) {
	for i := strings.LastIndexByte(name, '/'); i > 0; i = strings.LastIndexByte(name[:i], '/') {
		if _, ok := a.listed[name[:i]]; !ok {
			a.listed[name[:i]] = Entry{Name: name[:i], Kind: Directory}
		}
	}
}

func (a *audit) mayChange(name string) bool {
	return slices.ContainsFunc(a.writable, func(w string) bool {
		return w == "." || w == name || strings.HasPrefix(name, w+"/")
	})
}

// walk goes through the tree; files are read beside the walk.
func (a *audit) walk(ctx context.Context) error {
	files, ctx := errgroup.WithContext(ctx)
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
		if err != nil || ctx.Err() != nil {
			return errors.Join(err, ctx.Err())
		}
		info, err := d.Info()
		if err != nil {
			return err
		}
		a.found[name] = true
		e, known := a.listed[name]
		files.Go(func() error {
			what, err := a.compare(e, known, name, info)
			if what != "" {
				results <- change(name, what, info)
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

// change says who a file belongs to and when it changed.
func change(name, what string, info fs.FileInfo) Change {
	c := Change{Name: name, What: what, Modified: info.ModTime().UTC()}
	if s, ok := info.Sys().(*syscall.Stat_t); ok {
		c.Owner = fmt.Sprint(s.Uid)
		c.Changed = time.Unix(s.Ctim.Unix()).UTC()
	}
	return c
}

// compare says what is different about a name, or "".
func (a *audit) compare(e Entry, known bool, name string, info fs.FileInfo) (string, error) {
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
		if mode := info.Mode(); mode.Perm()&0o022 != 0 && !a.anyMode {
			return fmt.Sprintf(hasMode+"%04o", octal(mode)), nil
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
	what, err := a.content(e, name, info)
	if mode := info.Mode(); mode.Perm()&0o222 != 0 && !a.anyMode || mode&(fs.ModeSetuid|fs.ModeSetgid|fs.ModeSticky) != 0 || (mode.Perm()&0o111 != 0) != (e.Kind == Executable) {
		also := fmt.Sprintf(hasMode+"%04o", octal(mode))
		if what != "" {
			also += " and " + what
		}
		what = also
	}
	return what, err
}

// octal is a mode as chmod(1) has it.
func octal(mode fs.FileMode) uint32 {
	bits := uint32(mode.Perm())
	for bit, posix := range map[fs.FileMode]uint32{fs.ModeSetuid: 0o4000, fs.ModeSetgid: 0o2000, fs.ModeSticky: 0o1000} {
		if mode&bit != 0 {
			bits |= posix
		}
	}
	return bits
}

// plain is what a kind is on disk.
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

func (a *audit) content(e Entry, name string, info fs.FileInfo) (string, error) {
	if info.Size() != e.Size {
		return fmt.Sprintf("has %d bytes, not %d", info.Size(), e.Size), nil
	}
	f, err := a.root.Open(name)
	if err != nil {
		return "", err
	}
	sum := sha256.New()
	_, err = io.Copy(sum, f)
	if err := errors.Join(err, f.Close()); err != nil {
		return "", err
	}
	if [32]byte(sum.Sum(nil)) != e.Digest {
		return "has other content", nil
	}
	return "", nil
}

// Lists reports whether the list has a name.
func (m *Manifest) Lists(name string) bool {
	return slices.ContainsFunc(m.Entries, func(e Entry) bool { return e.Name == name })
}

// Holds reports whether a tree has a file with the content that the list names.
func (m *Manifest) Holds(tree fs.FS, name string) bool {
	data, err := fs.ReadFile(tree, name)
	return err == nil && slices.ContainsFunc(m.Entries, func(e Entry) bool {
		return e.Name == name && e.Kind.Regular() && sha256.Sum256(data) == e.Digest
	})
}
