package external

import (
	"fmt"
	"io/fs"
	"maps"
	"path"
	"slices"
	"strings"

	"github.com/corpus-agent/corpus-agent/state/host"
)

// mostLinks is the maximum number of links in a path, as in Linux.
const mostLinks = 40

// memory holds files that were fetched, which are on no disk. Paths have no leading slash. Links do not lead out of it.
// It is a roots.Files.
type memory struct {
	top  *node
	last uint64 // inode of the newest node
}

// node is a file, a link or a directory.
type node struct {
	content  []byte
	link     string
	children map[string]*node // of a directory; nil for others
	inode    uint64
}

func newMemory() *memory { return &memory{top: &node{children: map[string]*node{}}} }

// put adds a node at a path, and the directories above it. It returns false for a path without a name, with .. or below
// a file.
func (m *memory) put(file string, n *node) bool {
	dir := m.top
	names := strings.Split(file, "/")
	for i, name := range names {
		if name == "" || name == "." || name == ".." || dir.children == nil {
			return false
		}
		if i == len(names)-1 {
			m.last++
			n.inode = m.last
			dir.children[name] = n
			return true
		}
		next := dir.children[name]
		if next == nil {
			m.last++
			next = &node{children: map[string]*node{}, inode: m.last}
			dir.children[name] = next
		}
		dir = next
	}
	return false
}

// find returns the node at a path, after at most so many links.
func (m *memory) find(file string, follow bool, links int) (*node, error) {
	missing := fmt.Errorf("%s: %w", file, fs.ErrNotExist)
	at := m.top
	names := strings.Split(path.Clean(file), "/")
	for i, name := range names {
		if at = at.children[name]; at == nil {
			return nil, missing
		}
		if at.link == "" || i == len(names)-1 && !follow {
			continue
		}
		target := path.Join(append([]string{path.Join(names[:i]...), at.link}, names[i+1:]...)...)
		if path.IsAbs(at.link) || links == 0 || strings.HasPrefix(target, "..") {
			return nil, missing
		}
		return m.find(target, follow, links-1)
	}
	return at, nil
}

func (n *node) info() host.Info {
	info := host.Info{Mode: 0o400, Size: int64(len(n.content)), Inode: n.inode, Links: 1}
	switch {
	case n.children != nil:
		info.Mode = fs.ModeDir | 0o500
	case n.link != "":
		info.Mode = fs.ModeSymlink | 0o777
	}
	return info
}

// Stat is part of roots.Files.
func (m *memory) Stat(file string) (host.Info, error) { return m.describe(file, true) }

// Lstat is part of roots.Files.
func (m *memory) Lstat(file string) (host.Info, error) { return m.describe(file, false) }

func (m *memory) describe(file string, follow bool) (host.Info, error) {
	n, err := m.find(file, follow, mostLinks)
	if err != nil {
		return host.Info{}, err
	}
	return n.info(), nil
}

// ReadFile is part of roots.Files.
func (m *memory) ReadFile(file string) ([]byte, error) {
	n, err := m.find(file, true, mostLinks)
	if err == nil && n.children != nil {
		err = fmt.Errorf("%s is a directory", file)
	}
	if err != nil {
		return nil, err
	}
	return n.content, nil
}

// ReadDir is part of roots.Files.
func (m *memory) ReadDir(dir string) ([]string, error) {
	n, err := m.find(dir, true, mostLinks)
	if err != nil {
		return nil, err
	}
	return slices.Sorted(maps.Keys(n.children)), nil
}
