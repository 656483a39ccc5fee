package manifest

import (
	"cmp"
	"context"
	"crypto/sha256"
	"errors"
	"io/fs"
	"os"
	"path"
	"slices"
	"strings"
	"syscall"

	"golang.org/x/sync/errgroup"

	"github.com/corpus-agent/corpus-agent/artifact/structsort"
)

// Scope selects the parts of a tree to compare.
type Scope struct {
	// Writable are paths below which everything but the kind of a name may change, and names may be added.
	Writable []string
	// Code are paths that are compared even if they are below a writable path. The targets of links in code are code
	// too.
	Code []string
	// Unlocked are paths below which files may be writable by their owner: code that the recipe declares writable.
	Unlocked []string
	// OnlyCode leaves out everything that is not code.
	OnlyCode bool
	// Trusted are the users who may own the compared names; nil allows every user.
	Trusted []uint32
}

// auditors is the number of files that are read concurrently.
const auditors = 4

// Audit compares the tree in root with the list: names, kinds, content, links, modes, owners and capabilities. An
// access control list that lets another user write is reported as a different mode, since its mask replaces the group's
// bits.
func (m *Manifest) Audit(ctx context.Context, root *os.Root, s Scope) ([]Change, error) {
	return m.audit(ctx, &audit{root: root, Scope: s, behind: m.Behind(s.Code)})
}

// Complete reports whether root contains exactly the listed names and contents, including writable paths.
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
	behind  []string // targets of links in code, sorted, see Behind
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
	if below(a.Code, name) {
		return true
	}
	for dir := name; len(a.behind) > 0 && dir != "."; dir = path.Dir(dir) {
		if _, behind := slices.BinarySearch(a.behind, dir); behind && !slices.ContainsFunc(a.Writable, func(w string) bool {
			return w != dir && below([]string{dir}, w) && below([]string{w}, name)
		}) {
			return true
		}
	}
	return false
}

// holdsCode reports whether a directory has code below it.
func (a *audit) holdsCode(name string) bool {
	above := func(c string) bool { return below([]string{name}, c) }
	_, behind := slices.BinarySearch(a.behind, name)
	return slices.ContainsFunc(a.Code, above) || behind || len(within(a.behind, name)) > 0
}

// compares reports whether a name is examined, for itself or for the names below it.
func (a *audit) compares(name string) bool { return !a.OnlyCode || a.isCode(name) || a.holdsCode(name) }

// below reports whether a name is one of the paths or below one.
func below(paths []string, name string) bool {
	return slices.ContainsFunc(paths, func(p string) bool {
		return p == "." || p == name || strings.HasPrefix(name, p+"/")
	})
}

// walk walks the tree; files are read concurrently.
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
			return fs.SkipAll // Wait returns the error with the name of the file
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

// look compares one name. It also reports an unchanged name that a user can change.
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
