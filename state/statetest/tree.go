package statetest

import (
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/corpus-agent/corpus-agent/state/host"
	"github.com/corpus-agent/corpus-agent/state/module"
)

// Tree has the files below a directory, by absolute path as the host sees it.
type Tree map[string]Entry

// Entry is a file, directory or link. Zero fields are not compared; a new file gets their defaults: mode 0644 or 0755,
// owner root, the present time.
type Entry struct {
	Kind     string // file, dir, link or other
	Content  *string
	Mode     string // four octal digits
	User     string
	Group    string
	Target   string // of a link
	Modified time.Time
	Inode    uint64
	Absent   bool // the path must not exist
}

// File returns an entry with content.
func File(content string) Entry { return Entry{Kind: "file", Content: &content} }

// Dir returns a directory.
func Dir() Entry { return Entry{Kind: "dir"} }

// Link returns a symbolic link.
func Link(target string) Entry { return Entry{Kind: "link", Target: target} }

// With returns the entry with a mode and, unless they are "", an owner.
func (e Entry) With(mode, user, group string) Entry {
	e.Mode, e.User, e.Group = mode, user, group
	return e
}

// Snapshot describes everything below a directory on the disk, without owners; Host.Snapshot has them.
func Snapshot(dir string) (Tree, error) {
	tree := Tree{}
	err := filepath.WalkDir(dir, func(file string, _ fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		e, err := describe(file)
		tree[path.Join("/", strings.TrimPrefix(file, dir))] = e
		return err
	})
	return tree, err
}

func describe(file string) (Entry, error) {
	info, err := os.Lstat(file)
	if err != nil {
		return Entry{}, err
	}
	e := Entry{Mode: module.ModeText(info.Mode()), Modified: info.ModTime(), Inode: inode(info)}
	switch {
	case info.IsDir():
		e.Kind = "dir"
	case info.Mode().IsRegular():
		data, err := os.ReadFile(file)
		if err != nil {
			return e, err
		}
		content := string(data)
		e.Kind, e.Content = "file", &content
	case info.Mode()&fs.ModeSymlink != 0:
		e.Kind = "link"
		e.Target, err = os.Readlink(file)
		return e, err
	default:
		e.Kind = "other"
	}
	return e, nil
}

// Diff lists the differences between two whole trees, one line each, sorted by path.
func (t Tree) Diff(after Tree) []string {
	var lines []string
	for _, p := range t.paths() {
		got, ok := after[p]
		if !ok {
			lines = append(lines, p+" is gone")
		} else if d := t[p].differs(got); d != "" {
			lines = append(lines, p+": "+d)
		}
	}
	for _, p := range after.paths() {
		if _, ok := t[p]; !ok {
			lines = append(lines, p+" is new")
		}
	}
	return lines
}

func (t Tree) paths() []string { return slices.Sorted(maps.Keys(t)) }

// differs describes how another entry differs from this one, or returns "".
func (e Entry) differs(got Entry) string {
	var parts []string
	note := func(what, want, got string) {
		if want != "" && want != got {
			parts = append(parts, fmt.Sprintf("%s is %q, want %q", what, got, want))
		}
	}
	note("kind", e.Kind, got.Kind)
	note("mode", e.Mode, got.Mode)
	note("user", e.User, got.User)
	note("group", e.Group, got.Group)
	note("target", e.Target, got.Target)
	if e.Content != nil && (got.Content == nil || *e.Content != *got.Content) {
		parts = append(parts, fmt.Sprintf("content is %s, want %q", quoted(got.Content), *e.Content))
	}
	if !e.Modified.IsZero() && !e.Modified.Equal(got.Modified) {
		parts = append(parts, "was written")
	}
	if e.Inode != 0 && e.Inode != got.Inode {
		parts = append(parts, "was replaced")
	}
	return strings.Join(parts, ", ")
}

func quoted(s *string) string {
	if s == nil {
		return "nothing"
	}
	return fmt.Sprintf("%q", *s)
}

// Build creates the tree on a host, including parents.
func (h *Host) Build(t *testing.T, tree Tree) {
	t.Helper()
	for _, p := range tree.paths() {
		h.mkdirs(t, path.Dir(p))
		h.place(t, p, tree[p])
	}
	// Creating an entry changes the time of its directory, so times are set last.
	for _, p := range tree.paths() {
		if m := tree[p].Modified; !m.IsZero() {
			must(t, h.Files.Chtimes(p, m, m))
		}
	}
}

func (h *Host) mkdirs(t *testing.T, dir string) {
	t.Helper()
	if _, err := h.Files.Stat(dir); errors.Is(err, fs.ErrNotExist) {
		h.mkdirs(t, path.Dir(dir))
		must(t, h.Files.Mkdir(dir, 0o755))
	}
}

func (h *Host) place(t *testing.T, p string, e Entry) {
	t.Helper()
	switch e.Kind {
	case "dir":
		if _, err := h.Files.Stat(p); err != nil {
			must(t, h.Files.Mkdir(p, 0o755))
		}
	case "link":
		must(t, h.Files.Symlink(e.Target, p))
	default:
		mode := fs.FileMode(0o644)
		content := ""
		if e.Content != nil {
			content = *e.Content
		}
		must(t, h.Files.Write(p, host.NewFile{Content: strings.NewReader(content), Mode: &mode, UID: -1, GID: -1}))
	}
	h.own(t, p, e)
}

// own sets the owner and the mode of a path to those of an entry.
func (h *Host) own(t *testing.T, p string, e Entry) {
	t.Helper()
	uid, gid := -1, -1
	if e.User != "" {
		uid = h.Users.uid(t, e.User)
	}
	if e.Group != "" {
		gid = h.Users.gid(t, e.Group)
	}
	if uid >= 0 || gid >= 0 {
		must(t, h.Files.Chown(p, uid, gid))
	}
	if e.Mode != "" && e.Kind != "link" {
		var mode module.Mode
		must(t, mode.UnmarshalSLS(e.Mode))
		must(t, h.Files.Chmod(p, mode.Bits))
	}
}

// Expect compares the entries of a tree with the files of the host.
func (h *Host) Expect(t *testing.T, want Tree) {
	t.Helper()
	got := h.Snapshot(t)
	for _, p := range want.paths() {
		e, ok := got[p]
		switch {
		case want[p].Absent && ok:
			t.Errorf("%s is still there", p)
		case want[p].Absent:
		case !ok:
			t.Errorf("%s does not exist", p)
		default:
			if d := want[p].differs(e); d != "" {
				t.Errorf("%s: %s", p, d)
			}
		}
	}
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
