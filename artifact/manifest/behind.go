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
	links := map[string]string{}
	for _, e := range m.Entries {
		if e.Kind == Symlink {
			links[e.Name] = e.Link
		}
	}
	if len(links) == 0 {
		return nil
	}
	all := slices.Clone(paths)
	for i := 0; i < len(all); i++ {
		for name := range links {
			if below(all[i:i+1], name) {
				all = addNew(all, name, passed(links, name))
			}
		}
		all = addNew(all, all[i], passed(links, all[i]))
	}
	all = all[len(paths):]
	slices.Sort(all)
	return all
}

func addNew(all []string, from string, more []string) []string {
	for _, p := range more {
		if !slices.Contains(all, p) && !below([]string{p}, from) {
			all = append(all, p)
		}
	}
	return all
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
