package procedure

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"path"

	"golang.org/x/sys/unix"

	"github.com/corpus-agent/corpus-agent/artifact/structsort"
	"github.com/corpus-agent/corpus-agent/artifact/walk"
	"github.com/corpus-agent/corpus-agent/state/diag"
)

// Takes is the disk space of a copy of a tree.
type Takes struct {
	Bytes int64 // a file with holes counts by its blocks, and one with several names once
	Files int64 // inodes
	large []share
}

// share is a part of a tree: a file, or the files directly in a directory.
type share struct {
	path  string
	bytes int64
	files int // of a directory
}

func (s share) String() string {
	if s.files > 0 {
		return fmt.Sprintf("%s (%s in %s)", s.path, diag.Size(s.bytes), diag.Count(s.files, "file"))
	}
	return fmt.Sprintf("%s (%s)", s.path, diag.Size(s.bytes))
}

// mostNamed bounds the parts of a tree that a message names.
const mostNamed = 3

// Measure returns the disk space that a copy of the tree takes.
func (t Tree) Measure(ctx context.Context) (Takes, error) {
	dir, err := t.Root.OpenDir(t.Path)
	if err != nil {
		return Takes{}, fmt.Errorf("measuring %s: %w", t.Path, err)
	}
	defer dir.Close()
	m := measure{seen: map[inode]bool{}}
	if err = m.directory(ctx, dir, "", 0); err != nil {
		return Takes{}, fmt.Errorf("measuring %s: %w", t.Path, err)
	}
	return m.takes, nil
}

type measure struct {
	takes Takes
	seen  map[inode]bool // files with several names
}

// directory adds the content of a directory. It ignores files that are removed meanwhile.
func (m *measure) directory(ctx context.Context, dir *walk.Dir, at string, depth int) error {
	names, err := dir.ReadDir()
	if err != nil || depth == maxDepth {
		return err
	}
	here := share{path: at + "/"}
	for _, name := range names {
		if err := ctx.Err(); err != nil {
			return err
		}
		st, err := dir.Lstat(name)
		if err == nil && st.Mode&unix.S_IFMT == unix.S_IFDIR {
			m.takes.Bytes, m.takes.Files = m.takes.Bytes+entry, m.takes.Files+1
			err = m.below(ctx, dir, name, path.Join(at, name), depth+1)
		} else if err == nil {
			m.entry(&here, path.Join(at, name), &st)
		}
		if err != nil && !vanished(err) {
			return err
		}
	}
	if here.files > 1 && at != "" {
		m.rank(here)
	}
	return nil
}

func (m *measure) below(ctx context.Context, dir *walk.Dir, name, at string, depth int) error {
	sub, err := dir.OpenDir(name)
	if err != nil {
		return err
	}
	return errors.Join(m.directory(ctx, sub, at, depth), sub.Close())
}

// entry adds a file that is not a directory.
func (m *measure) entry(here *share, at string, st *unix.Stat_t) {
	m.takes.Bytes += entry
	if st.Mode&unix.S_IFMT != unix.S_IFREG {
		m.takes.Files++
		return
	}
	if st.Nlink > 1 {
		id := inodeOf(st)
		if m.seen[id] {
			return
		}
		m.seen[id] = true
	}
	size := min(st.Size, st.Blocks*512)
	m.takes.Bytes, m.takes.Files = m.takes.Bytes+size, m.takes.Files+1
	here.bytes, here.files = here.bytes+size+entry, here.files+1
	m.rank(share{path: at, bytes: size})
}

// rank records a part if it is one of the largest.
func (m *measure) rank(s share) {
	large := &m.takes.large
	if s.bytes == 0 || len(*large) == mostNamed && (*large)[mostNamed-1].bytes >= s.bytes {
		return
	}
	*large = append(*large, s)
	structsort.Func(*large, func(a, b share) int { return cmp.Compare(b.bytes, a.bytes) })
	*large = (*large)[:min(len(*large), mostNamed)]
}

// Fits returns a *NoSpace if such a copy does not fit on the filesystem of a directory. It leaves some space free,
// since a full disk stops more than an archive.
func (t Takes) Fits(dir string) error { return t.FitsAfter(dir, Takes{}) }

// FitsAfter is Fits under the assumption that removed is removed from the same filesystem.
func (t Takes) FitsAfter(dir string, removed Takes) error {
	space, err := walk.SpaceAt(dir)
	if err != nil {
		return fmt.Errorf("measuring %s: %w", dir, err)
	}
	free := space.Unreserved + removed.Bytes
	if t.Bytes+t.Bytes/20 > free {
		return &NoSpace{Dir: dir, Need: t.Bytes, Free: free, Largest: t.named()}
	}
	if nodes := space.Files + removed.Files; t.Files+t.Files/20 > nodes {
		return &NoSpace{Dir: dir, Need: t.Files, Free: nodes, Nodes: true, Largest: t.named()}
	}
	return nil
}

func (t Takes) named() (all []string) {
	for _, s := range t.large {
		all = append(all, s.String())
	}
	return all
}
