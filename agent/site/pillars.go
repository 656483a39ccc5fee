package site

import (
	"path/filepath"
	"slices"

	"golang.org/x/sys/unix"

	"github.com/corpus-agent/corpus-agent/artifact/manifest"
	"github.com/corpus-agent/corpus-agent/artifact/walk"
)

// pushedPillars returns the pillars in releases of projects that did not come from a store. A release from a store is
// compared with its signed list, modes included.
func (s *Site) pushedPillars(root *walk.Root, projects []string) (all []sharable, err error) {
	for _, project := range projects {
		p := s.LayoutOf(project)
		releases, err := namesIn(root, s.Layout.Inside(p.Releases()))
		if err != nil {
			return nil, err
		}
		listed, err := namesIn(root, s.Layout.Inside(s.Layout.Trees(project)))
		if err != nil {
			return nil, err
		}
		for _, dir := range releases {
			for _, name := range manifest.Private() {
				if !slices.Contains(listed, dir) {
					all = append(all, sharable{filepath.Join(p.Release(dir), name), true})
				}
			}
		}
	}
	return all, nil
}

// namesIn returns the names of the entries of a directory that are not links. It returns none if the directory does not
// exist.
func namesIn(root *walk.Root, at string) (names []string, err error) {
	dir, err := root.OpenDir(at)
	if walk.Nowhere(err) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	defer dir.Close()
	all, err := dir.ReadDir()
	for _, name := range all {
		st, err := dir.Lstat(name)
		if found, err := walk.Found(err); err != nil {
			return nil, err
		} else if found && st.Mode&unix.S_IFMT != unix.S_IFLNK {
			names = append(names, name)
		}
	}
	return names, err
}
