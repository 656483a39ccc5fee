package manifest

import (
	"path"
	"slices"
	"strings"
)

// maxHops limits how many links one path may contain.
const maxHops = 40

// Behind lists the targets of links in some paths, and the links on the way there: a user who can change one of these
// can replace the files at the paths. Directories that contain the link itself are left out. Unpacking has checked that
// no link leads out of the tree.
func (m *Manifest) Behind(paths []string) []string {
	links, names := map[string]string{}, []string{}
	for _, e := range m.Entries {
		if e.Kind == Symlink {
			links[e.Name] = e.Link
			names = append(names, e.Name)
		}
	}
	if len(links) == 0 {
		return nil
	}
	slices.Sort(names)
	all, known := slices.Clone(paths), map[string]bool{}
	for _, p := range paths {
		known[p] = true
	}
	add := func(from string) {
		for _, p := range passed(links, from) {
			if !known[p] && !below([]string{p}, from) {
				all, known[p] = append(all, p), true
			}
		}
	}
	for i := 0; i < len(all); i++ {
		for _, name := range within(names, all[i]) {
			add(name)
		}
		add(all[i])
	}
	all = all[len(paths):]
	slices.Sort(all)
	return all
}

// within returns the names of a sorted list that are below a directory.
func within(sorted []string, dir string) []string {
	if dir == "." {
		return sorted
	}
	first, _ := slices.BinarySearch(sorted, dir+"/")
	end, _ := slices.BinarySearch(sorted, dir+"0") // the character after /
	return sorted[first:end]
}

// passed returns the links that a path passes through, and its final target.
func passed(links map[string]string, name string) (all []string) {
	for range maxHops {
		at, rest := firstLink(links, name)
		if at == "" {
			return append(all, name)
		}
		all = append(all, at)
		name = path.Join(path.Dir(at), links[at], rest)
		if name == ".." || strings.HasPrefix(name, "../") {
			return all
		}
	}
	return all
}

// firstLink returns the first part of a path that is a link, and the rest of the path.
func firstLink(links map[string]string, name string) (at, rest string) {
	for i := range len(name) + 1 {
		if i < len(name) && name[i] != '/' {
			continue
		}
		if _, is := links[name[:i]]; is {
			return name[:i], name[i:]
		}
	}
	return "", ""
}
